"""Graphs: affinities of rows with landmarks, spectral clustering of the landmarks, labels for every other row."""

from prodsc.core.graph.confidence import calibrate, replicated_share
from prodsc.core.graph.constraints import LandmarkConstraints
from prodsc.core.graph.eigen import cluster_qr, eigengap, laplacian_eigenvalues, leading_eigenvectors
from prodsc.core.graph.kernels import CoefficientKernel, GramKernel, Kernel, NeighbourKernel, PowerKernel
from prodsc.core.graph.kmeans import kmeans, seeded_kmeans
from prodsc.core.graph.label_head import HeadPartition, calibrated_temperature
from prodsc.core.graph.layers import nested_layers
from prodsc.core.graph.neighbours import (
    leading_directions,
    nearest_among,
    nearest_neighbours,
    neighbour_graph,
    neighbour_index,
    neighbours_and_distances,
)
from prodsc.core.graph.outliers import (
    OutlierModel,
    References,
    fit_outlier_model,
    noise_threshold,
    sample_references,
    strangeness_quantiles,
)
from prodsc.core.graph.replication import (
    CarriedLabels,
    cluster_halves,
    compact_pieces,
    kept_share,
    replication,
    spectral_halves,
)
from prodsc.core.graph.spectral import Partition, largest_first, posterior, spectral_labels, spectral_partition
from prodsc.core.graph.walk import Walk, WalkSampler, make_walk, walk_eigenvectors, walk_representation
from prodsc.core.graph.walk_labels import WalkLabels, label_walks

__all__ = [
    "CarriedLabels",
    "CoefficientKernel",
    "GramKernel",
    "HeadPartition",
    "Kernel",
    "LandmarkConstraints",
    "NeighbourKernel",
    "OutlierModel",
    "Partition",
    "PowerKernel",
    "References",
    "Walk",
    "WalkLabels",
    "WalkSampler",
    "calibrate",
    "calibrated_temperature",
    "cluster_halves",
    "cluster_qr",
    "compact_pieces",
    "eigengap",
    "fit_outlier_model",
    "kept_share",
    "kmeans",
    "label_walks",
    "laplacian_eigenvalues",
    "largest_first",
    "leading_directions",
    "leading_eigenvectors",
    "make_walk",
    "nearest_among",
    "nearest_neighbours",
    "neighbour_graph",
    "neighbour_index",
    "neighbours_and_distances",
    "nested_layers",
    "noise_threshold",
    "posterior",
    "replicated_share",
    "replication",
    "sample_references",
    "seeded_kmeans",
    "spectral_halves",
    "spectral_labels",
    "spectral_partition",
    "strangeness_quantiles",
    "walk_eigenvectors",
    "walk_representation",
]
