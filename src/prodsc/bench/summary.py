"""Outcomes of many trials as one table: mean and std over seeds; failures are counted and shown, never averaged in."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prodsc.bench.trials import Outcome, failure_reasons


@dataclass(frozen=True)
class MethodSummary:
    """One method (and variant) on one data set over all seeds."""

    dataset: str
    method: str
    variant: str
    values: dict[str, list[float]]  # metric -> one value per seed that finished
    runs: int
    failures: tuple[str, ...] = ()

    def mean(self, metric: str) -> float | None:
        values = self.values.get(metric)
        return float(np.mean(values)) if values else None

    def std(self, metric: str) -> float | None:
        values = self.values.get(metric)
        return float(np.std(values)) if values else None

    @property
    def name(self) -> str:
        return f"{self.method} ({self.variant})" if self.variant else self.method

    def cell(self, metric: str) -> str:
        """'97.1 ± 0.3', without the std for one run."""
        mean, std = self.mean(metric), self.std(metric)
        if mean is None or std is None:
            return "-"
        text = _format_number(mean, metric)
        return text if len(self.values[metric]) == 1 else f"{text} ± {_format_number(std, metric)}"


def summarise(outcomes: Sequence[Outcome]) -> list[MethodSummary]:
    """Group outcomes by data set, method and variant.

    Parameters
    ----------
    outcomes : sequence of Outcome
        Of any trials.

    Returns
    -------
    list of MethodSummary
        In the order the groups were first tried.
    """
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in outcomes:
        trial = outcome.trial
        groups.setdefault((trial.dataset, trial.method, trial.variant), []).append(outcome)
    summaries = []
    for (dataset, method, variant), runs in groups.items():
        values: dict[str, list[float]] = {}
        for run in runs:
            for metric, value in run.numbers.items():
                values.setdefault(metric, []).append(value)
        summaries.append(MethodSummary(dataset, method, variant, values, len(runs), tuple(failure_reasons(runs))))
    return summaries


def to_csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A table as CSV; None is an empty cell."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(["" if cell is None else cell for cell in row] for row in rows)
    return text.getvalue()


def to_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table as Markdown."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _format_number(value: float, metric: str) -> str:
    """One digit after the point for percentages, four digits in all for other numbers."""
    percentage = metric.endswith(("ACC", "NMI", "ARI", "SRE", "stability"))
    return f"{value:.1f}" if percentage else f"{value:.4g}"
