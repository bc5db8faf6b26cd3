"""The other regularisers r(C) of the paper's ablation, per point like every term."""

import torch

from prodsc.types import Scalar, Square


def l1(C: Square) -> Scalar:
    """||C||_1 / n, the sum of absolute entries.

    Parameters
    ----------
    C : Tensor of shape (n, n)
        Coefficients; column j expresses point j.

    Returns
    -------
    Tensor, a scalar
    """
    return C.abs().sum() / len(C)


def frobenius(C: Square) -> Scalar:
    """||C||_F^2 / n.

    Parameters
    ----------
    C : Tensor of shape (n, n)
        Coefficients; column j expresses point j.

    Returns
    -------
    Tensor, a scalar
    """
    return torch.linalg.vector_norm(C).square() / len(C)  # makes no matrix of squares: C may be large


def nuclear(C: Square) -> Scalar:
    """||C||_* / n, the sum of singular values.

    Parameters
    ----------
    C : Tensor of shape (n, n)
        Coefficients; column j expresses point j.

    Returns
    -------
    Tensor, a scalar
    """
    return torch.linalg.svdvals(C).sum() / len(C)
