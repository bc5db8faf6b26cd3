"""How likely labels make a walk between rows and the rows themselves, and labels that make both more likely.

Each of the m neighbours of a row is one observation of its cluster, by the block model of the walk; the row itself is
another, by Gaussians with one common covariance. The sum of the two decides between labellings.
"""

from collections.abc import Callable, Sequence

import numpy as np
import scipy.sparse

from prodsc.core.graph.walk import Walk
from prodsc.core.graph.walk_information import information, joint_distribution

PRECISION = 0.1  # of the coding rate, as PRO-DSC's eps: directions with less variance than this / d do not count
WALK_STEPS = 3  # length of the walk by which a row moves: less noise than one step


def walk_scores(walk: Walk, labels: np.ndarray, k: int) -> np.ndarray:
    """Log-likelihood ratio of each cluster for one neighbour of each row, n x k.

    Parameters
    ----------
    walk : Walk
    labels : ndarray of int, shape (n,)
    k : int
        Number of clusters.

    Returns
    -------
    ndarray of shape (n, k)
    """
    joint, ends = joint_distribution(walk, labels, k, WALK_STEPS)
    size = joint.sum(1) + 1e-12
    return np.asarray(ends @ np.log((joint + 1e-9) / np.outer(size, size)))


def row_scores(points: np.ndarray, labels: np.ndarray, k: int) -> np.ndarray:
    """Log-posterior of each cluster for each row, by Gaussians with one covariance S: linear discriminant analysis.

    x'S^-1 m_c - m_c'S^-1 m_c / 2 + log p_c, minus the log of the sum over clusters.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        Unit rows.
    labels : ndarray of int, shape (n,)
    k : int

    Returns
    -------
    ndarray of shape (n, k)
    """
    means, within, shares = _moments(points, labels, k)
    directions = np.linalg.solve(_regularised(within), means.T)
    scores = points @ directions - (means.T * directions).sum(0) / 2 + np.log(np.maximum(shares, 1e-12))
    largest = scores.max(1, keepdims=True)
    return np.asarray(scores - largest - np.log(np.exp(scores - largest).sum(1, keepdims=True)))


def log_likelihood(
    walks: Sequence[Walk], points: np.ndarray, labels: np.ndarray, k: int, n_neighbors: Sequence[int]
) -> float:
    """Mean over rows of the log-likelihood of the steps to all neighbours and of the row, without constants.

    Parameters
    ----------
    walks : sequence of Walk
        On the same rows.
    points : ndarray of shape (n, d)
        Unit rows.
    labels : ndarray of int, shape (n,)
    k : int
    n_neighbors : sequence of int
        Neighbours of a row in each walk: each is one observation.

    Returns
    -------
    float
    """
    _, within, shares = _moments(points, labels, k)
    S = _regularised(within)
    sizes = shares[shares > 0]
    of_rows = (sizes * np.log(sizes)).sum() - np.linalg.slogdet(S)[1] / 2 - np.trace(np.linalg.solve(S, within)) / 2
    kept = [information(joint_distribution(walk, labels, k)[0]) for walk in walks]
    return float(np.dot(n_neighbors, kept) + of_rows)


def climb(labels: np.ndarray, score: Callable[[np.ndarray], np.ndarray], max_rounds: int = 20) -> np.ndarray:
    """Move each row to the cluster with its largest score until fewer than one in a thousand moves.

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
    score : function
        From labels to the scores of each row, n x k.
    max_rounds : int

    Returns
    -------
    ndarray of int
        With all clusters of `labels`: one that would lose all of its rows keeps them.
    """
    for _ in range(max_rounds):
        moved = score(labels).argmax(1)
        lost = np.setdiff1d(labels, moved)
        moved = np.where(np.isin(labels, lost), labels, moved)
        n_moves = int((moved != labels).sum())
        labels = moved
        if n_moves < 1e-3 * len(labels):
            break
    return labels


def _moments(points: np.ndarray, labels: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Means of the clusters, covariance within them, and their shares of the rows."""
    counts = np.bincount(labels, minlength=k)
    n = len(points)
    members = scipy.sparse.csr_array((np.ones(n), (labels, np.arange(n))), (k, n))
    means = (members @ points) / np.maximum(counts, 1)[:, None]
    rest = points - means[labels]
    return means, rest.T @ rest / n, counts / n


def _regularised(within: np.ndarray) -> np.ndarray:
    d = len(within)
    return within + PRECISION / d * np.eye(d)
