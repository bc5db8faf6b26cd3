"""prodsc compare: several methods on one file, one table."""

import shlex
import sys
from pathlib import Path
from typing import Any

import click

from prodsc import files
from prodsc.bench.compare import GRIDS, ComparisonTable, grid_of
from prodsc.bench.compare import compare as run_comparison
from prodsc.bench.trials import Limits, Outcome, Trial
from prodsc.cli.choices import choice_options
from prodsc.cli.options import ParameterValue
from prodsc.cli.output import echo
from prodsc.sources.choice import ColumnChoice
from prodsc.sources.door import open_source

DEFAULT = "k-means,spectral,pro-dsc"


@click.command()
@click.argument("file")
@click.option("--methods", default=DEFAULT, metavar="A,B,...", help=f"By name, or 'all' [{DEFAULT}].")
@click.option("--seeds", default=5, type=click.IntRange(1), metavar="N", help="Runs of each method [5].")
@click.option(
    "-k", "--n-clusters", type=click.IntRange(2), help="Number of clusters; that of the labels when left out."
)
@click.option("--labels", help="Known labels, only to score: an array or column of FILE, or another file.")
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="S", help="Seconds of one run.")
@click.option("--memory-limit", type=click.FloatRange(min=0, min_open=True), metavar="MB", help="Memory of one run.")
@click.option(
    "--set", "given", multiple=True, metavar="METHOD.NAME=VALUE", help="A parameter of one method; may be repeated."
)
@click.option("--tune", is_flag=True, help="Search the paper's grids by a score that needs no labels.")
@click.option("--tune-with-true-labels", is_flag=True, help="Search them by ACC: an upper limit, not a result.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder for results [compared/FILE].")
@choice_options
def compare(
    choice: ColumnChoice,
    file: str,
    methods: str,
    seeds: int,
    n_clusters: int | None,
    labels: str | None,
    time_limit: float | None,
    memory_limit: float | None,
    given: tuple[str, ...],
    tune: bool,
    tune_with_true_labels: bool,
    out: Path | None,
) -> None:
    """Compare methods on FILE (or a set of `prodsc data list`): mean and std over seeds, failures shown.

    Each run has a process of its own. Run the same command again to continue one that was stopped. Writes table.csv,
    table.md and report.html to --out.
    """
    from prodsc.bench.compare_page import write_compare_page
    from prodsc.registry import METHODS

    names = list(METHODS) if methods == "all" else [word.strip() for word in methods.split(",") if word.strip()]
    data = open_source(file, labels=labels, choice=choice) if labels is not None or choice else None
    folder = out or Path("compared") / Path(file).stem
    tuning = tune or tune_with_true_labels
    total = len(names) * seeds + (sum(len(grid_of(name)) for name in names if name in METHODS) if tuning else 0)
    done: list[Trial] = []

    def show(number: int, trial: Trial, outcome: Outcome | None) -> None:
        searched = {name: trial.parameters[name] for name in GRIDS.get(trial.method, {})} if tuning else {}
        values = [f"{name}={value}" for name, value in searched.items()]
        name = " ".join([f"[{len(done) + 1}/{total}]", trial.method, f"seed {trial.seed}", *values])
        if outcome is None:
            echo(f"{name} ...")
            return
        done.append(trial)
        scores = [f"{m} {outcome.numbers[m]:.1f}" for m in ("ACC", "NMI") if m in outcome.numbers]
        seconds = f"{outcome.numbers['seconds']:.1f} s" if "seconds" in outcome.numbers else ""
        echo(f"{name}: {outcome.reason or ', '.join([*scores, seconds])}")

    table: ComparisonTable = run_comparison(
        file if data is None else data.X,
        None if data is None else data.y,
        names,
        seeds,
        n_clusters=n_clusters,
        parameters=method_parameters(given),
        limits=Limits(time_limit, memory_limit),
        tune=tune,
        tune_with_labels=tune_with_true_labels,
        out=folder,
        on_trial=show,
    )
    files.write_text(folder / "table.csv", table.csv())
    files.write_text(folder / "table.md", f"# Methods on {Path(file).name}\n\n{table.markdown()}")
    command = shlex.join(["prodsc", *sys.argv[1:]])
    write_compare_page(folder / "report.html", f"Methods on {Path(file).name}", table, command)
    echo()
    echo(table.markdown())
    echo(f"results in {folder}: table.csv, table.md, report.html")


def method_parameters(given: tuple[str, ...]) -> dict[str, dict[str, Any]]:
    """METHOD.NAME=VALUE, ... as parameters by method, each read and checked by its own rule."""
    from prodsc.estimators.parameters import parameters_of
    from prodsc.registry import make
    from prodsc.registry import method as find_method

    parameters: dict[str, dict[str, Any]] = {}
    for text in given:
        target, equals, value_text = text.partition("=")
        method, dot, name = target.partition(".")
        if not (equals and dot):
            raise click.UsageError(f"--set takes METHOD.NAME=VALUE, such as ensc.gamma=20; got {text!r}.")
        rules = {parameter.name: parameter for parameter in parameters_of(find_method(method))}
        value = ParameterValue(rules[name]).convert(value_text, None, None) if name in rules else value_text
        make(method, **{name: value})  # report a typo before anything runs
        parameters.setdefault(method, {})[name] = value
    return parameters
