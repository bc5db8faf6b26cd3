"""prodsc data list | show | where | fetch: the named data sets."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
from rich.console import Console
from rich.table import Table

from prodsc.cli.output import echo
from prodsc.cli.progress import shown
from prodsc.errors import InputError
from prodsc.progress import ProgressDisplay
from prodsc.sources.catalogue import SETS, DatasetInfo
from prodsc.sources.fetch import fetch as download_set
from prodsc.sources.named import compare_checksum, dataset_info, find_files, missing_error, search_path

CHECKSUM_STATES = {
    "matches": "sha256 as recorded",
    "differs": "sha256 differs",
    "not recorded": "checksum not recorded",
}


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
    for info in SETS:
        table.add_row(info.name, info.size, str(info.classes), _presence(info, data_dir))
    Console().print(table)


def _presence(info: DatasetInfo, data_dir: Path | None) -> str:
    if info.make is not None:
        return "computed"
    if find_files(info, data_dir) is not None:
        return "here"
    return "missing, can be fetched" if info.remotes else "missing"


@data.command()
@click.argument("name")
@click.option("--check", "compare", is_flag=True, help="Read the files whole and compare their sha256.")
@data_dir_option
def show(name: str, compare: bool, data_dir: Path | None) -> None:
    """What is known of one data set: shape, source, licence, notes, files."""
    info = _named(name)
    for key, value in _facts(info):
        echo(f"{key:<9}{value}")
    paths = find_files(info, data_dir)
    if paths is None and compare:
        raise missing_error(info, data_dir)
    if paths is None:
        echo(f"{'missing':<9}{missing_error(info, data_dir)}")
    for path in paths or ():
        state = compare_checksum(info, path, recompute=True) if compare else None
        echo(f"{'file':<9}{path}{f'  ({CHECKSUM_STATES[state]})' if state else ''}")
        if state == "differs":
            raise InputError(
                f"{path} is not the file whose sha256 is recorded; copy it again, or accept it as it is: "
                f"sha256sum '{path.name}' > '{path.name}.sha256' beside it."
            )


def _facts(info: DatasetInfo) -> list[tuple[str, str]]:
    labels = "no labels" if info.classes is None else f"{info.classes}; the labels come along, to score with"
    return [
        ("name", info.name),
        ("title", info.title),
        ("X", info.size),
        ("classes", labels),
        ("split", _split(info)),
        ("source", info.source),
        ("licence", info.licence),
        *(("note", note) for note in info.notes),
        *(("address", remote.url) for remote in info.remotes),
    ]


def _split(info: DatasetInfo) -> str:
    if any(len(names) == 2 for names in info.files):
        return "a train and a test part"
    if isinstance(info.split, int):
        return f"the first {info.split:,} rows are train, the others test"
    return {
        "marked": "as the file's array 'split' says",
        "whole": "train and test are both all rows",
        "none": "none, unless the file has an array 'split' (0 train, 1 test)" if info.files else "none",
    }[info.split]


@data.command()
@data_dir_option
def where(data_dir: Path | None) -> None:
    """The directories that are searched, in order, and what is taken from each."""
    hits = {info.name: paths[0] for info in SETS if (paths := find_files(info, data_dir))}
    for folder in search_path(data_dir):
        names = [name for name, path in hits.items() if path.is_relative_to(folder.path)]
        state = ", ".join(names) or ("nothing of ours" if folder.path.is_dir() else "no such directory")
        echo(f"{folder.path}  ({folder.origin})\n    {state}")


@data.command()
@click.argument("name")
@data_dir_option
@click.option("--quiet", is_flag=True, help="No progress.")
def fetch(name: str, data_dir: Path | None, quiet: bool) -> None:
    """Download a data set that has a public address, check it and convert it to .npz."""
    info = _named(name)
    with ProgressDisplay(shown(quiet), unit="bytes") as display:
        target = download_set(name, data_dir=data_dir, progress=display.update)
    echo(f"{info.name}: {target}")
    first = find_files(info, data_dir)
    if first and first[0] != target:
        echo(f"note: {first[0]} comes before it in the search (prodsc data where)", err=True)


def _named(name: str) -> DatasetInfo:
    info = dataset_info(name)
    if info is None:
        raise InputError(f"{name} is a file, not the name of a data set; `prodsc data list` has the names.")
    return info
