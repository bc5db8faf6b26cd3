"""`compare(X, y, methods, seeds)`: several methods on one data set, each run in its own process, as one table."""

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from prodsc.bench.data import open_trial_data, results_folder
from prodsc.bench.label_free import BY_LABELS, BY_NEIGHBOURS, tuning_score
from prodsc.bench.summary import MethodSummary, summarise, to_csv, to_markdown
from prodsc.bench.trials import Limits, Outcome, Trial, TrialCallback, ignore, run_trials
from prodsc.core import metrics
from prodsc.errors import InputError, ParameterError
from prodsc.estimators.scoring import LabelFreeScorer
from prodsc.registry import departures_of
from prodsc.registry import method as method_class
from prodsc.sources.source import RowsInput

LABEL_METRICS: tuple[str, ...] = ("ACC", "NMI", "ARI")  # columns of a comparison
WITHOUT_LABELS: tuple[str, ...] = ("neighbours", "silhouette")
STABILITY = ("stability",)  # a column of a comparison with two seeds or more
COST = ("seconds", "peak_memory_mb")
COLUMN_NAMES = {
    "peak_memory_mb": "peak MB",
    "neighbours": "neighbours agree beyond chance, %",
    "stability": "seeds agree (ARI), %",
}

# The first four are the grids that the paper searched for its baselines; it gives none for the others.
GRIDS: dict[str, dict[str, Sequence[Any]]] = {
    "ensc": {"gamma": (1, 2, 5, 10, 20, 50, 100, 200, 400, 800, 1600, 3200), "tau": (0.9, 0.95, 1.0)},
    "ssc-omp": {"k_max": (1, 2, 5, 10, 20, 50, 100, 200), "tolerance": (1e-4, 1e-5, 1e-6, 1e-7)},
    "dsc-net": {"gamma": (1, 2, 3, 4), "beta": (1, 5, 25, 50, 75, 100)},
    "cpp": {"heads": ("separate", "shared")},
    "ssc": {"gamma": (2, 5, 20, 100, 400)},
    "lsr": {"gamma": (0.1, 1, 10, 100, 1000)},
    "lrr": {"gamma": (0.1, 1, 10, 100, 1000)},
    "spectral": {"n_neighbors": (3, 5, 10, 20, 50)},
    "pro-dsc": {"gamma": ("auto", 100.0, 300.0), "beta": (200.0, 600.0), "eta": (0.1, 0.15, 0.175)},
}


@dataclass
class ComparisonTable:
    """One row per method: mean and std over seeds, failures with their reason; `agreement` between methods."""

    summaries: list[MethodSummary]
    metrics: tuple[str, ...]
    agreement: dict[tuple[str, str], float]  # NMI of the labels of two methods, mean over seeds
    chosen: dict[str, dict[str, Any]] = field(default_factory=dict)  # parameters that tuning chose
    by: str = ""  # the score they were chosen by

    def header(self) -> list[str]:
        return ["method", *(COLUMN_NAMES.get(metric, metric) for metric in self.metrics), "failures"]

    def rows(self) -> list[list[str]]:
        """Every cell as text, under `header()`."""
        return [
            [summary.method, *(summary.cell(metric) for metric in self.metrics), "; ".join(summary.failures)]
            for summary in self.summaries
        ]

    def agreement_table(self) -> tuple[list[str], list[list[str]]]:
        """The methods whose labels can be compared, and a row of cells for each, its name first."""
        names = [s.method for s in self.summaries if any(s.method in pair for pair in self.agreement)]
        return names, [[a, *("" if a == b else f"{self.agreement[a, b]:.0f}" for b in names)] for a in names]

    def markdown(self) -> str:
        """The whole comparison as Markdown."""
        texts = [to_markdown(self.header(), self.rows())]
        names, cells = self.agreement_table()
        if len(names) > 1:
            texts.append("How much two methods agree (NMI of their labels, %):\n\n" + to_markdown(["", *names], cells))
        if self.chosen:
            texts.append(f"Tuned by {self.by}: " + "; ".join(f"{m} {dict(p)}" for m, p in self.chosen.items()) + "\n")
        if departures := departures_of(summary.method for summary in self.summaries):
            listed = "\n".join(f"- {name}: {text}" for name, text in departures.items())
            texts.append(f"Departures of the defaults from the authors' settings:\n\n{listed}\n")
        return "\n".join(texts)

    def csv(self) -> str:
        """The table as CSV, mean and std in columns of their own."""
        header = ["method", "runs", *itertools.chain(*((m, f"{m} std") for m in self.metrics)), "failures"]
        rows = [
            [s.method, s.runs, *itertools.chain(*((s.mean(m), s.std(m)) for m in self.metrics)), "; ".join(s.failures)]
            for s in self.summaries
        ]
        return to_csv(header, rows)


