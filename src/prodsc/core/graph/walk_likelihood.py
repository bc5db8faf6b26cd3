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
    return np.asarray(ends @ np.log((joint + 1e-9) / np.outer(size, size)).astype(np.float32))


class Gaussians:
    """Rows as draws from Gaussians, one for each cluster, with one covariance S: linear discriminant analysis.

    Parameters
    ----------
    points : ndarray of shape (n, d)
        Unit rows.
    """

    def __init__(self, points: np.ndarray):
        self.points = points
        self.moments = points.T @ points / len(points)

    def scores(self, labels: np.ndarray, k: int) -> np.ndarray:
        """Log-likelihood of each cluster for each row, up to a constant of the row.

        x'S^-1 m_c - m_c'S^-1 m_c / 2 + log p_c

        Parameters
        ----------
        labels : ndarray of int, shape (n,)
        k : int

        Returns
        -------
        ndarray of shape (n, k)
        """
        means, within, shares = self._fit(labels, k)
        directions = np.linalg.solve(_regularised(within), means.T)
        offsets = np.log(np.maximum(shares, 1e-12)) - (means.T * directions).sum(0) / 2
        return np.asarray(self.points @ directions + offsets)

    def log_likelihood(self, labels: np.ndarray, k: int) -> float:
        """Mean over rows of the log-likelihood of the row and its cluster, without constants.

        Parameters
        ----------
        labels : ndarray of int, shape (n,)
        k : int

        Returns
        -------
        float
        """
        _, within, shares = self._fit(labels, k)
        S, sizes = _regularised(within), shares[shares > 0]
        spread = np.linalg.slogdet(S)[1] + np.trace(np.linalg.solve(S, within))
        return float((sizes * np.log(sizes)).sum() - spread / 2)

    def _fit(self, labels: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Means of the clusters, covariance within them, and their shares of the rows."""
        n = len(self.points)
        counts = np.bincount(labels, minlength=k)
        members = scipy.sparse.csr_array((np.ones(n), (labels, np.arange(n))), (k, n))
        means = (members @ self.points) / np.maximum(counts, 1)[:, None]
        return means, self.moments - (means.T * counts / n) @ means, counts / n


def log_likelihood(
    walks: Sequence[Walk], gaussians: Gaussians, labels: np.ndarray, k: int, n_neighbors: Sequence[int]
) -> float:
    """Mean over rows of the log-likelihood of the steps to all neighbours and of the row, without constants.

    Parameters
    ----------
    walks : sequence of Walk
        On the same rows.
    gaussians : Gaussians
        Of the rows.
    labels : ndarray of int, shape (n,)
    k : int
    n_neighbors : sequence of int
        Neighbours of a row in each walk: each is one observation.

    Returns
    -------
    float
    """
    kept = [information(joint_distribution(walk, labels, k)[0]) for walk in walks]
    return float(np.dot(n_neighbors, kept) + gaussians.log_likelihood(labels, k))


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
        scores = score(labels)
        moved = scores.argmax(1)
        lost = np.bincount(moved, minlength=scores.shape[1]) == 0
        moved = np.where(lost[labels], labels, moved)
        n_moves = int((moved != labels).sum())
        labels = moved
        if n_moves < 1e-3 * len(labels):
            break
    return labels


def _regularised(within: np.ndarray) -> np.ndarray:
    d = len(within)
    return within + PRECISION / d * np.eye(d)
