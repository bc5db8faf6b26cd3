"""Sparse subspace clustering: each point expressed by a few others, the graph of the coefficients clustered."""

import warnings

import numpy as np
import torch
from torch import Tensor

from prodsc.baselines.self_expressive import SelfExpressive
from prodsc.core.graph.affinity import code_graph, symmetrised_sparse
from prodsc.core.self_expression.elastic_net import ElasticNets, point_gammas
from prodsc.core.self_expression.omp import omp
from prodsc.core.self_expression.sparse import sparse_coefficients
from prodsc.types import Rows, SparseMatrix


class SSCOMP(SelfExpressive):
    """Sparse subspace clustering by orthogonal matching pursuit: at most k_max points express each point."""

    departures = "k_max 10 and tolerance 1e-6, not the best of a grid chosen with labels"

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

    def _coefficients(self, X: Rows) -> SparseMatrix:
        n, d = X.shape
        most = min(self.k_max, d)
        points = self._blocks(n, n + most * (d + most))
        return sparse_coefficients(lambda block: omp(X, block, most, self.tolerance), points)


class _ElasticNet(SelfExpressive):
    """min tau ||c||_1 + (1 - tau)/2 ||c||^2 + gamma_i/2 ||x_i - Xc||^2, c_ii = 0."""

    gamma: float
    tau: float

    def _coefficients(self, X: Rows) -> SparseMatrix:
        gamma, errors, nets = self.gamma, [], ElasticNets(X, self.tau)

        def solve(block: slice) -> Tensor:
            C, error = nets(block, point_gammas(X, block, gamma, self.tau))
            errors.append(error)
            return C

        C = sparse_coefficients(solve, self._blocks(len(X), len(X)))
        error = torch.cat(errors)
        tolerance = nets.options.tolerance
        if n_open := int((error > tolerance).sum()):
            warnings.warn(
                f"{type(self).__name__}: the solver did not converge for {n_open} of {len(X)} points (the worst is "
                f"{float(error.max()):.1g} from optimal instead of {tolerance:g}); its result is used. "
                "Lower gamma, or drop rows that are nearly copies of others.",
                UserWarning,
                stacklevel=2,
            )
        return C


class EnSC(_ElasticNet):
    """Elastic-net subspace clustering: min tau ||c||_1 + (1 - tau)/2 ||c||^2 + gamma_i/2 ||x_i - Xc||^2, c_ii = 0."""

    departures = (
        "a graph of 10 nearest codes instead of 3; gamma 50 and tau 0.9, not the best of a grid chosen with labels"
    )

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gamma: float = 50.0,
        tau: float = 0.9,
        code_graph: str = "neighbours",
        n_neighbors: int = 10,
        scaling: str = "unit",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.tau = tau
        self.code_graph = code_graph
        self.n_neighbors = n_neighbors
        self.scaling = scaling
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _affinity(self, C: SparseMatrix) -> SparseMatrix:
        return code_graph(C, self.n_neighbors) if self.code_graph == "neighbours" else symmetrised_sparse(C)


class SSC(_ElasticNet):
    """Sparse subspace clustering (CVPR 2009): min ||c||_1 + gamma_i/2 ||x_i - Xc||^2, c_ii = 0."""

    tau = 1.0

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gamma: float = 20.0,
        scaling: str = "unit",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.scaling = scaling
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose
