"""`compare(X, y, methods, seeds)`: several methods on one data set, each run alone, one table that can be trusted."""

import itertools
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from prodsc import files
from prodsc.bench.measures import scored_part
from prodsc.bench.summary import Line, summarise, to_csv, to_markdown
from prodsc.bench.trials import Limits, Outcome, Trial, run_trials
from prodsc.bench.unlabelled import BY_LABELS, BY_NEIGHBOURS, Unlabelled, tuning_score
from prodsc.core import metrics
from prodsc.errors import InputError, ParameterError
from prodsc.registry import method as method_class
from prodsc.sources.named import about_set, load_dataset
from prodsc.sources.rows import as_array

KNOWN = ("ACC", "NMI", "ARI")  # against labels
UNKNOWN = ("neighbours", "silhouette", "stability")  # without
COST = ("seconds", "peak_memory_mb")
HEADS = {
    "peak_memory_mb": "peak MB",
    "neighbours": "neighbours agree beyond chance, %",
    "stability": "seeds agree (ARI), %",
}

# The grids that the paper searched for its baselines (the first four), and ours where it says nothing.
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

Watch = Callable[[int, Trial, Outcome | None], None]


@dataclass
class ComparisonTable:
    """One line per method: mean and std over seeds, failures with their reason; `agreement` between methods."""

    lines: list[Line]
    metrics: tuple[str, ...]
    agreement: dict[tuple[str, str], float]  # NMI of the labels of two methods, mean over seeds
    chosen: dict[str, dict[str, Any]] = field(default_factory=dict)  # what tuning chose
    by: str = ""  # what it was chosen by

    def rows(self) -> list[list[str]]:
        return [
            [line.method, *(line.cell(metric) for metric in self.metrics), "; ".join(line.failures)]
            for line in self.lines
        ]

    def heads(self) -> list[str]:
        return ["method", *(HEADS.get(metric, metric) for metric in self.metrics), "failures"]

    def agreements(self) -> tuple[list[str], list[list[str]]]:
        """The methods whose labels can be compared, and a line of cells for each, its name first."""
        names = [line.method for line in self.lines if any(line.method in pair for pair in self.agreement)]
        return names, [[a, *("" if a == b else f"{self.agreement[a, b]:.0f}" for b in names)] for a in names]

    def markdown(self) -> str:
        parts = [to_markdown(self.heads(), self.rows())]
        names, cells = self.agreements()
        if len(names) > 1:
            parts.append("How much two methods agree (NMI of their labels, %):\n\n" + to_markdown(["", *names], cells))
        if self.chosen:
            parts.append(f"Tuned by {self.by}: " + "; ".join(f"{m} {dict(p)}" for m, p in self.chosen.items()) + "\n")
        return "\n".join(parts)

    def csv(self) -> str:
        heads = ["method", "runs", *itertools.chain(*((m, f"{m} std") for m in self.metrics)), "failures"]
        rows = [
            [line.method, line.runs, *itertools.chain(*((line.mean(m), line.std(m)) for m in self.metrics)),
             "; ".join(line.failures)]
            for line in self.lines
        ]  # fmt: skip
        return to_csv(heads, rows)


def compare(
    X: Any,
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
    watch: Watch = lambda number, trial, outcome: None,
) -> ComparisonTable:
    """Run every method with every seed in a process of its own.

    X: an array, a path, or a named data set; y only scores (without it, scores that need no labels are given). With
    `tune` each method's grid is searched by a score that needs no labels; `tune_with_labels` does it by ACC, which
    nobody with a real problem can. Given a folder `out`, results stay there and a stopped comparison goes on.
    """
    for name in methods:
        method_class(name)  # a typo speaks before anything runs
    folder = Path(tempfile.mkdtemp(prefix="prodsc-compare-")) if out is None else Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return _compare(
            X, y, methods, seeds, n_clusters, parameters or {}, limits, tune or tune_with_labels, tune_with_labels,
            folder, watch,
        )  # fmt: skip
    finally:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)


