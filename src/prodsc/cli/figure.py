"""prodsc figure NAME RUN -o FILE: a figure of one fit."""

from pathlib import Path

import click

from prodsc import export as exports
from prodsc.cli.output import echo
from prodsc.errors import ParameterError
from prodsc.export.images import image_array
from prodsc.export.pictures import FIGURE_SUFFIXES, FIGURES, check_name
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
        for known, kind in FIGURES.items():
            echo(f"{known:<16} {kind.description}{' (trains again)' if kind.trains_again else ''}")
        return
    _check_not_of_the_paper(name)
    check_name(name)
    if run is None or not out:
        missing = "the folder of a run" if run is None else "-o FILE, with the ending .png, .svg or .pdf"
        raise click.UsageError(f"figure needs {missing}.")
    for path in out:
        check_target(path, FIGURE_SUFFIXES, force)
    past = open_run(run, data)
    if FIGURES[name].trains_again:
        seconds = past.result["seconds"]
        echo(f"{name} is measured during training; training again ({seconds:.0f} s the first time)", err=True)
    pictures = None if images is None else image_array(images)
    if name == "subspaces" and images is None:
        pictures = image_array(past.request.file)
    exports.figure(name, past.model, past.data.X, out, past.data.y, images=pictures, force=force)
    echo(f"{name}: {', '.join(map(str, out))}")


def _check_not_of_the_paper(name: str) -> None:
    """Tables and figures of many fits have a command of their own."""
    from prodsc.paper.plans import EXPERIMENT_BY_NAME

    if name in FIGURES or name not in EXPERIMENT_BY_NAME:
        return
    kind = "table" if EXPERIMENT_BY_NAME[name].kind == "table" else "figure of many fits"
    raise ParameterError(
        f"{name} is a {kind} of the paper, not a figure of one fit; make it with `prodsc reproduce {name}`."
    )