def compare(
    X: RowsInput,
    y: Any = None,
    methods: Sequence[str] = ("k-means", "spectral", "pro-dsc"),
    seeds: int | Sequence[int] = 5,
    *,
    n_clusters: int | None = None,
    parameters: Mapping[str, Mapping[str, Any]] | None = None,
    limits: Limits | None = None,
    tune: bool = False,
    tune_with_labels: bool = False,
    out: str | Path | None = None,
    on_trial: TrialCallback = ignore,
) -> ComparisonTable:
    """Compare methods on one data set; every method runs with every seed in a process of its own.

    Parameters
    ----------
    X : array-like, path or name of a data set
        The rows to cluster.
    y : array-like, optional
        Known classes, used only to score. Without them, scores that need no classes are given.
    methods : sequence of str
        Names of methods, as in `prodsc.registry.METHODS`.
    seeds : int or sequence of int, default=5
        Number of runs of each method, or their seeds.
    n_clusters : int, optional
        Number of clusters; that of the classes when left out.
    parameters : mapping of method to parameters, optional
        Parameters beyond the defaults.
    limits : Limits, optional
        Time and memory of one run; a run that exceeds them has failed.
    tune : bool, default=False
        Search the grid of each method (`GRIDS`) by a score that needs no labels.
    tune_with_labels : bool, default=False
        Search it by ACC instead. This gives an upper limit, not a result.
    out : path, optional
        Folder for results; the same call continues a comparison that was stopped.
    on_trial : callable(number, trial, outcome), optional
        Called when a run starts (outcome None) and when it has ended.

    Returns
    -------
    ComparisonTable

    Raises
    ------
    ParameterError
        If a method is unknown, or neither `n_clusters` nor classes are given.
    InputError
        If `y` does not fit `X`, or labels are needed and missing.
    """
    for name in methods:
        method_class(name)  # report a typo before anything runs
    with results_folder(out, "prodsc-compare-") as folder:
        data = open_trial_data(X, y, folder)
        k = n_clusters or (len(np.unique(data.y)) if data.y is not None else None)
        if k is None:
            raise ParameterError(
                "compare needs the number of clusters: n_clusters=k (-k on the command line), or labels."
            )
        if tune_with_labels and data.y is None:
            raise InputError("tuning with labels needs labels; give y, or tune without.")
        numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
        given = {method: {"n_clusters": k, **(parameters or {}).get(method, {})} for method in methods}
        label_free = data.y is None or (tune and not tune_with_labels)
        scorer = LabelFreeScorer(data.scored_rows()) if label_free else None
        run = partial(run_trials, folder=folder / "trials", on_trial=on_trial)
        make = partial(Trial, data.source, limits=limits or Limits())
        chosen: dict[str, dict[str, Any]] = {}
        for method in methods if tune or tune_with_labels else ():
            trials = [make(method, numbers[0], given[method] | point) for point in grid_of(method)]
            best = max(run(trials), key=lambda outcome: tuning_score(outcome, scorer, tune_with_labels))
            given[method] = best.trial.parameters
            chosen[method] = {name: best.trial.parameters[name] for name in GRIDS.get(method, {})}
        outcomes = run([make(method, seed, given[method]) for method in methods for seed in numbers])
        without_labels = scorer if data.y is None else None
        summaries = [_add_label_scores(summary, outcomes, without_labels) for summary in summarise(outcomes)]
        columns = LABEL_METRICS if data.y is not None else WITHOUT_LABELS
        columns += STABILITY if len(numbers) > 1 else ()
        by = (BY_LABELS if tune_with_labels else BY_NEIGHBOURS) if chosen else ""
        return ComparisonTable(summaries, (*columns, *COST), agreement(outcomes), chosen, by)


def grid_of(method: str) -> list[dict[str, Any]]:
    """Every combination of a method's grid; one empty choice for a method without a grid."""
    grid = GRIDS.get(method, {})
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def agreement(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], float]:
    """NMI in percent of the labels of every two methods, mean over the seeds that both finished."""
    labels = {
        (o.trial.method, o.trial.seed): o.arrays["labels"] for o in outcomes if o.finished and "labels" in o.arrays
    }
    methods = list(dict.fromkeys(method for method, _ in labels))
    means = {}
    for a, b in itertools.permutations(methods, 2):
        shared = [s for m, s in labels if m == a and (b, s) in labels and len(labels[a, s]) == len(labels[b, s])]
        if shared:
            means[a, b] = float(np.mean([100 * metrics.nmi(labels[a, s], labels[b, s]) for s in shared]))
    return {pair: value for pair, value in means.items() if pair[::-1] in means}


def _add_label_scores(
    summary: MethodSummary, outcomes: Sequence[Outcome], scorer: LabelFreeScorer | None
) -> MethodSummary:
    """The summary of a method with the ARI between its seeds and, given a scorer, the scores that need no classes."""
    labels = [o.arrays["labels"] for o in outcomes if o.trial.method == summary.method and o.finished]
    scores = {"stability": [100 * metrics.ari(a, b) for a, b in itertools.combinations(labels, 2)]}
    if scorer is not None:
        scores["neighbours"] = [scorer.neighbour_agreement(one) for one in labels]
        scores["silhouette"] = [value for one in labels if np.isfinite(value := scorer.silhouette(one))]
    return replace(summary, values=summary.values | scores)
