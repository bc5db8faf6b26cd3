"""The other regularisers r(C) of the paper's ablation, per point like every term."""

import torch

from prodsc.types import Scalar, Square


def l1(C: Square) -> Scalar:
    """||C||_1 / n, the sum of absolute entries."""
    return C.abs().sum() / len(C)


def frobenius(C: Square) -> Scalar:
    """||C||_F^2 / n."""
    return torch.linalg.vector_norm(C).square() / len(C)  # no matrix of squares: C may be all pairs of a data set


def nuclear(C: Square) -> Scalar:
    """||C||_* / n, the sum of singular values."""
    return torch.linalg.svdvals(C).sum() / len(C)
