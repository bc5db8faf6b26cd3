"""Do labels come back without the rows that they were found on? And do they cut few neighbours?

Half of the rows are clustered by a simple method, the other half take the labels of their nearest rows in it, and are
compared with the labels in question. None of it knows the method that made the labels, or any class.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.sparse.csgraph import dijkstra

from prodsc.core import metrics
from prodsc.core.graph.eigen import cluster_qr, leading_eigenvectors
from prodsc.core.graph.number import K_OPTIONS, graph_within
from prodsc.core.graph.walk_information import information, x_log_x
from prodsc.random import generator

CARRIERS = 5  # nearest rows of the clustered half that vote for the label of another row: an odd handful
Labelling = Callable[[np.ndarray], np.ndarray]  # from numbers of rows to their labels


@dataclass(frozen=True)
class Replication:
    """Agreement of labels with those of each half, on the rows of the other half."""

    shares: np.ndarray  # of rows with the same cluster, under the best matching
    ari: np.ndarray


@dataclass(frozen=True)
class CarriedLabels:
    """Labels of rows by the half of the rows that they are not in."""

    rows: np.ndarray
    labels: np.ndarray


def cluster_halves(neighbours: np.ndarray, cluster: Labelling, n_splits: int, seed: int) -> list[CarriedLabels]:
    """Cluster random halves of the rows and carry the labels to the other halves.

    Parameters
    ----------
    neighbours : ndarray of shape (n, m)
        Numbers of the nearest rows of each row, the nearest first.
    cluster : function
        Labels of rows, given by their numbers, ascending.
    n_splits : int
        Number of random splits; each gives two halves.
    seed : int

    Returns
    -------
    list of CarriedLabels
        One for each half.
    """
    found = []
    for half, other in random_halves(len(neighbours), n_splits, seed):
        carried = carry(neighbours[other], half, cluster(half))
        found.append(CarriedLabels(other[carried >= 0], carried[carried >= 0]))
    return found


def replication(labels: np.ndarray, halves: list[CarriedLabels]) -> Replication:
    """How far labels agree with those carried from each half.

    Parameters
    ----------
    labels : ndarray of int, shape (n,)
        The labels in question.
    halves : list of CarriedLabels

    Returns
    -------
    Replication
    """
    pairs = [(labels[half.rows], half.labels) for half in halves if len(half.rows)]
    shares = [metrics.accuracy(mine, carried) for mine, carried in pairs]
    return Replication(np.array(shares), np.array([metrics.ari(mine, carried) for mine, carried in pairs]))


def random_halves(n: int, n_splits: int, seed: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Each random half of the rows and the rows that are not in it, ascending."""
    for split in range(n_splits):
        order = generator(seed, split).permutation(n)
        halves = np.sort(order[: n // 2]), np.sort(order[n // 2 :])
        yield halves
        yield halves[::-1]


def carry(neighbours: np.ndarray, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """The label that most of the nearest labelled rows have.

    Parameters
    ----------
    neighbours : ndarray of shape (m, t)
        Numbers of the nearest rows of each row in question, the nearest first.
    rows : ndarray of int
        Numbers of the rows with labels.
    labels : ndarray of int
        Their labels.

    Returns
    -------
    ndarray of int, shape (m,)
        -1 where no neighbour has a label. Of labels with as many votes the smallest is taken.
    """
    known = np.full(max(int(neighbours.max(initial=-1)), int(rows.max(initial=-1))) + 1, -1)
    known[rows] = labels
    near = known[neighbours]
    counted = (near >= 0) & (np.cumsum(near >= 0, axis=1) <= CARRIERS)
    votes = np.zeros((len(near), int(labels.max(initial=0)) + 1))
    row, column = np.nonzero(counted)
    np.add.at(votes, (row, near[row, column]), 1)
    return np.where(counted.any(1), votes.argmax(1), -1)


def spectral_halves(neighbours: np.ndarray, k: int) -> Labelling:
    """Spectral clustering of the graph of nearest neighbours among some rows, by pivoted QR: no random start."""

    def cluster(rows: np.ndarray) -> np.ndarray:
        if k == 1 or len(rows) <= k:
            return np.arange(len(rows)) % k
        # At most half of a cluster of average size, so that small clusters are not joined by their neighbours.
        n_neighbors = min(K_OPTIONS.n_neighbors, max(3, len(rows) // (2 * k)))
        vectors = leading_eigenvectors(graph_within(neighbours, rows, n_neighbors), k, K_OPTIONS.tolerance)[2]
        return np.asarray(cluster_qr(vectors.numpy()[:, :k]))

    return cluster


def kept_share(neighbours: np.ndarray, labels: np.ndarray) -> float:
    """How much of what labels say about a row is true of its neighbours: I / H.

    I is the mutual information of the labels of a row and of one of its neighbours, and H the entropy of the labels.

    Parameters
    ----------
    neighbours : ndarray of shape (n, m)
    labels : ndarray of int, shape (n,)

    Returns
    -------
    float
        1 if no neighbours are in different clusters, 0 if they know nothing of each other's cluster.
    """
    k = int(labels.max()) + 1
    joint = np.zeros((k, k))
    np.add.at(joint, (np.repeat(labels, neighbours.shape[1]), labels[neighbours].ravel()), 1.0)
    joint = (joint + joint.T) / (2 * joint.sum())
    entropy = -float(x_log_x(joint.sum(1)).sum())
    return information(joint) / entropy if entropy > 0 else 0.0


def compact_pieces(neighbours: np.ndarray, k: int, seed: int) -> np.ndarray:
    """Labels that any data have: k random rows, and each row with the one that is nearest along the graph.

    Parameters
    ----------
    neighbours : ndarray of shape (n, m)
    k : int
        Number of pieces.
    seed : int

    Returns
    -------
    ndarray of int, shape (n,)
        Rows that no path reaches have the label 0.
    """
    n, m = neighbours.shape
    starts = generator(seed).choice(n, k, replace=False)
    edges = (np.ones(n * m), (np.repeat(np.arange(n), m), neighbours.ravel()))
    graph = scipy.sparse.csr_matrix(scipy.sparse.coo_matrix(edges, shape=(n, n)))
    nearest = dijkstra(graph, directed=False, indices=starts, min_only=True, return_predecessors=True)[2]
    piece = np.zeros(n + 1, dtype=int)
    piece[starts] = np.arange(k)
    return piece[np.where(nearest >= 0, nearest, n)]
