"""Which score without labels shows when a fit is best? `python benchmarks/criteria.py [SETS] [small]`.

Trains with and without neighbour views, with three etas, for longer than is good, scores the weights every 20 steps,
and prints for each criterion its rank correlation with ACC: within one run (mean over runs), and over all runs of a
set. `small` trains a network of half the width on half the batch, at a quarter of the cost. Labels only score.
"""

import sys
import warnings

import numpy as np
import torch
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, silhouette_score
from snapshots import Snapshots, shared

from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.core.graph import nearest_neighbours, spectral_partition
from prodsc.core.self_expression import perplexity
from prodsc.pro_dsc.labeller import make_kernel

ROWS = 2500
SMALL = {"batch_size": 512, "hidden_size": 256}
FILES = {
    "hapt-561": "har_hapt561",
    "cifar10-efflite0": "cifar10_efflite0",
    "mnist": "mnist",
    "fashion-mnist": "fashion_mnist",
    "flowers-efflite0": "flowers102_efflite0",
    "reuters-21578": "reuters21578_top10",
}
RUNS = [{"eta": eta, "n_neighbors": views} for views in (0, "auto") for eta in (0.1, 0.15, 0.25)]
SIGNS = {"agreement": 1, "inertia": -1, "stability": 1, "silhouette in Y": 1, "loss": -1, "perplexity near n/k": 1}


def criteria(model: PRODSC, X: np.ndarray, y: np.ndarray, snapshots: Snapshots) -> list[dict[str, float]]:
    """All criteria and ACC at every snapshot."""
    rows, config, k = model._new_rows(X), model.config_, model.n_clusters_
    near = nearest_neighbours(torch.cat([*rows.chunks()]).flatten(1), config.rules.max_neighbors).numpy()
    table, before = [], None
    for snapshot in snapshots.by_step.values():
        model.network_.load_state_dict(snapshot.weights)
        Y = model.labeller_.Y(rows)
        partition = spectral_partition(make_kernel(config, Y, power=1.0), k, 3, 0)
        labels = partition.labels(Y)
        several = len(np.unique(labels)) > 1
        table.append(
            {
                "ACC": metrics.accuracy(y, labels),
                "agreement": metrics.agreement_beyond_chance(labels, near),
                "inertia": partition.inertia,
                "stability": np.nan if before is None else adjusted_rand_score(before, labels),
                "silhouette in Y": silhouette_score(Y.numpy(), labels, metric="cosine") if several else np.nan,
                "loss": snapshot.history["total"],
                "perplexity near n/k": -abs(np.log(k * perplexity(Y, config.eta))),
            }
        )
        before = labels
    return table


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True) if name == "digits" else shared(FILES[name])
    chosen = np.sort(np.random.default_rng(0).permutation(len(X))[:ROWS])
    return np.asarray(X[chosen], dtype=np.float32).reshape(len(chosen), -1), y[chosen]


def correlation(table: list[dict[str, float]], criterion: str) -> float:
    pairs = np.array([(row["ACC"], SIGNS[criterion] * row[criterion]) for row in table])
    return float(spearmanr(pairs[np.isfinite(pairs).all(1)]).statistic)


def main(*names: str) -> None:
    warnings.simplefilter("ignore")  # etas that collapse are part of the study
    print("| data | criterion | within a run | over all runs | ACC it picks | best ACC |\n|---|---|---|---|---|---|")
    how = SMALL if "small" in names else {}
    for name in [name for name in names if name != "small"] or ("digits", *FILES):
        X, y = rows_of(name)
        runs = []
        for run in RUNS:
            per_epoch = max(1, len(X) // how.get("batch_size", 1024))
            model = PRODSC.from_flat(len(np.unique(y)), keep_weights="last", epochs=240 // per_epoch, **run, **how)
            snapshots = Snapshots(every=20)
            model.fit(X, callbacks=[snapshots])
            runs.append(criteria(model, X, y, snapshots))
        every = [row for run in runs for row in run]
        for criterion, sign in SIGNS.items():
            within = np.nanmean([correlation(run, criterion) for run in runs])
            picked = max(every, key=lambda row: np.nan_to_num(sign * row[criterion], nan=-np.inf))["ACC"]
            best = max(row["ACC"] for row in every)
            over = correlation(every, criterion)
            print(f"| {name} | {criterion} | {within:.2f} | {over:.2f} | {picked:.3f} | {best:.3f} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
