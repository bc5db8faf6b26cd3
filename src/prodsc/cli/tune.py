"""prodsc tune FILE -k K: search PRO-DSC's settings without labels, end with a recipe."""

import shlex
import sys
from pathlib import Path

import click

from prodsc import files
from prodsc.bench.trials import Limits, Trial
from prodsc.bench.tune import ScoredTrial
from prodsc.bench.tune import tune as search
from prodsc.cli.choices import choice_options
from prodsc.cli.compare import method_parameters
from prodsc.cli.output import echo
from prodsc.errors import Interrupted
from prodsc.sources.choice import ColumnChoice
from prodsc.sources.door import open_source


@click.command()
@click.argument("file")
@click.option("-k", "--n-clusters", required=True, type=click.IntRange(2), help="Number of clusters.")
@click.option("--trials", default=30, type=click.IntRange(1), metavar="N", help="Settings to try [30].")
@click.option("--minutes", type=click.FloatRange(min=0, min_open=True), metavar="M", help="Stop after this time.")
@click.option("--rows", type=click.IntRange(50), metavar="N", help="Fit at most N rows in a trial, a random sample.")
@click.option("--seed", default=0, type=click.IntRange(0), help="Of the fits and of the search [0].")
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Seconds of one trial.")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", help="A fixed parameter; may be repeated.")
@click.option("--labels", help="Known labels, only to show ACC: an array or column of FILE, or another file.")
@click.option("--tune-with-true-labels", is_flag=True, help="Search by ACC: an upper limit, not a result.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for results [tuned/FILE].")
@choice_options
def tune(
    choice: ColumnChoice,
    file: str,
    n_clusters: int,
    trials: int,
    minutes: float | None,
    rows: int | None,
    seed: int,
    time_limit: float | None,
    given: tuple[str, ...],
    labels: str | None,
    tune_with_true_labels: bool,
    out: Path | None,
) -> None:
    """Search the settings of PRO-DSC on FILE (or a set of `prodsc data list`) by a score that needs no labels.

    The first trial is the defaults. Run the same command again to continue a search that was stopped, or with more
    --trials. Writes recipe.toml (for `prodsc fit --recipe`), table.csv, table.md and report.html to --out.
    """
    from prodsc.bench.tune_page import write_tune_page

    data = open_source(file, labels=labels, choice=choice) if labels is not None or choice else None
    folder = out or Path("tuned") / Path(file).stem

    def show(number: int, trial: Trial, scored: ScoredTrial | None) -> None:
        if scored is None:
            return
        point = " ".join(f"{n}={v:.3g}" for n, v in scored.point.items()) or "defaults"
        echo(f"[{number + 1}/{trials}] {scored.outcome.reason or f'score {scored.score:.2f}'}: {point}")

    try:
        result = search(
            file if data is None else data.X,
            None if data is None else data.y,
            n_clusters=n_clusters,
            trials=trials,
            minutes=minutes,
            rows=rows,
            parameters=method_parameters(tuple(f"pro-dsc.{text}" for text in given)).get("pro-dsc"),
            random_state=seed,
            with_labels=tune_with_true_labels,
            limits=Limits(time_limit),
            out=folder,
            on_trial=show,
        )
    except KeyboardInterrupt:
        raise Interrupted("stopped; run the same command again to continue") from None
    best = result.best  # before anything is written: when no trial finished there is nothing to write
    files.write_text(folder / "recipe.toml", result.recipe())
    files.write_text(folder / "table.csv", result.csv())
    files.write_text(folder / "table.md", f"# Settings tried on {Path(file).name}\n\n{result.markdown()}")
    title = f"Settings of PRO-DSC for {Path(file).name}"
    write_tune_page(folder / "report.html", title, result, shlex.join(["prodsc", *sys.argv[1:]]))
    echo()
    echo(result.markdown())
    echo(f"best: trial {best.name}, score {best.score:.2f}")
    echo(f"results in {folder}: recipe.toml, table.csv, table.md, report.html")
    echo(f"next: prodsc fit {file} --recipe {folder / 'recipe.toml'} --out run/")
