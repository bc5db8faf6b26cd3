"""Outcomes of many trials as one table: mean and std over seeds, failures counted and shown, never averaged in."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from prodsc.bench.trials import Outcome, missing_reasons

DIGITS = {"ACC": 1, "NMI": 1, "ARI": 1, "SRE": 1}  # after the point; other numbers get four digits in all


@dataclass(frozen=True)
class Line:
    """One method (and variant) on one data set."""

    dataset: str
    method: str
    variant: str
    values: dict[str, list[float]]  # metric -> one value per seed that succeeded
    runs: int
    failures: tuple[str, ...] = ()

    def mean(self, metric: str) -> float | None:
        found = self.values.get(metric)
        return float(np.mean(found)) if found else None

    def std(self, metric: str) -> float | None:
        found = self.values.get(metric)
        return float(np.std(found)) if found else None

    @property
    def name(self) -> str:
        return f"{self.method} ({self.variant})" if self.variant else self.method

    def cell(self, metric: str) -> str:
        """'97.1 ± 0.3', without the std for one run."""
        mean, std = self.mean(metric), self.std(metric)
        if mean is None or std is None:
            return "-"
        shown = _number(mean, metric)
        return shown if len(self.values[metric]) == 1 else f"{shown} ± {_number(std, metric)}"


def summarise(outcomes: Sequence[Outcome]) -> list[Line]:
    """One line per data set, method and variant, in the order they were first tried."""
    groups: dict[tuple[str, str, str], list[Outcome]] = {}
    for outcome in outcomes:
        trial = outcome.trial
        groups.setdefault((trial.dataset, trial.method, trial.variant), []).append(outcome)
    lines = []
    for (dataset, method, variant), runs in groups.items():
        values: dict[str, list[float]] = {}
        for run in runs:
            for metric, value in run.numbers.items():
                values.setdefault(metric, []).append(value)
        lines.append(Line(dataset, method, variant, values, len(runs), tuple(missing_reasons(runs))))
    return lines


def to_csv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(["" if cell is None else cell for cell in row] for row in rows)
    return text.getvalue()


def to_markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join(lines) + "\n"


def _number(value: float, metric: str) -> str:
    digits = next((n for name, n in DIGITS.items() if metric.endswith(name)), None)
    return f"{value:.{digits}f}" if digits is not None else f"{value:.4g}"
