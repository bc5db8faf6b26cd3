"""Scores of labels that need no true classes."""

import numpy as np


def same_label_share(labels: np.ndarray, neighbours: np.ndarray, rows: np.ndarray | None = None) -> float:
    """The mean share of the neighbours of a row that have its label.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    neighbours : ndarray of shape (m, k)
        Numbers of the neighbours of each row.
    rows : ndarray of shape (m,), optional
        Numbers of the rows; by default 0, ..., n - 1.

    Returns
    -------
    float
    """
    own = labels if rows is None else labels[rows]
    return float((labels[neighbours] == own[:, None]).mean())


def agreement_beyond_chance(labels: np.ndarray, neighbours: np.ndarray) -> float:
    """`same_label_share`, scaled so that shuffled labels score 0 and perfect ones 1.

    Without the correction the best score is that of one cluster with nearly all rows.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    neighbours : ndarray of shape (n, k)
        Numbers of the neighbours of each row.

    Returns
    -------
    float
    """
    chance = float(np.square(np.unique(labels, return_counts=True)[1] / len(labels)).sum())
    return (same_label_share(labels, neighbours) - chance) / max(1 - chance, 1 / len(labels))


def evenness(labels: np.ndarray) -> float:
    """Entropy of the sizes of the clusters, divided by its largest value: 1 if all clusters have the same size.

    Parameters
    ----------
    labels : ndarray of shape (n,)

    Returns
    -------
    float
    """
    sizes = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(sizes * np.log(sizes)).sum() / np.log(len(sizes))) if len(sizes) > 1 else 0.0
