"""Coefficients in closed form, by a singular value decomposition. Column j of C expresses point j.

X = U Sigma V'      XX' = U Sigma^2 U'
"""

import torch
from torch import Tensor

from prodsc.types import Rows, Square


def least_squares(X: Rows, gamma: float) -> Square:
    """min 1/2 ||C||_F^2 + gamma/2 ||X - C'X||_F^2, diag(C) = 0 (LSR).

    P = XX'(XX' + I/gamma)^-1 includes each point itself; without it, c_ij = p_ij / (1 - p_jj).

    Parameters
    ----------
    X : Tensor of shape (n, d)
        Points as rows.
    gamma : float
        Weight of self-expression.

    Returns
    -------
    Tensor of shape (n, n)
    """
    U, squares = _decomposed(X)
    P = (U * (squares / (squares + 1 / gamma))) @ U.T
    return (P / (1 - P.diagonal())).fill_diagonal_(0.0)


def low_rank(X: Rows, gamma: float) -> Square:
    """min ||C||_* + gamma/2 ||X - C'X||_F^2 (LRR with Gaussian noise): C = U max(I - Sigma^-2/gamma, 0) U'.

    Towards gamma = infinity, clean data, this is the shape interaction matrix UU'.

    Parameters
    ----------
    X : Tensor of shape (n, d)
        Points as rows.
    gamma : float
        Weight of self-expression.

    Returns
    -------
    Tensor of shape (n, n)
    """
    U, squares = _decomposed(X)
    return (U * (1 - 1 / (gamma * squares)).clamp_min(0.0)) @ U.T


def _decomposed(X: Rows) -> tuple[Tensor, Tensor]:
    """U and the squares of the singular values."""
    U, values, _ = torch.linalg.svd(X, full_matrices=False)
    return U, values.square()
