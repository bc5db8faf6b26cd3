"""prodsc report RUN: the page of a finished run, made again with more to look at."""

from pathlib import Path

import click
import numpy as np

from prodsc.cli.output import echo
from prodsc.errors import InputError
from prodsc.runs.past_run import PastRun, open_run
from prodsc.runs.run import PAGE, write_report


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--images", metavar="DIR|FILE|NAME", help="The image of each row: a folder, a file or a data set.")
@click.option("--texts", metavar="FILE", help="The text of each row: lines of a .txt, or a .csv or .parquet.")
@click.option("--columns", metavar="A,B,...", help="Columns of the input to show with each row, by name or number.")
@click.option("--compare", type=click.Path(path_type=Path), metavar="RUN", help="Another fit of the same rows.")
@click.option("--data", type=click.Path(path_type=Path), metavar="FILE", help="Where the rows are now, if moved.")
def report(
    run: Path, images: str | None, texts: str | None, columns: str | None, compare: Path | None, data: Path | None
) -> None:
    """Make RUN/report.html again: the map, the clusters, the diagnosis, the scores and how it was made.

    With --images or --texts every row shows what it stands for. With --compare the page says how labels moved between
    two fits and which rows did.
    """
    from prodsc.report.fit_page import OtherFit  # matplotlib is slow to import, and needed only here
    from prodsc.report.previews import open_previews

    done = open_run(run, data)
    chosen = [word.strip() for word in columns.split(",") if word.strip()] if columns else []
    previews = open_previews(done.data, images=images, texts=texts, columns=chosen)
    other = None if compare is None else OtherFit(str(compare), _labels(done, compare, data))
    write_report(done.request, done.data, done.model, done.result, previews=previews, other=other)
    echo(f"{run / PAGE}: {(run / PAGE).stat().st_size / 1e6:.1f} MB")


def _labels(done: PastRun, compare: Path, data: Path | None) -> np.ndarray:
    """The other fit's labels, if they are of the same rows."""
    other = open_run(compare, data)
    if other.result["data"]["fingerprint"] != done.result["data"]["fingerprint"]:
        raise InputError(
            f"{compare} was fitted on other rows than {done.folder} (their fingerprints differ), so labels cannot be "
            "compared row by row. Compare two fits of one file."
        )
    return other.labels
