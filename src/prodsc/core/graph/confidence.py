"""Confidence of labels, calibrated without classes by how far near rows of the input agree on their labels.

The posterior of the mixture in `Partition` is sharp wherever training has separated clusters, and training moves rows
to wrong clusters as firmly as to right ones. So its variance is raised until the mean confidence equals the agreement
of neighbours. Labels do not change.
"""

import math
from dataclasses import replace

import numpy as np
import torch
from scipy.optimize import brentq

from prodsc.core.graph.neighbours import nearest_neighbours
from prodsc.core.graph.spectral import Partition, posterior
from prodsc.core.metrics import same_label_share
from prodsc.random import evenly_spaced
from prodsc.types import Rows


def neighbour_agreement(X: Rows, labels: np.ndarray, n_neighbors: int = 20, max_rows: int = 1024) -> float:
    """The mean share of the nearest neighbours of a row, by cosine, that have its label.

    Parameters
    ----------
    X : Tensor of shape (n, d)
    labels : ndarray of shape (n,)
    n_neighbors : int
        Number of neighbours of a row.
    max_rows : int
        Number of rows, evenly spaced, whose neighbours are searched.

    Returns
    -------
    float
    """
    rows = evenly_spaced(len(X), max_rows)
    neighbours = nearest_neighbours(X, n_neighbors, torch.from_numpy(rows)).cpu().numpy()
    return same_label_share(labels, neighbours, rows)


def calibrate(partition: Partition, Y: Rows, agreement: float, max_stretch: float = 1e6) -> Partition:
    """Raise the variance of a partition until the mean confidence of its labels is `agreement`.

    Parameters
    ----------
    partition : Partition
    Y : Tensor of shape (n, d)
        Rows over which the mean confidence is taken.
    agreement : float
        See `neighbour_agreement`.
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
