"""LABELS: affinities of rows with landmarks, spectral clustering of the landmarks, labels for every other row."""

from prodsc.core.graph.confidence import calibrated, neighbour_agreement
from prodsc.core.graph.kernels import CoefficientKernel, GramKernel, Kernel, NeighbourKernel, Sharpened
from prodsc.core.graph.neighbours import nearest_neighbours, nearest_of, strongest_directions
from prodsc.core.graph.outliers import Expression, expressing, quantiles
from prodsc.core.graph.partition import (
    Known,
    Partition,
    eigengap,
    largest_first,
    spectral_labels,
    spectral_partition,
)

__all__ = [
    "CoefficientKernel",
    "Expression",
    "GramKernel",
    "Kernel",
    "Known",
    "NeighbourKernel",
    "Partition",
    "Sharpened",
    "calibrated",
    "eigengap",
    "expressing",
    "largest_first",
    "nearest_neighbours",
    "nearest_of",
    "neighbour_agreement",
    "quantiles",
    "spectral_labels",
    "spectral_partition",
    "strongest_directions",
]
