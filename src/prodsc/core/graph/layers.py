"""Nested layers of clusters: a clustering, and coarser ones that are unions of its clusters."""

import numpy as np
from scipy.cluster.hierarchy import cut_tree, linkage

from prodsc.core.graph.spectral import largest_first

NOISE = -1  # rows in no cluster stay in none


def nested_layers(Z: np.ndarray, labels: np.ndarray, min_clusters: int = 2) -> list[np.ndarray]:
    """Halve the number of clusters again and again, by average linkage of the clusters' mean directions.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        Representation of the rows; their length is ignored.
    labels : ndarray of int, shape (n,)
        Clusters 0, 1, ...; rows with a negative label are in no cluster, in every layer.
    min_clusters : int
        The coarsest layer has at least so many.

    Returns
    -------
    list of ndarray of int, shape (n,)
        The labels, then coarser ones, each cluster a union of clusters of the layer before, the largest first.
    """
    labels = np.asarray(labels)
    known = labels >= 0
    fine = np.unique(labels[known])
    layers = [labels.copy()]
    if len(fine) < 2:
        return layers
    unit = Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), np.finfo(np.float64).tiny)
    tree = linkage(np.stack([unit[labels == c].mean(0) for c in fine]), "average")
    members = np.searchsorted(fine, labels[known])
    n_clusters = len(fine) // 2
    while n_clusters >= max(min_clusters, 2):
        layer = np.full(len(labels), NOISE, dtype=labels.dtype)
        layer[known] = largest_first(cut_tree(tree, n_clusters)[:, 0][members], n_clusters)[1]
        layers.append(layer)
        n_clusters //= 2
    return layers
