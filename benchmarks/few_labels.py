"""How much a few labels or links improve a fit: `python benchmarks/few_labels.py digits [rows] [seeds]`.

Each seed draws labels (so many rows of each class) or pairs of rows at random; a pair is a must-link or a cannot-link
as its classes say. ACC is of the rows of which nothing was known. Clusters are matched to classes for PRO-DSC with
links or with nothing; with labels its clusters have names (`known_clusters_`), and a row is right when that name is.
Peers learn from the same labels on the same unit rows: logistic regression and label spreading of scikit-learn.
"""

import sys
import warnings
from typing import Any

import numpy as np
from outliers import sample
from sklearn.linear_model import LogisticRegression
from sklearn.semi_supervised import LabelSpreading

from prodsc import PRODSC
from prodsc.core import metrics

HOW = {"batch_size": 512, "hidden_size": 256}  # half of the defaults: a quarter of their cost, and 36 fits to make
SETTINGS = [("labels", 0), ("labels", 1), ("labels", 5), ("labels", 10), ("pairs", 100), ("pairs", 1000)]


def main(name: str, most: int = 6000, seeds: int = 3) -> None:
    X, y = sample(name, most)
    for kind, n in SETTINGS:
        found: dict[str, list[float]] = {}
        for seed in range(seeds):
            for method, value in (labels if kind == "labels" else pairs)(X, y, n, seed).items():
                found.setdefault(method, []).append(value)
        what = f"{n} labels a class" if kind == "labels" else f"{n} pairs"
        for method, values in found.items():
            each = ", ".join(f"{value:.3f}" for value in values)
            line = f"{method:<20} ACC {np.mean(values):.3f} ± {np.std(values):.3f}  ({each})"
            print(f"{name:<17} {what:<18} {line}", flush=True)


def labels(X: np.ndarray, y: np.ndarray, n: int, seed: int) -> dict[str, float]:
    known = np.full(len(y), -1)
    for label in np.unique(y):
        rows = np.random.default_rng((seed, label)).permutation(np.flatnonzero(y == label))[:n]
        known[rows] = label
    asked = known < 0
    model = fitted(X, y, seed, known_labels=known)
    if n == 0:
        return {"pro-dsc": metrics.scores(y, model.labels_)["ACC"]}
    names = np.array([model.known_clusters_.get(cluster, -1) for cluster in range(model.n_clusters_)])
    regression = LogisticRegression(C=100, max_iter=1000).fit(X[~asked], y[~asked])
    spreading = LabelSpreading(kernel="knn", n_neighbors=10, max_iter=100).fit(X, known)
    return {
        "pro-dsc": float((names[model.labels_] == y)[asked].mean()),
        "logistic regression": float((regression.predict(X) == y)[asked].mean()),
        "label spreading": float((spreading.transduction_ == y)[asked].mean()),
    }


def pairs(X: np.ndarray, y: np.ndarray, n: int, seed: int) -> dict[str, float]:
    random = np.random.default_rng(seed)
    drawn = np.array([random.choice(len(y), 2, replace=False) for _ in range(n)])
    together = y[drawn[:, 0]] == y[drawn[:, 1]]
    model = fitted(X, y, seed, must_link=drawn[together], cannot_link=drawn[~together])
    asked = np.setdiff1d(np.arange(len(y)), drawn)
    return {"pro-dsc": metrics.scores(y[asked], model.labels_[asked])["ACC"]}


def fitted(X: np.ndarray, y: np.ndarray, seed: int, **known: Any) -> PRODSC:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the guard says of the plain fit is not the subject here
        return PRODSC.from_flat(len(np.unique(y)), random_state=seed, **HOW).fit(X, **known)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
