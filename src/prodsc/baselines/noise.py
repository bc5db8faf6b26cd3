"""Labels for the rows that a density method calls noise."""

import warnings

import numpy as np
from sklearn.metrics import pairwise_distances_argmin

from prodsc.core.graph import largest_first

NOISE = -1  # the label of noise in HDBSCAN and EVoC


def assign_noise(X: np.ndarray, labels: np.ndarray) -> tuple[np.ndarray, int]:
    """Give each row that is called noise to the cluster with the nearest centroid.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        The rows, as the method was given them.
    labels : ndarray of shape (n,)
        Clusters 0, 1, ..., and -1 for noise.

    Returns
    -------
    labels : ndarray of shape (n,)
        Labels of all rows, the largest cluster first. Where every row is noise, all rows are one cluster.
    n_clusters : int
        Number of clusters.
    """
    known, noise = labels != NOISE, labels == NOISE
    names, numbers = np.unique(labels[known], return_inverse=True)
    if not len(names):
        warnings.warn(
            "every row is called noise, so all rows are one cluster. Lower min_samples or give more rows.",
            UserWarning,
            stacklevel=2,
        )
        return np.zeros(len(labels), dtype=np.int64), 1
    complete = np.empty(len(labels), dtype=np.int64)
    complete[known] = numbers
    if noise.any():
        centroids = np.stack([X[labels == name].mean(0) for name in names])
        complete[noise] = pairwise_distances_argmin(X[noise], centroids)
    return largest_first(complete, len(names))[1], len(names)
