"""LABELS: affinities of rows with landmarks, spectral clustering of the landmarks, labels for every other row."""

from prodsc.graph.kernels import CoefficientKernel, GramKernel, Kernel
from prodsc.graph.neighbours import nearest_neighbours
from prodsc.graph.partition import Partition, largest_first, spectral_labels, spectral_partition

__all__ = [
    "CoefficientKernel",
    "GramKernel",
    "Kernel",
    "Partition",
    "largest_first",
    "nearest_neighbours",
    "spectral_labels",
    "spectral_partition",
]
