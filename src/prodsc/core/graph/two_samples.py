"""Do new rows lie where old rows lie? A test for each row, by the share of new rows among its neighbours.

If old and new rows come from one distribution, it is a matter of chance which of them are the new ones. The mean and
the variance of a share are then known exactly, whatever the distribution: new rows are drawn without replacement.
"""

from dataclasses import dataclass

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from prodsc.core.graph.neighbours import nearest_neighbours
from prodsc.types import OtherRows, Rows

N_NEIGHBORS = 15  # as the walk of a fit has; fewer rows are too few to compare


@dataclass(frozen=True)
class TwoSamples:
    """How new rows lie among old ones.

    Parameters
    ----------
    z : ndarray of shape (n,)
        For each new row, by how many standard deviations the share of new rows around it is above chance.
    share : float
        The mean share of new rows among the neighbours of a new row.
    expected, deviation : float
        Its mean and standard deviation if it is chance which rows are new.
    """

    z: np.ndarray
    share: float
    expected: float
    deviation: float


def compare_samples(new: Rows, old: OtherRows, n_neighbors: int = N_NEIGHBORS, n_draws: int = 100) -> TwoSamples:
    """Compare new rows with old ones by their neighbours (cosine) among both.

    The share around a row is that of new rows among the neighbours of its neighbours.

    Parameters
    ----------
    new : Tensor of shape (n, d)
    old : Tensor of shape (m, d)
    n_neighbors : int
        Neighbours of a row.
    n_draws : int
        Random draws of new rows from which the deviation of the mean share is estimated.

    Returns
    -------
    TwoSamples
    """
    graph = _neighbour_matrix(torch.cat([new, old]), n_neighbors)
    n, both = len(new), len(new) + len(old)
    is_new = np.arange(both) < n
    weights = (graph @ graph)[:n]
    mean, deviation = share_moments(weights, n, both)
    share = float((graph[:n] @ is_new).mean())
    random = np.random.default_rng(0)
    drawn = np.array([random.permutation(is_new) for _ in range(n_draws)])
    draws = ((graph @ drawn.T).T * drawn).sum(1) / n
    return TwoSamples((weights @ is_new - mean) / deviation, share, (n - 1) / (both - 1), float(draws.std()))


def share_moments(weights: scipy.sparse.csr_array, n: int, both: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of sum_j w_ij m_j, where n of the m are 1, among them m_i, and chance chose them.

    Parameters
    ----------
    weights : sparse array of shape (n, both)
        Rows that sum to 1; row i belongs to the i-th of all rows.
    n, both : int
        Number of new rows, and of all.

    Returns
    -------
    mean, deviation : ndarray of shape (n,)
    """
    own = weights.diagonal()[: weights.shape[0]]
    squares = weights.multiply(weights).sum(axis=1) - own**2
    rest, others = 1 - own, both - 1
    p = (n - 1) / others
    variance = p * (1 - p) * (squares - rest**2 / others) * others / max(1, others - 1)
    return own + rest * p, np.sqrt(np.maximum(variance, np.finfo(float).tiny))


def groups_of(chosen: np.ndarray, X: Tensor, n_neighbors: int = N_NEIGHBORS) -> list[np.ndarray]:
    """Chosen rows in groups that are connected by mutual neighbours, the largest first; small groups are left out.

    Parameters
    ----------
    chosen : ndarray of int
        Numbers of rows of X.
    X : Tensor of shape (n, d)
        All rows, among which neighbours are looked for.
    n_neighbors : int
        Neighbours of a row, and the fewest rows of a group.

    Returns
    -------
    list of ndarray of int
        Numbers of the rows of each group.
    """
    if len(chosen) < n_neighbors:
        return []
    graph = _neighbour_matrix(X, n_neighbors)[chosen][:, chosen]
    mutual = graph.minimum(graph.T)
    count, labels = scipy.sparse.csgraph.connected_components(mutual, directed=False)
    found = [chosen[labels == i] for i in range(count)]
    return sorted((rows for rows in found if len(rows) >= n_neighbors), key=len, reverse=True)


def _neighbour_matrix(X: Rows, n_neighbors: int) -> scipy.sparse.csr_array:
    """G with 1/k at each of the k neighbours of a row."""
    near = nearest_neighbours(X, n_neighbors).cpu().numpy()
    n, k = near.shape
    return scipy.sparse.csr_array((np.full(n * k, 1 / k), (np.repeat(np.arange(n), k), near.ravel())), shape=(n, n))
