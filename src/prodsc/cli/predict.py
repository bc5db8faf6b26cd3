"""prodsc predict RUN FILE: labels for rows the model has not seen."""

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import numpy as np

from prodsc import files, ranks
from prodsc.cli.choices import choice_for_run, choice_options
from prodsc.cli.memory import memory_option
from prodsc.cli.output import echo
from prodsc.cli.progress import progress_bar
from prodsc.core.metrics import scores
from prodsc.errors import OutputError
from prodsc.registry import load
from prodsc.runs.label_files import ENGINES, predict_to_file
from prodsc.runs.label_outputs import OUTPUTS
from prodsc.runs.past_run import names_of_run
from prodsc.runs.run import RowNames, label_lines, write_labels
from prodsc.sources.choice import ColumnChoice
from prodsc.sources.door import open_source
from prodsc.sources.readers import label_codes, read_array, read_labels
from prodsc.sources.shards import is_address


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", metavar="FILE|NAME")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write here instead of to the screen.")
@choice_options
@click.option("--labels", help="Known labels, to score with: an array or column of FILE, or another file.")
@click.option("--overwrite", is_flag=True, help="Replace an existing output file.")
@click.option("--outliers", is_flag=True, help="Write outlier scores to .parquet and .lance too; this takes longer.")
@memory_option
@click.option("--engine", type=click.Choice(ENGINES), default="local", help="What runs the work; ray needs its extra.")
@click.option("--workers", type=click.IntRange(1), default=1, help="Processes of --engine ray.")
def predict(
    choice: ColumnChoice,
    run: Path,
    file: str,
    out: Path | None,
    labels: str | None,
    overwrite: bool,
    outliers: bool,
    engine: str,
    workers: int,
) -> None:
    """Label the rows of FILE with the model in RUN: row, label, confidence, outlier score.

    FILE may be the name of a data set (`prodsc data list`). Columns that have names are matched by name. Columns of
    ids, texts and labels, dropped columns and missing values are treated as they were by `prodsc fit`.

    An output that ends in .npy, .parquet or .lance is written shard by shard, in memory that does not grow with the
    rows. If that is interrupted, the same command continues it.
    """
    if out is not None and out.suffix in OUTPUTS:
        _predict_many(choice, run, file, out, labels, overwrite, outliers, engine, workers)
        return
    if engine != "local":
        raise OutputError(f"--engine {engine} writes {', '.join(OUTPUTS)}; give such a name to -o.")
    if out is not None and out.exists() and not overwrite:
        raise OutputError(f"{out} exists. Choose another -o, or give --overwrite.")
    if out is not None and files.is_one_of(out, [file, labels, *run.glob("*")]):
        raise OutputError(f"{out} is an input of this command and is never replaced. Choose another -o.")
    model = load(run)
    with progress_bar("convert") as progress:
        chosen, exclude = choice_for_run(choice, run)
        data = open_source(file, labels=labels, exclude=exclude, choice=chosen, progress=progress)
    names = RowNames(data.ids, data.kept, names_of_run(run, model))
    predicted = np.empty(len(data.X) if data.y is not None else 0, np.int64)
    parts = _collected(model.labelled(data), predicted)
    if not ranks.first():
        for _ in parts:  # all ranks label, the first one writes
            pass
    elif out is None:
        sys.stdout.writelines(label_lines(parts, names))
    else:
        write_labels(out, parts, names)
        echo(f"{len(data.X)} rows labelled: {out}", err=True)
    if data.y is not None and ranks.first():
        echo("  ".join(f"{name} {value:.4f}" for name, value in scores(data.y, predicted).items()), err=True)


def _predict_many(
    choice: ColumnChoice,
    run: Path,
    file: str,
    out: Path,
    labels: str | None,
    overwrite: bool,
    outliers: bool,
    engine: str,
    workers: int,
) -> None:
    """Label shard by shard into a file."""
    chosen, exclude = choice_for_run(choice, run)
    exclude += [] if labels is None else [labels]
    with progress_bar("label") as progress:
        n = predict_to_file(
            run,
            file,
            out,
            with_outliers=outliers,
            names=names_of_run(run, load(run)),
            exclude=exclude,
            choice=chosen,
            overwrite=overwrite,
            engine=engine,
            workers=workers,
            progress=progress,
        )
    if not ranks.first():
        return
    echo(f"{n} rows labelled: {out}", err=True)
    if labels is not None and out.suffix != ".lance":
        found = np.load(out) if out.suffix == ".npy" else read_array(out, "label")
        assert found is not None
        known, _ = label_codes(read_labels(None if is_address(file) else file, labels), found, labels)
        echo("  ".join(f"{name} {value:.4f}" for name, value in scores(known, found).items()), err=True)


def _collected(parts: Iterable[tuple[np.ndarray, ...]], labels: np.ndarray) -> Iterator[tuple[np.ndarray, ...]]:
    """The same parts; their labels are also written into `labels`, unless it is empty because nothing is scored."""
    done = 0
    for part in parts:
        if len(labels):
            labels[done : done + len(part[0])] = part[0]
        done += len(part[0])
        yield part
