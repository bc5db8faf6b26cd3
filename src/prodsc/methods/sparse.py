"""Sparse subspace clustering: each point expressed by a few others, the graph of the coefficients clustered.

These methods label the rows they are given; there is no `predict`.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse
import torch

from prodsc.data.matrix import Rows
from prodsc.graph import spectral_labels
from prodsc.graph.affinity import code_graph, symmetrised_sparse
from prodsc.methods.base import Clusterer
from prodsc.methods.parameters import plain_gamma
from prodsc.selfexpression.elastic_net import elastic_net, point_gammas
from prodsc.selfexpression.omp import omp
from prodsc.selfexpression.sparse import blocks, sparse_coefficients
from prodsc.training import Callback
from prodsc.types import Rows as Points


class _Expressive(Clusterer):
    """Rows -> C -> affinity -> the one spectral step."""

    n_init: int

    def _fit(self, rows: Rows, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        graph = self._graph(torch.cat(list(rows.chunks())).double())
        self.labels_ = spectral_labels(graph, self.n_clusters, self.n_init, self.seed_)

    def _graph(self, X: Points) -> scipy.sparse.csr_array:
        raise NotImplementedError


class SSCOMP(_Expressive):
    """Sparse subspace clustering by orthogonal matching pursuit: at most k_max points express each point."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        k_max: int = 10,
        tolerance: float = 1e-6,
        scaling: str = "unit",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.k_max = k_max
        self.tolerance = tolerance
        self.scaling = scaling
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _graph(self, X: Points) -> scipy.sparse.csr_array:
        n, d = X.shape
        points = blocks(n, n + self.k_max * (d + self.k_max))
        return symmetrised_sparse(sparse_coefficients(lambda b: omp(X, b, self.k_max, self.tolerance), points))


class EnSC(_Expressive):
    """Elastic-net subspace clustering: min tau ||c||_1 + (1 - tau)/2 ||c||^2 + gamma_i/2 ||x_i - Xc||^2, c_ii = 0."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gamma: float = 50.0,
        tau: float = 0.9,
        n_neighbors: int = 3,
        scaling: str = "unit",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.tau = tau
        self.n_neighbors = n_neighbors
        self.scaling = scaling
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _graph(self, X: Points) -> scipy.sparse.csr_array:
        gamma = plain_gamma(self)
        C = sparse_coefficients(
            lambda b: elastic_net(X, b, point_gammas(X, b, gamma, self.tau), self.tau)[0], blocks(len(X), len(X))
        )
        return code_graph(C, self.n_neighbors)
