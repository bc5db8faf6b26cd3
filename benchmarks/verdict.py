"""Does the verdict on labels track their quality? `python benchmarks/verdict.py [FIRST] [OUT.csv]`.

Good, poor and failed fits: tables of scikit-learn, toy shapes, shared data, spoilt parameters, shuffled columns, pure
noise. Those under STUDIED were in view when the rules of `pro_dsc.support` were chosen; those under UNSEEN were not.
Classes only score. The score of the verdict should rise with the ARI (Spearman's correlation), no fit with an ARI above
0.8 should be "not supported", and none below 0.1 "supported".
"""

import csv
import sys
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import sklearn.datasets as sd
from scipy.stats import spearmanr

from prodsc import PRODSC, diagnose, load_dataset
from prodsc.core import metrics

Data = tuple[np.ndarray, np.ndarray]
WARM_UP = {"training": {"start": "warm-up", "warmup_steps": 1}, "epochs": 1}


def shared(name: str, most: int = 3000) -> Callable[[], Data]:
    def load() -> Data:
        data = load_dataset(name)
        chosen = np.sort(np.random.default_rng(1).permutation(len(data.X))[:most])
        X = np.asarray(data.X[chosen], dtype=np.float32)
        return X.reshape(len(X), -1), data.y[chosen]

    return load


def shuffled(load: Callable[[], Data]) -> Callable[[], Data]:
    """Each column in another order: the same values without any structure."""

    def columns() -> Data:
        X, y = load()
        rng = np.random.default_rng(0)
        return np.stack([rng.permutation(column) for column in X.T], 1), y

    return columns


def noise(draw: Callable[[np.random.Generator], np.ndarray], k: int) -> Callable[[], Data]:
    """Rows without clusters, and classes by chance."""

    def rows() -> Data:
        rng = np.random.default_rng(0)
        X = draw(rng)
        return X, rng.integers(0, k, len(X))

    return rows


def ring(rng: np.random.Generator) -> np.ndarray:
    angle = 2 * np.pi * rng.random(1500)
    return np.c_[np.cos(angle), np.sin(angle)] + 0.05 * rng.standard_normal((1500, 2))


def table(load: Callable[..., Data]) -> Callable[[], Data]:
    return lambda: load(return_X_y=True)


def made(make: Callable[..., Data], **how: object) -> Callable[[], Data]:
    return lambda: make(random_state=0, **how)


def classes(n_informative: int, separation: float, k: int) -> Callable[[], Data]:
    return made(
        sd.make_classification,
        n_samples=1500,
        n_features=30,
        n_informative=n_informative,
        n_redundant=0,
        n_classes=k,
        n_clusters_per_class=1,
        class_sep=separation,
    )


digits = table(sd.load_digits)
STUDIED = {
    "wine": (table(sd.load_wine), {}),
    "breast cancer": (table(sd.load_breast_cancer), {}),
    "iris": (table(sd.load_iris), {}),
    "digits": (digits, {}),
    "digits, shuffled columns": (shuffled(digits), {}),
    "digits, gamma 1e5": (digits, {"gamma": 1e5, "training": {"start": "warm-up"}}),
    "moons": (made(sd.make_moons, n_samples=1000, noise=0.06), {}),
    "circles": (made(sd.make_circles, n_samples=1000, noise=0.05, factor=0.5), {}),
    "blobs": (made(sd.make_blobs, n_samples=1500, n_features=10, centers=6), {}),
    "one Gaussian": (noise(lambda rng: rng.standard_normal((1500, 10)), 5), {}),
    "a long Gaussian": (noise(lambda rng: rng.standard_normal((1500, 10)) * [8, 3, *[1] * 8], 3), {}),
    "a cube": (noise(lambda rng: rng.random((1500, 5)), 4), {}),
    "a ring": (noise(ring, 4), {}),
    "har-hapt561": (shared("hapt-561"), {}),
    "mnist": (shared("mnist"), {}),
    "fashion-mnist": (shared("fashion-mnist"), {}),
    "cifar-10 features": (shared("cifar10-efflite0"), {}),
}
UNSEEN = {
    "four digits": (lambda: sd.load_digits(n_class=4, return_X_y=True), {}),
    "seven digits, hardly trained": (lambda: sd.load_digits(n_class=7, return_X_y=True), WARM_UP),
    "classes far apart": (classes(10, 2.0, 5), {}),
    "classes nearer": (classes(10, 1.0, 5), {}),
    "classes that overlap": (classes(10, 0.4, 5), {}),
    "classes in 3 of 30 columns": (classes(3, 2.0, 4), {}),
    "nested shells": (made(sd.make_gaussian_quantiles, n_samples=1500, n_features=5, n_classes=3), {}),
    "blobs of spread 3": (made(sd.make_blobs, n_samples=1500, n_features=12, centers=9, cluster_std=3.0), {}),
    "blobs of spread 6": (made(sd.make_blobs, n_samples=1500, n_features=12, centers=9, cluster_std=6.0), {}),
    "30 blobs": (made(sd.make_blobs, n_samples=3000, n_features=40, centers=30), {}),
    "heavy tails": (noise(lambda rng: rng.standard_t(2, (1500, 20)), 6), {}),
    "a cube in 20 dimensions": (noise(lambda rng: rng.random((1500, 20)), 8), {}),
    "iris, shuffled columns": (shuffled(table(sd.load_iris)), {}),
    "wine, hardly trained": (table(sd.load_wine), WARM_UP),
    "orl": (shared("orl"), {}),
    "reuters": (shared("reuters-21578"), {}),
}


def main(first: str = "", out: str = "docs/verdict.csv") -> None:
    rows = []
    for part, fits in {"studied": STUDIED, "unseen": UNSEEN}.items():
        for name, (load, how) in fits.items():
            if not name.startswith(first):
                continue
            X, y = load()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = PRODSC(len(np.unique(y)), random_state=0, **how).fit(X)
                support = diagnose(model, X).support
            ari = metrics.ari(y, model.labels_)
            rows.append((part, name, f"{ari:.3f}", support.word, f"{support.score:.3f}", f"{support.replicated:.3f}"))
            print("  ".join(rows[-1]), flush=True)
    for part in ("studied", "unseen"):
        pairs = np.array([(float(row[2]), float(row[4])) for row in rows if row[0] == part])
        print(f"{part}: {len(pairs)} fits, Spearman {spearmanr(*pairs.T).statistic:.3f}")
    condemned = [row[1] for row in rows if float(row[2]) > 0.8 and row[3] == "not supported"]
    blessed = [row[1] for row in rows if float(row[2]) < 0.1 and row[3] == "supported"]
    print(f"ARI above 0.8 but not supported: {condemned}; below 0.1 but supported: {blessed}")
    if not first:
        with Path(out).open("w", newline="") as file:
            csv.writer(file).writerows([("part", "fit", "ari", "labels", "score", "replicated"), *rows])


if __name__ == "__main__":
    main(*sys.argv[1:])
