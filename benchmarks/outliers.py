"""Rows of a class the model has never seen, found by `outlier_score`: `python benchmarks/outliers.py digits [rows]`.

Each class in turn is left out: two thirds of the other rows are fitted, the last third and the class left out are
scored. AUROC is how well a score ranks the class left out above the held-out rows; labels only make that split and
score. Peers see the same unit rows in the same run: local outlier factor, isolation forest, and 1 - confidence.
"""

import sys

import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.preprocessing import normalize

from prodsc import PRODSC, load_dataset


def main(name: str, most: int = 6000) -> None:
    X, y = sample(name, most)
    found: dict[str, list[float]] = {}
    flagged = []
    for left_out in np.unique(y):
        inside = np.random.default_rng(left_out).permutation(np.flatnonzero(y != left_out))
        known, fresh = np.split(inside, [2 * len(inside) // 3])
        asked = np.concatenate([fresh, np.flatnonzero(y == left_out)])
        strange = np.arange(len(asked)) >= len(fresh)
        model = PRODSC(len(np.unique(y)) - 1, random_state=0).fit(X[known])
        flagged.append((model.outlier_score(X[asked]) > 0.95)[~strange].mean())
        scores = {
            "residual (ours)": model.outlier_score(X[asked], raw=True),
            "1 - confidence": 1 - model.predict_proba(X[asked]).max(1),
            "local outlier factor": -LocalOutlierFactor(novelty=True).fit(X[known]).score_samples(X[asked]),
            "isolation forest": -IsolationForest(random_state=0).fit(X[known]).score_samples(X[asked]),
        }
        for word, score in scores.items():
            found.setdefault(word, []).append(float(roc_auc_score(strange, score)))
        print(f"without {left_out}: " + "  ".join(f"{word} {of[-1]:.3f}" for word, of in found.items()), flush=True)
    for word, of in found.items():
        print(f"{name:<18} {word:<21} AUROC {np.mean(of):.3f} ± {np.std(of):.3f}, lowest {min(of):.3f}")
    print(f"{name:<18} held-out rows of known classes with a score above 0.95: {np.mean(flagged):.3f} (0.05 expected)")


def sample(name: str, most: int) -> tuple[np.ndarray, np.ndarray]:
    data = load_dataset(name)
    chosen = np.sort(np.random.default_rng(0).permutation(len(data.X))[:most])
    X = np.asarray(data.X[chosen], dtype=np.float32)
    return normalize(X.reshape(len(X), -1)), data.y[chosen]


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
