"""L1, the term that keeps the representation from collapsing, and its published alternative."""

import torch

from prodsc.core.linalg import gram, half_logdet
from prodsc.types import Rows, Scalar


def scale(n: int, d: int, eps: float) -> float:
    """alpha = d / (n eps).

    Parameters
    ----------
    n : int
        Number of points.
    d : int
        Dimension of the representation.
    eps : float
        Precision of the code.

    Returns
    -------
    float
    """
    return d / (n * eps)


def coding_rate(Z: Rows, alpha: float) -> Scalar:
    """L1 = -1/2 logdet(I + alpha Z'Z), on the smaller of the two Gram matrices (they share the determinant).

    Parameters
    ----------
    Z : Tensor of shape (n, d)
        Representation, one point per row.
    alpha : float
        See `scale`.

    Returns
    -------
    Tensor, a scalar
    """
    n, d = Z.shape
    G = alpha * gram(Z.T if d <= n else Z)
    G.diagonal().add_(1.0)
    return -half_logdet(G)


def nuclear_spread(Z: Rows) -> Scalar:
    """-||Z||_* / sqrt(n): the convex surrogate of the rank, named by the paper as another anti-collapse term.

    Parameters
    ----------
    Z : Tensor of shape (n, d)
        Representation, one point per row.

    Returns
    -------
    Tensor, a scalar
    """
    return -torch.linalg.svdvals(Z).sum() / len(Z) ** 0.5
