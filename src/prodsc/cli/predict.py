"""prodsc predict RUN FILE: labels for rows the model has not seen."""

import sys
from pathlib import Path

import click

from prodsc import files
from prodsc.data.readers import read
from prodsc.errors import OutputError
from prodsc.experiments.run import labels_csv
from prodsc.methods import load
from prodsc.metrics import scores


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", type=click.Path(path_type=Path))
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Write here instead of to the screen.")
@click.option("--labels", help="Known labels, to score with: an array or column of FILE, or another file.")
@click.option("--overwrite", is_flag=True, help="Replace an existing output file.")
def predict(run: Path, file: Path, out: Path | None, labels: str | None, overwrite: bool) -> None:
    """Label the rows of FILE with the model in RUN: row, label, confidence."""
    if out is not None and out.exists() and not overwrite:
        raise OutputError(f"{out} exists. Choose another -o, or give --overwrite.")
    model = load(run)
    data = read(file, labels=labels)
    proba = model.predict_proba(data.X)
    found = proba.argmax(1)
    text = labels_csv(found, proba.max(1))
    if out is None:
        sys.stdout.write(text)
    else:
        files.write_text(out, text)
        click.echo(f"{len(found)} rows labelled: {out}", err=True)
    if data.y is not None:
        click.echo("  ".join(f"{name} {value:.4f}" for name, value in scores(data.y, found).items()), err=True)
