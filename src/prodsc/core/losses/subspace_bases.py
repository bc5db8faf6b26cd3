"""Terms of EDESC: membership of rows in the subspaces of the clusters, and bases that are orthonormal and apart."""

import torch
from jaxtyping import Float
from torch import Tensor

from prodsc.types import Embedding, Rows, Scalar

Bases = Float[Tensor, "d kr"]  # k blocks of r columns, one block per cluster


def basis_affinity(Z: Rows, D: Bases, k: int, smoothing: float) -> Embedding:
    """s_ij = (|z_i'D_j|^2 + eta r) / ((eta + 1) r), rows scaled to sum 1; eta: the smoothing, r: the columns of D_j.

    Parameters
    ----------
    Z : Tensor of shape (n, d)
        Representation, one point per row.
    D : Tensor of shape (d, k r)
        Bases: k blocks of r columns.
    k : int
        Number of clusters.
    smoothing : float
        eta.

    Returns
    -------
    Tensor of shape (n, k)
    """
    r = D.shape[1] // k
    s = ((Z @ D).square().unflatten(1, (k, r)).sum(2) + smoothing * r) / ((smoothing + 1) * r)
    return s / s.sum(1, keepdim=True)


def sharpened_target(S: Rows) -> Rows:
    """s_ij^2 / sum_i s_ij, rows scaled to sum 1: the target of self-training, without a gradient.

    Parameters
    ----------
    S : Tensor of shape (n, k)
        Memberships.

    Returns
    -------
    Tensor of shape (n, k)
    """
    T = S.detach().square() / S.detach().sum(0)
    return T / T.sum(1, keepdim=True)


def divergence(T: Rows, S: Rows) -> Scalar:
    """KL(T || S) as its authors weigh it: the mean over all n x k entries of t_ij log(t_ij / s_ij).

    Parameters
    ----------
    T : Tensor of shape (n, k)
        Target.
    S : Tensor of shape (n, k)
        Memberships.

    Returns
    -------
    Tensor, a scalar
    """
    return (torch.xlogy(T, T) - torch.xlogy(T, S)).mean()


def unit_columns(D: Bases) -> Scalar:
    """||D'D * I - I||_F: zero iff every column has length 1.

    Parameters
    ----------
    D : Tensor of shape (d, k r)
        Bases: k blocks of r columns.

    Returns
    -------
    Tensor, a scalar
    """
    return (D.square().sum(0) - 1).norm()


def overlap(D: Bases, k: int) -> Scalar:
    """||D'D outside the k diagonal blocks||_F: zero iff the subspaces are orthogonal.

    Parameters
    ----------
    D : Tensor of shape (d, k r)
        Bases: k blocks of r columns.
    k : int
        Number of clusters.

    Returns
    -------
    Tensor, a scalar
    """
    block = torch.arange(D.shape[1], device=D.device) // (D.shape[1] // k)
    return torch.where(block[:, None] == block, 0.0, D.T @ D).norm()


def mean_square(X: Tensor, X_hat: Tensor) -> Scalar:
    """The mean over all entries of (X - X_hat)^2.

    Parameters
    ----------
    X, X_hat : Tensor of the same shape
        Rows and their reconstruction.

    Returns
    -------
    Tensor, a scalar
    """
    return (X - X_hat).square().mean()
