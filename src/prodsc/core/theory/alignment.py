"""Measures of Theorem 1 of the paper: at the optimum G = Z'Z and M = (I - C)(I - C)' share eigenvectors."""

import torch
from jaxtyping import Float
from torch import Tensor

from prodsc.types import Rows, Scalar, Square


def gram_and_residual(Z: Rows, C: Square) -> tuple[Square, Square]:
    """G = ZZ' for rows and M = (I - C)(I - C)', so that ||Z - C'Z||_F^2 = tr(GM).

    Parameters
    ----------
    Z : Tensor of shape (n, d)
        Representation, one point per row.
    C : Tensor of shape (n, n)
        Coefficients; column j expresses point j.

    Returns
    -------
    G, M : Tensor of shape (n, n)
    """
    R = torch.eye(len(C), dtype=C.dtype, device=C.device) - C
    return Z @ Z.T, R @ R.T


def commutator(G: Square, M: Square) -> Scalar:
    """||GM - MG||_F of symmetric G and M; zero iff they share eigenvectors.

    Parameters
    ----------
    G : Tensor of shape (n, n)
        Gram matrix of the points.
    M : Tensor of shape (n, n)
        (I - C)(I - C)'.

    Returns
    -------
    Tensor, a scalar
    """
    GM = G @ M
    return torch.linalg.matrix_norm(GM - GM.T)  # MG = (GM)', so one product is enough


def eigenspace_correlation(G: Square, M: Square) -> Float[Tensor, " n"]:
    """<u_j, G u_j / ||G u_j||> over the eigenvectors u_j of M, ascending; 0 where G u_j = 0.

    When G and M commute: 1 where u_j carries energy of G, 0 elsewhere; at the optimum, the first min(d, n) and
    the rest. Where M repeats an eigenvalue its eigenvectors are any basis, and a value below 1 has no meaning.

    Parameters
    ----------
    G : Tensor of shape (n, n)
        Gram matrix of the points.
    M : Tensor of shape (n, n)
        (I - C)(I - C)'.

    Returns
    -------
    Tensor of shape (n,)
    """
    _, U = torch.linalg.eigh(M)
    GU = G @ U
    lengths = torch.linalg.vector_norm(GU, dim=0)
    nothing = lengths <= len(G) * torch.finfo(G.dtype).eps * torch.linalg.matrix_norm(G)  # rounding, no direction
    return ((U * GU).sum(0) / lengths.masked_fill(nothing, 1)).masked_fill(nothing, 0)


def spectra(G: Square, M: Square) -> tuple[Float[Tensor, " n"], Float[Tensor, " n"]]:
    """Eigenvalues of G descending and of M ascending: at the optimum the i-th of each share an eigenvector.

    Parameters
    ----------
    G : Tensor of shape (n, n)
        Gram matrix of the points.
    M : Tensor of shape (n, n)
        (I - C)(I - C)'.

    Returns
    -------
    eigenvalues of G, eigenvalues of M : Tensor of shape (n,)
    """
    return torch.linalg.eigvalsh(G).flip(0), torch.linalg.eigvalsh(M)
