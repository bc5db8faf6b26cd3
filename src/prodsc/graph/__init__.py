"""LABELS: affinities of rows with landmarks, spectral clustering of the landmarks, labels for every other row."""

from prodsc.graph.confidence import calibrated, neighbour_agreement
from prodsc.graph.kernels import CoefficientKernel, GramKernel, Kernel, NeighbourKernel, Sharpened
from prodsc.graph.neighbours import nearest_neighbours, nearest_of, strongest_directions
from prodsc.graph.outliers import Expression, expressing, quantiles
from prodsc.graph.partition import (
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
