"""`reproduce(name)`: a table or figure of the paper from the available data, the published numbers beside ours."""

import platform
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import torch

from prodsc import files
from prodsc.bench.summary import MethodSummary, summarise, to_csv, to_markdown
from prodsc.bench.trials import Limits, Outcome, TrialCallback, ignore, run_trials
from prodsc.errors import ParameterError, did_you_mean, require
from prodsc.paper.plans import EXPERIMENT_BY_NAME, RECIPE_OF_FILES, Experiment, ExperimentPlan, make_plan
from prodsc.paper.published import PublishedNumber, published, tables
from prodsc.registry import departures_of
from prodsc.sources.named import dataset_info, find_files, missing_error

CSV_COLUMNS = ("data", "method", "metric", "ours", "std", "runs", "published", "published std", "difference", "note")
TABLE_COLUMNS = ("data", "method", "metric", "ours", "published", "difference", "note")
DEFAULT_FOLDER = Path("reproduced")


@dataclass(frozen=True)
class PaperComparison:
    """One number: ours and the paper's, with a note where one of them is missing."""

    dataset: str
    method: str
    metric: str
    ours: float | None
    std: float | None
    runs: int
    published: float | None
    published_std: float | None
    note: str

    @property
    def difference(self) -> float | None:
        return None if self.ours is None or self.published is None else self.ours - self.published

    def row(self) -> list[object]:
        """Cells under CSV_COLUMNS."""
        numbers = (self.ours, self.std, self.runs, self.published, self.published_std, self.difference)
        rounded = [round(n, 4) if isinstance(n, float) else n for n in numbers]
        return [self.dataset, self.method, self.metric, *rounded, self.note]


@dataclass
class Reproduction:
    """The trials of an experiment, their outcomes, and the files that were written."""

    plan: ExperimentPlan
    outcomes: list[Outcome]
    folder: Path
    figures: list[Path] = field(default_factory=list)

    def against_paper(self) -> list[PaperComparison]:
        """Our numbers beside the published ones, then the cells of the paper that could not be run."""
        experiment = self.plan.experiment
        rows = [
            _compare_with_paper(experiment, summary, metric)
            for summary in summarise(self.outcomes)
            for metric in experiment.metrics
        ]
        for dataset, reason in self.plan.missing.items():
            rows += [
                _not_run(dataset, number, reason)
                for number in _published_numbers(experiment, dataset)
                if number.method in _methods(experiment)
            ]
        return rows

    def cells(self) -> list[list[str]]:
        """The table as text, under TABLE_COLUMNS."""
        return [
            [
                c.dataset,
                c.method,
                c.metric,
                _mean_and_std(c.ours, c.std, c.runs),
                _mean_and_std(c.published, c.published_std),
                "" if c.difference is None else f"{c.difference:+.1f}",
                c.note,
            ]
            for c in self.against_paper()
        ]

    def lead(self) -> str:
        """What the table is of, and how it was made."""
        experiment = self.plan.experiment
        seeds = {outcome.trial.seed for outcome in self.outcomes}
        machine = f"{platform.machine()}, {torch.get_num_threads()} thread(s), torch {torch.__version__}."
        return (
            f"{experiment.kind.capitalize()} {experiment.number} of the paper, `prodsc reproduce {experiment.name}`. "
            f"Ours: mean ± std over {len(seeds)} seed(s), labels only score. {machine}"
        )

    def remarks(self) -> dict[str, list[str]]:
        """What a reader of the numbers must know, by heading; headings without remarks are left out."""
        methods = dict.fromkeys(trial.method for trial in self.plan.trials)
        remarks = {
            "Failed or not run": [f"{o.trial.key}: {o.reason}" for o in self.outcomes if not o.finished],
            "Missing data": list(self.plan.missing.values()),
            "Known departures from the paper": [*self.plan.experiment.departures, *self._recipes_of_files()],
            "Departures of the baselines from their authors' settings": [
                f"{name}: {text}" for name, text in departures_of(methods).items()
            ],
        }
        return {heading: lines for heading, lines in remarks.items() if lines}

    def _recipes_of_files(self) -> list[str]:
        """A line for each file: it has no recipe of its own."""
        own = dict.fromkeys(trial.dataset for trial in self.plan.trials if dataset_info(trial.dataset) is None)
        return [f"{Path(name).name}: PRO-DSC with the recipe '{RECIPE_OF_FILES}', the nearest one" for name in own]

    def text(self) -> str:
        """The result as Markdown."""
        parts = [f"# {self.plan.experiment.title}\n", f"{self.lead()}\n", to_markdown(TABLE_COLUMNS, self.cells())]
        for heading, lines in self.remarks().items():
            parts.append(f"{heading}:\n\n" + "\n".join(f"- {line}" for line in lines) + "\n")
        parts += [f"![{figure.stem}]({figure.name})\n" for figure in self.figures if figure.suffix == ".png"]
        return "\n".join(parts)


