"""`reproduce(name)`: a table or figure of the paper from data at hand, the published numbers beside ours."""

import platform
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import torch

from prodsc import files
from prodsc.bench.summary import Line, summarise, to_csv, to_markdown
from prodsc.bench.trials import Limits, Outcome, Trial, run_trials
from prodsc.errors import ParameterError, did_you_mean, require
from prodsc.paper.plans import EXPERIMENT_BY_NAME, Experiment, Plan, make_plan
from prodsc.paper.published import Published, published, tables
from prodsc.sources.named import about_set, find, missing

COLUMNS = ("data", "method", "metric", "ours", "std", "runs", "published", "published std", "difference", "note")
PICTURES = ("png", "svg", "pdf")
SHOWN = ("data", "method", "metric", "ours", "published", "difference", "note")
HOME = Path("reproduced")


@dataclass(frozen=True)
class Comparison:
    """One number: ours, the paper's, or why one of them is not there."""

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
        numbers = (self.ours, self.std, self.runs, self.published, self.published_std, self.difference)
        rounded = [round(n, 4) if isinstance(n, float) else n for n in numbers]
        return [self.dataset, self.method, self.metric, *rounded, self.note]


@dataclass
class Reproduction:
    """What was run and what came out."""

    plan: Plan
    outcomes: list[Outcome]
    folder: Path
    pictures: list[Path] = field(default_factory=list)

    def against_paper(self) -> list[Comparison]:
        """Ours beside the published numbers, then the cells of the paper that could not be run, with the reason."""
        experiment = self.plan.experiment
        rows = []
        for line in summarise(self.outcomes):
            for metric in experiment.metrics:
                rows.append(_compared(experiment, line, metric))
        for dataset, reason in self.plan.missing.items():
            for known in _published(experiment, dataset):
                if known.method in _methods(self.plan, experiment):
                    rows.append(_not_run(dataset, known, reason))
        return rows

    def cells(self) -> list[list[str]]:
        """The table as text, under SHOWN."""
        return [
            [c.dataset, c.method, c.metric, _shown(c.ours, c.std, c.runs), _shown(c.published, c.published_std),
             "" if c.difference is None else f"{c.difference:+.1f}", c.note]
            for c in self.against_paper()
        ]  # fmt: skip

    def lead(self) -> str:
        experiment = self.plan.experiment
        seeds = sorted({outcome.trial.seed for outcome in self.outcomes})
        return (
            f"{experiment.kind.capitalize()} {experiment.number} of the paper, `prodsc reproduce {experiment.name}`. "
            f"Ours: mean ± std over {len(seeds)} seed(s), labels only score. {machine()}"
        )

    def remarks(self) -> dict[str, list[str]]:
        """What a reader of the numbers must know, by heading; nothing where there is nothing to say."""
        found = {
            "Failed or not run": [f"{o.trial.key}: {o.failed}" for o in self.outcomes if o.failed],
            "Missing data": list(self.plan.missing.values()),
            "Known departures from the paper": list(self.plan.experiment.departures),
        }
        return {heading: lines for heading, lines in found.items() if lines}

    def text(self) -> str:
        """The page in Markdown."""
        parts = [f"# {self.plan.experiment.title}\n", f"{self.lead()}\n", to_markdown(SHOWN, self.cells())]
        for heading, lines in self.remarks().items():
            parts.append(f"{heading}:\n\n" + "\n".join(f"- {line}" for line in lines) + "\n")
        for picture in self.pictures:
            if picture.suffix == ".png":
                parts.append(f"![{picture.stem}]({picture.name})\n")
        return "\n".join(parts)


def plan(name: str, datasets: Sequence[str] = (), seeds: int | Sequence[int] | None = None) -> Plan:
    """What `reproduce` would run, and what is missing."""
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
    watch: Callable[[int, Trial, Outcome | None], None] = lambda number, trial, outcome: None,
) -> Reproduction:
    """Run a table or figure of the paper and write it to a folder; run again, it goes on where it was stopped."""
    require("matplotlib", extra="paper", caller="reproduce")  # before hours of training
    planned = plan(name, datasets, seeds)
    folder = HOME / name if out is None else Path(out)
    trials = (HOME if out is None else folder) / "trials"  # several figures are of the same fits
    budget = None if budget_minutes is None else 60 * budget_minutes
    outcomes = run_trials(planned.trials, trials, limits=limits, budget_seconds=budget, watch=watch)
    result = Reproduction(planned, outcomes, folder)
    write(result)
    return result


