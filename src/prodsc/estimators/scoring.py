"""Scores of labels that need no classes."""

import numpy as np
from sklearn.metrics import silhouette_score

from prodsc.core import metrics
from prodsc.core.graph import neighbour_index
from prodsc.random import sorted_subset


class LabelFreeScorer:
    """Scores of labels on a sample of rows, by the nearest neighbours of each row.

    Parameters
    ----------
    X : array of shape (n, ...)
        The rows that are labelled.
    max_rows : int, default=5000
        Rows that are compared; a random sample of more.
    n_neighbors : int, default=10
        Neighbours of a row, by angle.
    """

    def __init__(self, X: np.ndarray, max_rows: int = 5000, n_neighbors: int = 10):
        self.rows = sorted_subset(len(X), max_rows)
        flat = np.asarray(X[self.rows], dtype=np.float32).reshape(len(self.rows), -1)
        norms = np.linalg.norm(flat, axis=1, keepdims=True)
        self.points = flat / np.where(norms > 0, norms, 1.0)
        k = min(n_neighbors, len(self.points) - 1)
        self.neighbours = neighbour_index(self.points, k).kneighbors(return_distance=False)

    def neighbour_agreement(self, labels: np.ndarray) -> float:
        """How often a row and its neighbours share a label, beyond chance, in percent."""
        return 100 * metrics.agreement_beyond_chance(labels[self.rows], self.neighbours)

    def silhouette(self, labels: np.ndarray) -> float:
        """The silhouette by angle; NaN for a single cluster."""
        sampled = labels[self.rows]
        if not 1 < len(np.unique(sampled)) < len(sampled):
            return float("nan")
        return float(silhouette_score(self.points, sampled, metric="cosine"))
