"""Confidence of labels, calibrated without classes by how far the labels come back from half of the rows.

The posterior of the mixture in `Partition` is sharp wherever training has separated clusters, and training moves rows
to wrong clusters as firmly as to right ones. So its variance is raised until the mean confidence equals the share of
rows whose cluster is found again. Labels do not change.
"""

import math
from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import brentq

from prodsc.core.graph.neighbours import nearest_neighbours
from prodsc.core.graph.number import K_OPTIONS
from prodsc.core.graph.replication import cluster_halves, replication, spectral_halves
from prodsc.core.graph.spectral import Partition, posterior
from prodsc.random import evenly_spaced
from prodsc.types import Rows


def replicated_share(points: Rows, labels: np.ndarray, k: int, n_splits: int = 3, max_rows: int = 4000) -> float:
    """The share of rows that get the same cluster from the half of the rows that they are not in.

    Spectral clustering of the graph of nearest rows labels each half, and nearest rows carry the labels over.

    Parameters
    ----------
    points : Tensor of shape (n, d)
        The rows; they are compared by angle.
    labels : ndarray of int, shape (n,)
    k : int
        Number of clusters.
    n_splits : int
        Number of random splits into halves.
    max_rows : int
        Number of rows, evenly spaced, that are used.

    Returns
    -------
    float
        The mean over halves, under the best matching of clusters; 1 for one cluster.
    """
    some = evenly_spaced(len(points), max_rows)
    if k == 1 or len(some) < 4:
        return 1.0
    neighbours = nearest_neighbours(points[torch.from_numpy(some)], K_OPTIONS.n_searched).cpu().numpy()
    halves = cluster_halves(neighbours, spectral_halves(neighbours, k), n_splits, seed=0)
    return float(replication(labels[some], halves).shares.mean())


def calibrate(partition: Partition, Y: Rows, agreement: float, max_stretch: float = 1e6) -> Partition:
    """Raise the variance of a partition until the mean confidence of its labels is `agreement`.

    Parameters
    ----------
    partition : Partition
    Y : Tensor of shape (n, d)
        Rows over which the mean confidence is taken.
    agreement : float
        See `replicated_share`.
    max_stretch : float
        Largest factor of the variance; beyond it all clusters are equally probable.

    Returns
    -------
    Partition
        The same one if its mean confidence is not above `agreement`.
    """
    distances = partition.distances(Y)

    def excess(log_stretch: float) -> float:
        confidence = posterior(distances, math.exp(log_stretch) * partition.variance).amax(1)
        return float(confidence.mean()) - agreement

    low, high = 0.0, math.log(max_stretch)
    if excess(low) <= 0:
        return partition
    log_stretch = high if excess(high) > 0 else brentq(excess, low, high, xtol=1e-4)
    return replace(partition, variance=math.exp(log_stretch) * partition.variance)
