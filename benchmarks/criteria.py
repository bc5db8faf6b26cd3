"""Which number that needs no labels tells when a fit is best? `python benchmarks/criteria.py [SETS] [small]`.

Trains with and without neighbour views, with three etas, for longer than is good, looks every 20 steps, and prints for
each criterion its rank correlation with ACC: over the looks of one run (mean over runs), and over all looks of all runs
of a set. `small` trains a network of half the width on half the batch, at a quarter of the cost. Labels only score.
"""

import sys
import warnings

import numpy as np
import torch
from looks import shared
from scipy.stats import spearmanr
from sklearn.datasets import load_digits
from sklearn.metrics import adjusted_rand_score, silhouette_score

from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.core.graph import spectral_partition
from prodsc.core.self_expression import perplexity
from prodsc.training import Callback, Training

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


class Looks(Callback):
    """At every 20th joint step: all criteria and ACC."""

    def __init__(self, model: PRODSC, y: np.ndarray):
        self.model, self.y, self.found, self.before = model, y, [], None

    def on_step(self, training: Training) -> None:
        if training.current.name != "joint" or training.step % 20:
            return
        model = self.model
        agreement, _ = model._look()
        Y = torch.cat([*model._outputs(model.network_.y, model._training_rows.chunks())])
        partition = spectral_partition(model._kernel(Y), model.n_clusters_, 3, 0)
        labels = partition.labels(Y)
        training.network.train()
        stable = np.nan if self.before is None else adjusted_rand_score(self.before, labels)
        self.before = labels
        several = len(np.unique(labels)) > 1
        self.found.append(
            {
                "ACC": metrics.accuracy(self.y, labels),
                "agreement": agreement,
                "inertia": partition.inertia,
                "stability": stable,
                "silhouette in Y": silhouette_score(Y.numpy(), labels, metric="cosine") if several else np.nan,
                "loss": training.history.last()["total"],
                "perplexity near n/k": -abs(np.log(model.n_clusters_ * perplexity(Y, model.eta))),
            }
        )


def rows_of(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, y = load_digits(return_X_y=True) if name == "digits" else shared(FILES[name])
    chosen = np.sort(np.random.default_rng(0).permutation(len(X))[:ROWS])
    return np.asarray(X[chosen], dtype=np.float32).reshape(len(chosen), -1), y[chosen]


def correlation(looks: list[dict[str, float]], criterion: str) -> float:
    pairs = np.array([(look["ACC"], SIGNS[criterion] * look[criterion]) for look in looks])
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
            looks = Looks(model, y)
            model.fit(X, callbacks=[looks])
            runs.append(looks.found)
        every = [look for run in runs for look in run]
        for criterion, sign in SIGNS.items():
            within = np.nanmean([correlation(run, criterion) for run in runs])
            picked = max(every, key=lambda look: np.nan_to_num(sign * look[criterion], nan=-np.inf))["ACC"]
            best = max(look["ACC"] for look in every)
            over = correlation(every, criterion)
            print(f"| {name} | {criterion} | {within:.2f} | {over:.2f} | {picked:.3f} | {best:.3f} |", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
