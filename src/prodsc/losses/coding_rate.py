"""L1, the term that keeps the representation from collapsing, and its published alternative."""

import torch
from torch import Tensor

from prodsc.types import Rows, Scalar


def scale(n: int, d: int, eps: float) -> float:
    """alpha = d / (n eps)."""
    return d / (n * eps)


def coding_rate(Z: Rows, alpha: float) -> Scalar:
    """L1 = -1/2 logdet(I + alpha Z'Z), on the smaller of the two Gram matrices (they share the determinant)."""
    n, d = Z.shape
    G = Z.T @ Z if d <= n else Z @ Z.T
    return -_half_logdet(torch.eye(len(G), dtype=G.dtype, device=G.device) + alpha * G)


def nuclear_spread(Z: Rows) -> Scalar:
    """-||Z||_* / sqrt(n): the convex surrogate of the rank, named by the paper as another anti-collapse term."""
    return -torch.linalg.svdvals(Z).sum() / len(Z) ** 0.5


def _half_logdet(M: Tensor) -> Scalar:
    """1/2 logdet of a positive definite matrix: the log-diagonal of its Cholesky factor, half the cost of LU."""
    return torch.linalg.cholesky(M).diagonal().log().sum()