def _compare(
    X: Any, y: Any, methods: Sequence[str], seeds: int | Sequence[int], n_clusters: int | None,
    parameters: Mapping[str, Mapping[str, Any]], limits: Limits | None, tune: bool, with_labels: bool, folder: Path,
    watch: Watch,
) -> ComparisonTable:  # fmt: skip
    source = data_source(X, y, folder)
    data = load_dataset(source)
    k = n_clusters or (len(np.unique(data.y)) if data.y is not None else None)
    if k is None:
        raise ParameterError("compare needs the number of clusters: n_clusters=k (-k on the command line), or labels.")
    if with_labels and data.y is None:
        raise InputError("tuning with labels needs labels; give y, or tune without.")
    numbers = list(range(seeds)) if isinstance(seeds, int) else list(seeds)
    base = {method: {"n_clusters": k, **parameters.get(method, {})} for method in methods}
    trials_in = folder / "trials"
    scorer = None if data.y is not None and not tune else Unlabelled(scored_part(source).X)
    chosen: dict[str, dict[str, Any]] = {}
    if tune:
        for method in methods:
            grid = [base[method] | point for point in grid_of(method)]
            tried = run_trials(
                [Trial(source, method, numbers[0], point) for point in grid], trials_in, limits=limits, watch=watch
            )
            best = max(tried, key=lambda o: tuning_score(o, scorer, with_labels))
            base[method] = best.trial.parameters
            chosen[method] = {name: best.trial.parameters[name] for name in GRIDS.get(method, {})}
    trials = [Trial(source, method, seed, base[method]) for method in methods for seed in numbers]
    outcomes = run_trials(trials, trials_in, limits=limits, watch=watch)
    lines = summarise(outcomes)
    shown: tuple[str, ...] = KNOWN
    if data.y is None:
        assert scorer is not None
        lines = [
            _with_unlabelled(line, [o for o in outcomes if o.trial.method == line.method], scorer) for line in lines
        ]
        shown = UNKNOWN
    by = BY_LABELS if with_labels else BY_NEIGHBOURS
    return ComparisonTable(lines, (*shown, *COST), agreement(outcomes), chosen, by if chosen else "")


def data_source(X: Any, y: Any, folder: Path) -> str:
    """A name or path that every process can read: what was given, or a copy in the folder."""
    if isinstance(X, (str, Path)) and y is None:
        return str(X) if about_set(str(X)) is not None else str(Path(X).resolve())
    array = load_dataset(str(X)).X if isinstance(X, (str, Path)) else as_array(X)
    arrays = {"X": array} | ({} if y is None else {"y": np.asarray(y)})
    if y is not None and len(arrays["y"]) != len(array):
        raise InputError(f"y has {len(arrays['y'])} labels for {len(array)} rows of X. Give one label per row.")
    path = folder / "data.npz"
    with files.atomic(path) as part, part.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]
    return str(path.resolve())


def grid_of(method: str) -> list[dict[str, Any]]:
    """Every combination of a method's grid; one empty choice for a method without."""
    grid = GRIDS.get(method, {})
    return [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]


def agreement(outcomes: Sequence[Outcome]) -> dict[tuple[str, str], float]:
    """NMI in percent of the labels of every two methods, mean over the seeds that both finished."""
    labels = {
        (o.trial.method, o.trial.seed): o.arrays["labels"] for o in outcomes if not o.failed and "labels" in o.arrays
    }
    methods = list(dict.fromkeys(method for method, _ in labels))
    found = {}
    for a, b in itertools.permutations(methods, 2):
        shared = [s for m, s in labels if m == a and (b, s) in labels and len(labels[a, s]) == len(labels[b, s])]
        if shared:
            found[a, b] = float(np.mean([100 * metrics.nmi(labels[a, s], labels[b, s]) for s in shared]))
    return {pair: value for pair, value in found.items() if all((x, y) in found for x, y in (pair, pair[::-1]))}


def _with_unlabelled(line: Line, outcomes: Sequence[Outcome], scorer: Unlabelled) -> Line:
    found = [outcome.arrays["labels"] for outcome in outcomes if not outcome.failed]
    pairs = [100 * metrics.ari(a, b) for a, b in itertools.combinations(found, 2)]
    values = {
        "neighbours": [scorer.neighbours_agree(labels) for labels in found],
        "silhouette": [value for labels in found if np.isfinite(value := scorer.silhouette(labels))],
        "stability": pairs,
    }
    return Line(line.dataset, line.method, line.variant, line.values | values, line.runs, line.failures)