def plan(name: str, datasets: Sequence[str] = (), seeds: int | Sequence[int] | None = None) -> ExperimentPlan:
    """What `reproduce` would run, and what is missing.

    Parameters
    ----------
    name : str
        A table or figure, as `prodsc reproduce` lists them.
    datasets : sequence of str, optional
        Named data sets or files; those of the paper when left out.
    seeds : int or sequence of int, optional
        Number of runs of each cell, or their seeds; the paper's number when left out.

    Returns
    -------
    ExperimentPlan

    Raises
    ------
    ParameterError
        If there is no such table or figure.
    """
    if name not in EXPERIMENT_BY_NAME:
        raise ParameterError(
            f"there is no table or figure '{name}'{did_you_mean(name, list(EXPERIMENT_BY_NAME)) or '.'} "
            f"Known: {', '.join(EXPERIMENT_BY_NAME)}."
        )
    experiment = EXPERIMENT_BY_NAME[name]
    numbers = experiment.seeds if seeds is None else seeds
    return make_plan(experiment, datasets, range(numbers) if isinstance(numbers, int) else numbers, _absent)


def reproduce(
    name: str,
    datasets: Sequence[str] = (),
    seeds: int | Sequence[int] | None = None,
    *,
    out: str | Path | None = None,
    budget_minutes: float | None = None,
    limits: Limits | None = None,
    on_trial: TrialCallback = ignore,
) -> Reproduction:
    """Run a table or figure of the paper and write it to a folder; the same call continues one that was stopped.

    Parameters
    ----------
    name : str
        A table or figure, as `prodsc reproduce` lists them.
    datasets : sequence of str, optional
        Named data sets or files; those of the paper when left out.
    seeds : int or sequence of int, optional
        Number of runs of each cell, or their seeds; the paper's number when left out.
    out : path, optional
        Folder for results; reproduced/NAME when left out.
    budget_minutes : float, optional
        Stop after this time.
    limits : Limits, optional
        Time and memory of one run; a run that exceeds them has failed.
    on_trial : callable(number, trial, outcome), optional
        Called when a run starts (outcome None) and when it has ended.

    Returns
    -------
    Reproduction
    """
    planned = plan(name, datasets, seeds)
    return run_plan(planned, out=out, budget_minutes=budget_minutes, limits=limits, on_trial=on_trial)


def run_plan(
    planned: ExperimentPlan,
    *,
    out: str | Path | None = None,
    budget_minutes: float | None = None,
    limits: Limits | None = None,
    on_trial: TrialCallback = ignore,
) -> Reproduction:
    """Run what `plan` returned; the other parameters are those of `reproduce`."""
    require("matplotlib", extra="paper", caller="reproduce")  # before hours of training
    folder = DEFAULT_FOLDER / planned.experiment.name if out is None else Path(out)
    trials = (DEFAULT_FOLDER if out is None else folder) / "trials"  # several figures show the same fits
    budget = None if budget_minutes is None else 60 * budget_minutes
    limited = [replace(trial, limits=limits or Limits()) for trial in planned.trials]
    outcomes = run_trials(limited, trials, budget_seconds=budget, on_trial=on_trial)
    result = Reproduction(planned, outcomes, folder)
    write(result)
    return result


