"""prodsc data list | show | where | fetch: the named data sets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from prodsc.cli.progress import shown
from prodsc.errors import InputError
from prodsc.progress import ProgressDisplay
from prodsc.sources.catalogue import SETS, About
from prodsc.sources.fetch import fetch as download_set
from prodsc.sources.named import about_set, check, find, missing, search_path

WORDS = {"matches": "sha256 as recorded", "differs": "sha256 differs", "not recorded": "checksum not recorded"}


def data_dir_option(command: Callable[..., Any]) -> Callable[..., Any]:
    return click.option(
        "--data-dir", type=click.Path(path_type=Path), help="Look here first; `prodsc data where` shows the rest."
    )(command)


@click.group()
def data() -> None:
    """Named data sets: which there are, where they are, how to get them."""


@data.command("list")
@data_dir_option
def list_sets(data_dir: Path | None) -> None:
    """All named data sets, and whether their files are here."""
    table = Table("name", "rows x columns", "classes", "here", box=None, pad_edge=False)
    for about in SETS:
        table.add_row(about.name, about.size, str(about.classes), _presence(about, data_dir))
    Console().print(table)


def _presence(about: About, data_dir: Path | None) -> str:
    if about.make is not None:
        return "computed"
    if find(about, data_dir) is not None:
        return "here"
    return "missing, can be fetched" if about.remotes else "missing"


@data.command()
@click.argument("name")
@click.option("--check", "compare", is_flag=True, help="Read the files whole and compare their sha256.")
@data_dir_option
def show(name: str, compare: bool, data_dir: Path | None) -> None:
    """What is known of one data set: shape, source, licence, notes, files."""
    about = _named(name)
    for key, value in _facts(about):
        click.echo(f"{key:<9}{value}")
    paths = find(about, data_dir)
    if paths is None and compare:
        raise missing(about, data_dir)
    if paths is None:
        click.echo(f"{'missing':<9}{missing(about, data_dir)}")
    for path in paths or ():
        found = check(about, path, afresh=True) if compare else None
        click.echo(f"{'file':<9}{path}{f'  ({WORDS[found]})' if found else ''}")
        if found == "differs":
            raise InputError(
                f"{path} is not the file whose sha256 is recorded; copy it again, or accept it as it is: "
                f"sha256sum '{path.name}' > '{path.name}.sha256' beside it."
            )


def _facts(about: About) -> list[tuple[str, str]]:
    labels = "no labels" if about.classes is None else f"{about.classes}; the labels come along, to score with"
    return [
        ("name", about.name),
        ("title", about.title),
        ("X", about.size),
        ("classes", labels),
        ("split", _split(about)),
        ("source", about.source),
        ("licence", about.licence),
        *(("note", note) for note in about.notes),
        *(("address", remote.url) for remote in about.remotes),
    ]


def _split(about: About) -> str:
    if any(len(names) == 2 for names in about.files):
        return "a train and a test part"
    if isinstance(about.split, int):
        return f"the first {about.split:,} rows are train, the others test"
    return {
        "marked": "as the file's array 'split' says",
        "whole": "train and test are both all rows",
        "none": "none, unless the file has an array 'split' (0 train, 1 test)" if about.files else "none",
    }[about.split]


@data.command()
@data_dir_option
def where(data_dir: Path | None) -> None:
    """The directories that are searched, in order, and what is taken from each."""
    hits = {about.name: paths[0] for about in SETS if (paths := find(about, data_dir))}
    for place in search_path(data_dir):
        names = [name for name, path in hits.items() if path.is_relative_to(place.path)]
        state = ", ".join(names) or ("nothing of ours" if place.path.is_dir() else "no such directory")
        click.echo(f"{place.path}  ({place.why})\n    {state}")


@data.command()
@click.argument("name")
@data_dir_option
@click.option("--quiet", is_flag=True, help="No progress.")
def fetch(name: str, data_dir: Path | None, quiet: bool) -> None:
    """Download a data set that has a public address, check it and convert it to .npz."""
    about = _named(name)
    with ProgressDisplay(shown(quiet), unit="bytes") as display:
        target = download_set(name, data_dir=data_dir, progress=display.update)
    click.echo(f"{about.name}: {target}")
    first = find(about, data_dir)
    if first and first[0] != target:
        click.echo(f"note: {first[0]} comes before it in the search (prodsc data where)", err=True)


def _named(name: str) -> About:
    about = about_set(name)
    if about is None:
        raise InputError(f"{name} is a file, not the name of a data set; `prodsc data list` has the names.")
    return about
