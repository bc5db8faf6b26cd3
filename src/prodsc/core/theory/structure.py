"""Measures of Theorem 3 of the paper: a union of orthogonal subspaces, one per cluster, none of them collapsed."""

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor

from prodsc.types import Rows, Scalar, Square

Labels = Int[Tensor, " n"]


def effective_rank(Z: Rows) -> Scalar:
    """exp(-sum p_i log p_i), p_i = sigma_i^2 / sum sigma^2: r for r equal singular values, at least 1.

    Parameters
    ----------
    Z : Tensor of shape (n, d)
        Representation, one point per row.

    Returns
    -------
    Tensor, a scalar
    """
    return effective_rank_of_spectrum(torch.linalg.svdvals(Z))


def effective_rank_of_spectrum(sigma: Float[Tensor, " r"]) -> Scalar:
    """`effective_rank` from singular values.

    Parameters
    ----------
    sigma : Tensor of shape (r,)
        Singular values.

    Returns
    -------
    Tensor, a scalar
    """
    p = F.normalize(sigma.square(), p=1, dim=0)
    return torch.special.entr(p).sum().exp()


def csc(M: Square, G: Square, labels: Labels) -> Scalar:
    """<M, G - G*>, G* the part of G inside the blocks of the labels: the paper's compatibly structured coherence.

    Parameters
    ----------
    M : Tensor of shape (n, n)
        (I - C)(I - C)'.
    G : Tensor of shape (n, n)
        Gram matrix of the points.
    labels : Tensor of shape (n,)
        Cluster of each point.

    Returns
    -------
    Tensor, a scalar
    """
    return (M * G).masked_fill(_same_cluster(labels), 0).sum()


def block_means(K: Square, labels: Labels) -> tuple[Scalar, Scalar]:
    """Mean |K_ij| inside the blocks, i != j, and outside them; nan for a part without entries.

    Parameters
    ----------
    K : Tensor of shape (n, n)
        Gram matrix or coefficients.
    labels : Tensor of shape (n,)
        Cluster of each point.

    Returns
    -------
    inside, outside : Tensor, scalars
    """
    same = _same_cluster(labels)
    diagonal = torch.eye(len(K), dtype=torch.bool, device=K.device)
    magnitudes = K.abs()
    return magnitudes[same & ~diagonal].mean(), magnitudes[~same].mean()


def smallest_subspace_angles(Z: Rows, labels: Labels, energy: float = 0.95) -> Float[Tensor, "k k"]:
    """Smallest principal angle between each two clusters' subspaces, in degrees: arccos ||V_a'V_b||_2.

    V_a: the fewest right singular vectors of the cluster's rows, uncentred, with `energy` of its sum of sigma^2.
    90 is orthogonal, 0 a shared direction.

    Parameters
    ----------
    Z : Tensor of shape (n, d)
        Representation, one point per row.
    labels : Tensor of shape (n,)
        Cluster of each point.
    energy : float
        Share of the sum of squared singular values that a subspace holds.

    Returns
    -------
    Tensor of shape (k, k)
    """
    bases = [_principal_directions(rows, energy) for rows in _by_cluster(Z, labels)]
    cosines = torch.eye(len(bases), dtype=Z.dtype, device=Z.device)
    for a in range(len(bases)):
        for b in range(a):
            cosines[a, b] = cosines[b, a] = torch.linalg.matrix_norm(bases[a].T @ bases[b], ord=2)
    return cosines.clamp(max=1).arccos().rad2deg()


def _principal_directions(rows: Rows, energy: float) -> Float[Tensor, "d m"]:
    _, sigma, Vt = torch.linalg.svd(rows, full_matrices=False)
    held = sigma.square().cumsum(0)
    m = int((held < energy * held[-1]).sum()) + 1
    return Vt[:m].T


def _by_cluster(Z: Rows, labels: Labels) -> list[Float[Tensor, "_ d"]]:
    return [Z[labels == label] for label in labels.unique()]


def _same_cluster(labels: Labels) -> Tensor:
    return labels[:, None] == labels[None, :]
