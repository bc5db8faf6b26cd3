"""Typical rows of clusters."""

import numpy as np


def likeness(Z: np.ndarray, values: np.ndarray | None = None, vectors: np.ndarray | None = None) -> np.ndarray:
    """How much each row of a cluster is like the others: z'Sz, the mean square of its products with them.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        The representation of the rows of one cluster.
    values, vectors : ndarray, optional
        Eigenvalues and eigenvectors (columns) of S = Z'Z / n, if they are known.

    Returns
    -------
    ndarray of shape (n,)
    """
    if values is None or vectors is None:
        return np.einsum("ij,ij->i", Z @ (Z.T @ Z / max(len(Z), 1)), Z)
    return np.square(Z @ vectors) @ values


def typical_rows(Z: np.ndarray, labels: np.ndarray, k: int, n_rows: int = 8) -> list[np.ndarray]:
    """The rows of each cluster that are most like the others.

    Parameters
    ----------
    Z : ndarray of shape (n, d)
        The representation.
    labels : ndarray of int, shape (n,)
        The cluster of each row.
    k : int
        Number of clusters.
    n_rows : int
        Rows of a cluster, at most.

    Returns
    -------
    list of ndarray of int
        Row numbers, the most typical first.
    """
    found = []
    for cluster in range(k):
        members = np.flatnonzero(labels == cluster)
        found.append(members[np.argsort(-likeness(Z[members]), kind="stable")[:n_rows]])
    return found
