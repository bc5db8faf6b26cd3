"""prodsc reproduce: tables and figures of the paper."""

from pathlib import Path

import click

from prodsc.bench.trials import Limits, Outcome, Trial
from prodsc.cli.output import echo
from prodsc.paper.plans import EXPERIMENTS
from prodsc.paper.reproduce import plan, run_plan


@click.command(context_settings={"show_default": False})
@click.argument("name", required=False)
@click.option("--datasets", metavar="A,B,...", help="Named data sets or files; the paper's when left out.")
@click.option(
    "--seeds", type=click.IntRange(1), metavar="N", help="Runs of each cell; the paper's number when left out."
)
@click.option("--dry-run", is_flag=True, help="Print what would be run and what is missing, and stop.")
@click.option("--budget", type=click.FloatRange(min=0, min_open=True), metavar="MINUTES", help="Stop after this time.")
@click.option("--time-limit", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="Of one run.")
@click.option("--memory-limit", type=click.FloatRange(min=0, min_open=True), metavar="MB", help="Of one run.")
@click.option("--out", type=click.Path(path_type=Path, file_okay=False), help="Folder [reproduced/NAME].")
def reproduce(
    name: str | None,
    datasets: str | None,
    seeds: int | None,
    dry_run: bool,
    budget: float | None,
    time_limit: float | None,
    memory_limit: float | None,
    out: Path | None,
) -> None:
    """Run the table or figure NAME of the paper; without NAME, list them.

    Writes results.csv, results.md and, for a figure, PNG, SVG and PDF. Run the same command again to continue
    one that was stopped.
    """
    if name is None:
        for experiment in EXPERIMENTS:
            echo(f"{experiment.name:<18} {experiment.kind:<6} {experiment.number:<9} {experiment.title}")
        return
    chosen = [word.strip() for word in datasets.split(",") if word.strip()] if datasets else []
    planned = plan(name, chosen, seeds)
    cells = len({(t.dataset, t.method, t.variant) for t in planned.trials})
    echo(f"{planned.experiment.title}: {len(planned.trials)} runs of {cells} cells")
    for reason in planned.missing.values():
        echo(f"missing: {reason}")
    if dry_run:
        for trial in planned.trials:
            echo(f"  {trial.dataset}  {trial.method}  {trial.variant}  seed {trial.seed}")
        return

    def show(number: int, trial: Trial, outcome: Outcome | None) -> None:
        name = f"[{number + 1}/{len(planned.trials)}] {trial.dataset} {trial.method} {trial.variant} seed {trial.seed}"
        if outcome is None:
            echo(f"{name} ...")
            return
        numbers = [f"{m} {outcome.numbers[m]:.4g}" for m in planned.experiment.metrics if m in outcome.numbers]
        echo(f"{name}: {outcome.reason or ', '.join(numbers)}")

    limits = Limits(time_limit, memory_limit)
    result = run_plan(planned, out=out, budget_minutes=budget, limits=limits, on_trial=show)
    echo()
    echo(result.text())
    echo(f"results in {result.folder}")
