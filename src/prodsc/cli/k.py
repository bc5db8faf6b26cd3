"""prodsc k FILE: how many clusters do the rows have?"""

from pathlib import Path

import click

from prodsc import files
from prodsc.bench.summary import to_csv
from prodsc.cli.choices import choice_options
from prodsc.cli.output import echo
from prodsc.cli.progress import progress_bar
from prodsc.estimators.parameters import PARAMETER_BY_NAME
from prodsc.pro_dsc.number import estimate_k
from prodsc.sources.choice import ColumnChoice
from prodsc.sources.door import open_source

COLUMN_HEADS = ("k", "score", "agreement", "score of one cloud")


@click.command()
@click.argument("file")
@click.option("--at-least", default=2, type=click.IntRange(2), metavar="K", help="Smallest number to try [2].")
@click.option(
    "--at-most", type=click.IntRange(3), metavar="K", help="Largest number to try [250, at most one per 8 rows]."
)
@click.option(
    "--scaling", type=click.Choice(PARAMETER_BY_NAME["scaling"].choices), default="auto", help="Of the rows [auto]."
)
@choice_options
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for k.csv and k.png.")
@click.option("--quiet", is_flag=True, help="No progress.")
def k(
    choice: ColumnChoice,
    file: str,
    at_least: int,
    at_most: int | None,
    scaling: str,
    out: Path | None,
    quiet: bool,
) -> None:
    """Estimate the number of clusters of FILE (or a set of `prodsc data list`) without fitting a model.

    Prints the best numbers with their score: bits on which two random subsets of the rows agree, minus three times the
    bits on which they disagree. The result may be that there is no clear number. `prodsc fit FILE -k auto` does the
    same and fits with a clear result.
    """
    X = open_source(file, choice=choice)
    with progress_bar("estimate", quiet) as progress:
        curve = estimate_k(
            X, at_least=at_least, at_most=at_most, scaling=scaling, watch=progress or (lambda done, total: None)
        )
    best = sorted(curve.table(), key=lambda line: -line[1])[:8]
    echo(f"{'k':>5} {'score, bits':>12} {'agreement':>10} {'one cloud':>10}")
    for number, score, agreement, reference in best:
        echo(f"{number:>5} {score:>12.2f} {agreement:>10.0%} {reference:>10.2f}")
    echo(curve.summary())
    if out is not None:
        from prodsc.report.fit_figures import k_curve  # matplotlib is slow to import, and needed only here
        from prodsc.report.save import save_figure

        out.mkdir(parents=True, exist_ok=True)
        files.write_text(out / "k.csv", to_csv(COLUMN_HEADS, curve.table()))
        save_figure(k_curve(curve), out / "k.png")
        echo(f"results in {out}: k.csv, k.png")
