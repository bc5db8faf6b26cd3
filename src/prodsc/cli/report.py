"""prodsc report RUN: the page of a finished run, made again with more to look at."""

from pathlib import Path
from typing import Any

import click
import numpy as np

from prodsc.cli.output import echo
from prodsc.errors import InputError
from prodsc.runs.past_run import PastRun, open_run
from prodsc.runs.run import NAMES, PAGE, name_clusters, write_report


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--images", metavar="DIR|FILE|NAME", help="The image of each row: a folder, a file or a data set.")
@click.option("--texts", metavar="FILE", help="The text of each row: lines of a .txt, or a .csv or .parquet.")
@click.option("--columns", metavar="A,B,...", help="Columns of the input to show with each row, by name or number.")
@click.option("--names", metavar="FILE", help="Names of clusters: the file that 'Save names' of the page wrote.")
@click.option("--compare", type=click.Path(path_type=Path), metavar="RUN", help="Another fit of the same rows.")
@click.option("--data", type=click.Path(path_type=Path), metavar="FILE", help="Where the rows are now, if moved.")
def report(
    run: Path,
    images: str | None,
    texts: str | None,
    columns: str | None,
    names: str | None,
    compare: Path | None,
    data: Path | None,
) -> None:
    """Make RUN/report.html again: the map, the clusters, the diagnosis, the scores and how it was made.

    With --images or --texts every row shows what it stands for, and clusters are named after them. --names gives them
    other names, also in labels.csv. With --compare the page says how labels moved between two fits and which rows did.
    """
    from prodsc.report.fit_page import OtherFit  # matplotlib is slow to import, and needed only here
    from prodsc.report.previews import open_previews

    done = open_run(run, data)
    chosen = [word.strip() for word in columns.split(",") if word.strip()] if columns else []
    previews = open_previews(done.data, images=images, texts=texts, columns=chosen)
    _name(done, previews, names, bool(images or texts))
    other = None if compare is None else OtherFit(str(compare), _labels(done, compare, data))
    write_report(done.request, done.data, done.model, done.result, previews=previews, other=other)
    echo(f"{run / PAGE}: {(run / PAGE).stat().st_size / 1e6:.1f} MB")


def _name(done: PastRun, previews: Any, names: str | None, shown: bool) -> None:
    """Names that are given or were given before; else those that follow from new images or texts."""
    if names is not None:
        done.model.rename_clusters(done.names or {}).rename_clusters(names)
    elif done.names is not None and ((done.folder / NAMES).is_file() or not shown):
        done.model.rename_clusters(done.names)
    else:
        name_clusters(done.model, done.data, texts=previews.texts, images=previews.image)
    if list(done.model.cluster_names_) != (done.names or done.model.cluster_names_) or names is not None or shown:
        done.keep_names(list(done.model.cluster_names_))


def _labels(done: PastRun, compare: Path, data: Path | None) -> np.ndarray:
    """The other fit's labels, if they are of the same rows."""
    other = open_run(compare, data)
    if other.result["data"]["fingerprint"] != done.result["data"]["fingerprint"]:
        raise InputError(
            f"{compare} was fitted on other rows than {done.folder} (their fingerprints differ), so labels cannot be "
            "compared row by row. Compare two fits of one file."
        )
    return other.labels
