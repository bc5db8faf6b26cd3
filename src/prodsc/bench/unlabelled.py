"""How good are labels when nobody knows the truth? The one place that says by what settings are chosen."""

import numpy as np
from sklearn.metrics import silhouette_score
from sklearn.neighbors import NearestNeighbors

from prodsc.bench.trials import Outcome
from prodsc.core import metrics
from prodsc.random import sorted_subset

SAMPLE = 5000  # rows that label-free scores look at
NEAREST = 10
BY_NEIGHBOURS = "neighbours that agree beyond chance, without labels"
BY_LABELS = "ACC, with the true labels"


def tuning_score(outcome: Outcome, scorer: "Unlabelled | None", with_labels: bool = False) -> float:
    """What `compare --tune` and `tune` choose settings by, higher is better; a failure is below everything."""
    if outcome.failed:
        return -np.inf
    if with_labels:
        return outcome.numbers["ACC"]
    assert scorer is not None
    return scorer.neighbours_agree(outcome.arrays["labels"])


class Unlabelled:
    """Scores of labels that need no truth, on a sample of rows."""

    def __init__(self, X: np.ndarray):
        self.rows = sorted_subset(len(X), SAMPLE)
        flat = np.asarray(X[self.rows], dtype=np.float32).reshape(len(self.rows), -1)
        norms = np.linalg.norm(flat, axis=1, keepdims=True)
        self.points = flat / np.where(norms > 0, norms, 1.0)
        k = min(NEAREST, len(self.points) - 1)
        self.neighbours = NearestNeighbors(n_neighbors=k).fit(self.points).kneighbors(return_distance=False)

    def neighbours_agree(self, labels: np.ndarray) -> float:
        """`agreement_beyond_chance` with the nearest rows by angle, in percent."""
        return 100 * metrics.agreement_beyond_chance(labels[self.rows], self.neighbours)

    def silhouette(self, labels: np.ndarray) -> float:
        mine = labels[self.rows]
        if not 1 < len(np.unique(mine)) < len(mine):
            return float("nan")
        return float(silhouette_score(self.points, mine, metric="cosine"))
