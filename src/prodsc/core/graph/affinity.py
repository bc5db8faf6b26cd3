"""Affinities of points from the coefficients that express them."""

import scipy.sparse
import torch
from sklearn.preprocessing import normalize as unit_rows
from torch.nn.functional import normalize

from prodsc.core.graph.neighbours import neighbour_graph
from prodsc.types import Affinity, SparseMatrix, Square


def symmetrised(C: Square) -> Affinity:
    """(|C| + |C|')/2, with the columns of C scaled to length 1 and a diagonal of 0.

    Parameters
    ----------
    C : Tensor of shape (n, n)
        Column j expresses point j.

    Returns
    -------
    Tensor of shape (n, n)
    """
    W = normalize(C.abs(), dim=0).fill_diagonal_(0.0)
    return W.add_(W.T.clone()).div_(2)


def symmetrised_sparse(C: SparseMatrix) -> scipy.sparse.csr_array:
    """`symmetrised` for a sparse C."""
    W = unit_rows(abs(C).T)
    return scipy.sparse.csr_array((W + W.T) / 2)


def cosines(C: Square) -> Affinity:
    """|<u_i, u_j>| for the unit rows u of C^1/2.

    U = C^1/2 has UU' = C, so its rows need not be computed. A row of zeros is at a right angle to all others.

    Parameters
    ----------
    C : Tensor of shape (n, n)
        Symmetric, without negative eigenvalues.

    Returns
    -------
    Tensor of shape (n, n)
    """
    lengths = C.diagonal().clamp_min(torch.finfo(C.dtype).tiny).sqrt()
    return (C.abs() / lengths[:, None] / lengths).fill_diagonal_(0.0)


def code_graph(C: SparseMatrix, n_neighbors: int) -> scipy.sparse.csr_array:
    """`neighbour_graph` of codes: the code of a point is its coefficients without signs, scaled to length 1.

    Parameters
    ----------
    C : sparse array of shape (n, n)
        Column j expresses point j.
    n_neighbors : int
        Number of neighbours of a code.

    Returns
    -------
    sparse array of shape (n, n)
    """
    return neighbour_graph(unit_rows(abs(C).T), n_neighbors)
