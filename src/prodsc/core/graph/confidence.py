"""How sure labels may be, from what can be checked without classes: do rows that are near in the input share them?

The posterior of the mixture in `Partition` is sharp wherever training has pulled clusters apart, and training pulls
rows to wrong clusters as firmly as to right ones. So its variance is raised until labels are, on average, as sure as
near rows agree on them. Argmax, and so labels, stay what they are.
"""

from dataclasses import replace

import numpy as np
import torch

from prodsc.core.graph.neighbours import nearest_neighbours
from prodsc.core.graph.partition import Partition, posterior
from prodsc.random import evenly_spaced
from prodsc.types import Rows

NEIGHBOURS = 20
ASKED = 1024  # rows whose neighbours are looked at
WIDEST = 1e6  # times the variance within clusters: beyond, all clusters are as likely


def neighbour_agreement(X: Rows, labels: np.ndarray) -> float:
    """The mean share of a row's nearest neighbours by cosine that have its label."""
    asked = torch.from_numpy(evenly_spaced(len(X), ASKED))
    near = nearest_neighbours(X, NEIGHBOURS, asked).cpu().numpy()
    return float((labels[near] == labels[asked.numpy()][:, None]).mean())


def calibrated(partition: Partition, Y: Rows, agreement: float) -> Partition:
    """The partition with the least variance at which labels of Y are on average no surer than `agreement`."""
    distances = partition.distances(Y)

    def sure(stretch: float) -> float:
        return float(posterior(distances, stretch * partition.variance).amax(1).mean())

    low, high = 1.0, WIDEST
    if sure(low) <= agreement:
        return partition
    while high / low > 1.001:  # the mean falls with the variance, so halve the interval, by ratio
        middle = (low * high) ** 0.5
        low, high = (middle, high) if sure(middle) > agreement else (low, middle)
    return replace(partition, variance=high * partition.variance)