def write(result: Reproduction) -> None:
    """Write results.csv, results.md, report.html, and each figure as PNG, SVG and PDF."""
    from prodsc.paper.reproduce_page import write_reproduce_page  # matplotlib is slow to import, and needed only here

    experiment, folder = result.plan.experiment, result.folder
    folder.mkdir(parents=True, exist_ok=True)
    if experiment.figure is not None:
        result.figures = _draw(experiment.figure, result.outcomes, folder)
    files.write_text(folder / "results.csv", to_csv(CSV_COLUMNS, [c.row() for c in result.against_paper()]))
    files.write_text(folder / "results.md", result.text())
    write_reproduce_page(folder / "report.html", result, TABLE_COLUMNS)


def _draw(name: str, outcomes: Sequence[Outcome], folder: Path) -> list[Path]:
    """Draw a figure for each data set (all in one for "synthetic") and save it in three formats."""
    from prodsc.paper.figures_of_trials import PAPER_FIGURES  # matplotlib is slow to import, and needed only here
    from prodsc.report.save import save_figure

    groups: dict[str, list[Outcome]] = {}
    for outcome in outcomes:
        if outcome.finished:
            groups.setdefault("synthetic" if name == "synthetic" else outcome.trial.dataset, []).append(outcome)
    paths = []
    for dataset, group in groups.items():
        for title, figure in PAPER_FIGURES[name](group):
            stem = title if title == dataset else f"{title}_{Path(dataset).stem}"
            paths += [save_figure(figure, folder / f"{stem}.{suffix}") for suffix in ("png", "svg", "pdf")]
    return paths


def _absent(dataset: str) -> str | None:
    """Why a data set cannot be read and what to do; None when it can."""
    info = dataset_info(dataset)
    if info is None:
        return None if Path(dataset).exists() else f"{dataset} does not exist."
    return str(missing_error(info)) if find_files(info) is None else None


def _published_numbers(experiment: Experiment, dataset: str) -> list[PublishedNumber]:
    if experiment.name not in tables():
        return []
    name = experiment.published_as(dataset)
    return [number for number in published(table=experiment.name) if number.dataset == name]


def _methods(experiment: Experiment) -> set[str]:
    """The methods that an experiment runs; the paper's tables also cite others."""
    trials = experiment.trials(experiment.datasets[0], 0)
    clusterers = {name for trial in trials for name in trial.options.get("clusterers", {})}
    return {trial.method for trial in trials} | clusterers


def _compare_with_paper(experiment: Experiment, summary: MethodSummary, metric: str) -> PaperComparison:
    # "k-means ACC" in a table of clusterers: the method is the clusterer, the variant the features.
    clusterer, _, plain = metric.rpartition(" ") if " " in metric and metric.split()[-1].isupper() else ("", "", metric)
    method = clusterer or summary.method
    numbers = [
        number
        for number in _published_numbers(experiment, summary.dataset)
        if (number.method, number.metric) == (method, plain) and number.variant in ("", summary.variant)
    ]
    number = numbers[0] if numbers else None
    notes = [*summary.failures]
    if summary.dataset in experiment.substitutes:
        notes.append("substitute data, not the paper's: not comparable")
    if number is not None and number.failure:
        notes.append(f"published: {number.failure}")
    return PaperComparison(
        summary.dataset,
        f"{method} ({summary.variant})" if summary.variant else method,
        plain,
        summary.mean(metric),
        summary.std(metric),
        len(summary.values.get(metric, ())),
        number.value if number is not None else None,
        number.std if number is not None else None,
        "; ".join(notes),
    )


def _not_run(dataset: str, number: PublishedNumber, reason: str) -> PaperComparison:
    name = f"{number.method} ({number.variant})" if number.variant else number.method
    note = f"not run: {reason.split(';')[0]}" + (f"; published: {number.failure}" if number.failure else "")
    return PaperComparison(dataset, name, number.metric, None, None, 0, number.value, number.std, note)


def _mean_and_std(mean: float | None, std: float | None, runs: int = 2) -> str:
    """'83.2 ± 0.4', three digits below 10, without the std for one run."""
    if mean is None:
        return "-"
    large = abs(mean) >= 10
    text = f"{mean:.1f}" if large else f"{mean:.3g}"
    if std is None or runs < 2:
        return text
    return f"{text} ± {std:.1f}" if large else f"{text} ± {std:.2g}"
