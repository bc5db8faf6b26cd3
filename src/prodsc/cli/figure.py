"""prodsc figure NAME RUN -o FILE: a figure of one fit as PNG, SVG or PDF."""

from pathlib import Path

import click

from prodsc import export as exports
from prodsc.export.images import image_array
from prodsc.export.pictures import FIGURES, SUFFIXES, check_name
from prodsc.export.targets import check_target
from prodsc.runs.past_run import open_run


@click.command()
@click.argument("name", required=False)
@click.argument("run", type=click.Path(path_type=Path), required=False)
@click.option(
    "-o", "--out", "out", multiple=True, type=click.Path(path_type=Path), help=".png, .svg or .pdf; repeatable."
)
@click.option("--images", metavar="FILE|NAME", help="The images of the rows, for `subspaces`.")
@click.option(
    "--data", type=click.Path(path_type=Path), metavar="FILE", help="Where the input is now, if it was moved."
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def figure(
    name: str | None, run: Path | None, out: tuple[Path, ...], images: str | None, data: Path | None, force: bool
) -> None:
    """Draw the figure NAME of the run in RUN; without NAME, list them.

    Rows are sorted and coloured by known classes where the run has any, else by cluster. Figures of many fits (phase,
    sensitivity, synthetic) are made by `prodsc reproduce`, which writes the same three formats.
    """
    if name is None:
        for known, (_, words, again) in FIGURES.items():
            click.echo(f"{known:<16} {words}{' (trains once more)' if again else ''}")
        return
    check_name(name)
    if run is None or not out:
        missing = "the folder of a run" if run is None else "-o FILE, with the ending .png, .svg or .pdf"
        raise click.UsageError(f"figure needs {missing}.")
    for path in out:
        check_target(path, SUFFIXES, force)
    past = open_run(run, data)
    if FIGURES[name][2]:
        click.echo(
            f"{name} is measured while training; training again, {past.result['seconds']:.0f} s the first time",
            err=True,
        )
    pictures = None if images is None else image_array(images)
    if name == "subspaces" and images is None:
        pictures = image_array(past.request.file)
    exports.figure(name, past.model, past.data.X, out, past.data.y, images=pictures, force=force)
    click.echo(f"{name}: {', '.join(map(str, out))}")