def write(result: Reproduction) -> None:
    """results.csv, results.md, report.html, and for a figure its pictures as PNG, SVG and PDF."""
    from prodsc.paper.reproduce_page import write_reproduce_page  # matplotlib is slow to import, and needed only here

    experiment, folder = result.plan.experiment, result.folder
    folder.mkdir(parents=True, exist_ok=True)
    if experiment.draw is not None:
        result.pictures = _draw(experiment.draw, result.outcomes, folder)
    files.write_text(folder / "results.csv", to_csv(COLUMNS, [c.row() for c in result.against_paper()]))
    files.write_text(folder / "results.md", result.text())
    write_reproduce_page(folder / "report.html", result)


def _draw(drawing: str, outcomes: Sequence[Outcome], folder: Path) -> list[Path]:
    from prodsc.paper.drawings import DRAWINGS  # matplotlib is slow to import, and needed only here
    from prodsc.report.save import save_figure

    fine = [outcome for outcome in outcomes if not outcome.failed]
    groups: dict[str, list[Outcome]] = {}
    for outcome in fine:
        groups.setdefault("synthetic" if drawing == "synthetic" else outcome.trial.dataset, []).append(outcome)
    made = []
    for dataset, group in groups.items():
        for what, figure in DRAWINGS[drawing](group):
            stem = what if what == dataset else f"{what}_{Path(dataset).stem}"
            for suffix in PICTURES:
                made.append(save_figure(figure, folder / f"{stem}.{suffix}"))
    return made


def machine() -> str:
    return f"{platform.machine()}, {torch.get_num_threads()} thread(s), torch {torch.__version__}."


def _absent(dataset: str) -> str | None:
    """Why a data set cannot be read, with the way out; None when it can."""
    about = about_set(dataset)
    if about is None:
        return None if Path(dataset).exists() else f"{dataset} does not exist."
    return str(missing(about)) if find(about) is None else None


def _published(experiment: Experiment, dataset: str) -> list[Published]:
    if experiment.name not in tables():
        return []
    name = experiment.published_as(dataset)
    return [known for known in published(table=experiment.name) if known.dataset == name]


def _methods(planned: Plan, experiment: Experiment) -> set[str]:
    """Methods that this experiment runs; the paper's tables also cite others."""
    example = experiment.plan(experiment.datasets[0], 0)
    inside = {name for trial in example for name in trial.options.get("clusterers", {})}
    return {trial.method for trial in example} | inside


def _compared(experiment: Experiment, line: Line, metric: str) -> Comparison:
    # "k-means ACC" in a table of clusterers: the method is the clusterer, the variant the features.
    clusterer, _, plain = metric.rpartition(" ") if " " in metric and metric.split()[-1].isupper() else ("", "", metric)
    method = clusterer or line.method
    known = next(
        (
            p
            for p in _published(experiment, line.dataset)
            if (p.method, p.metric) == (method, plain) and p.variant in ("", line.variant)
        ),
        None,
    )
    notes = [*line.failures]
    if line.dataset in experiment.instead:
        notes.append("data at hand, not the paper's: not comparable")
    if known is not None and known.failure:
        notes.append(f"published: {known.failure}")
    name = f"{method} ({line.variant})" if line.variant else method
    mean, std, runs = line.mean(metric), line.std(metric), len(line.values.get(metric, ()))
    value, spread = (known.value, known.std) if known is not None else (None, None)
    return Comparison(line.dataset, name, plain, mean, std, runs, value, spread, "; ".join(notes))


def _not_run(dataset: str, known: Published, reason: str) -> Comparison:
    name = f"{known.method} ({known.variant})" if known.variant else known.method
    note = f"not run: {reason.split(';')[0]}" + (f"; published: {known.failure}" if known.failure else "")
    return Comparison(dataset, name, known.metric, None, None, 0, known.value, known.std, note)


def _shown(mean: float | None, std: float | None, runs: int = 2) -> str:
    if mean is None:
        return "-"
    number = f"{mean:.1f}" if abs(mean) >= 10 else f"{mean:.3g}"
    return (
        number if std is None or runs < 2 else f"{number} ± {std:.1f}" if abs(mean) >= 10 else f"{number} ± {std:.2g}"
    )
