"""Affinities of points from what is known of each: coefficients that express it, or its nearest neighbours."""

from typing import TypeAlias

import numpy as np
import scipy.sparse
import torch
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import normalize as unit_rows
from torch.nn.functional import normalize

from prodsc.types import Affinity, Square

SparseMatrix: TypeAlias = scipy.sparse.csr_array | scipy.sparse.csc_array


def symmetrised(C: Square) -> Affinity:
    """(|C| + |C|')/2 once each point's coefficients, a column, have length 1; the diagonal says nothing of others."""
    W = normalize(C.abs(), dim=0).fill_diagonal_(0.0)
    return W.add_(W.T.clone()).div_(2)


def symmetrised_sparse(C: SparseMatrix) -> scipy.sparse.csr_array:
    """The same for a sparse C."""
    W = unit_rows(abs(C).T)
    return scipy.sparse.csr_array((W + W.T) / 2)


def cosines(C: Square) -> Affinity:
    """|<u_i, u_j>| of the unit rows u of C^1/2, for C that is symmetric and has no negative eigenvalue.

    U = C^1/2 has UU' = C, so its rows need not be computed; a row of zeros is at a right angle to all.
    """
    lengths = C.diagonal().clamp_min(torch.finfo(C.dtype).tiny).sqrt()
    return (C.abs() / lengths[:, None] / lengths).fill_diagonal_(0.0)


def neighbour_graph(points: np.ndarray | SparseMatrix, n_neighbors: int) -> scipy.sparse.csr_array:
    """1 where each of two points has the other among its n_neighbors nearest, 1/2 where only one has; Euclidean."""
    G = kneighbors_graph(points, min(n_neighbors, points.shape[0] - 1), mode="connectivity", include_self=False)
    return scipy.sparse.csr_array((G + G.T) / 2)


def neighbours_of_codes(C: SparseMatrix, n_neighbors: int) -> scipy.sparse.csr_array:
    """The graph of neighbours among codes: a point's code is the sizes of its coefficients, with length 1."""
    return neighbour_graph(unit_rows(abs(C).T), n_neighbors)
