"""From a free matrix C of coefficients to an affinity, by the steps of DSC-Net."""

import torch
from torch.nn.functional import normalize

from prodsc.core.linalg import singular_vectors
from prodsc.types import Affinity, Square


def keep_largest(C: Square, share: float, block_size: int = 500) -> Square:
    """C with, in each column, only the largest entries that together reach a share of the l1 norm of the column.

    Parameters
    ----------
    C : Tensor of shape (n, n)
        Coefficients; column j expresses point j.
    share : float
        From 0 to 1.
    block_size : int
        Columns sorted at a time: bounds memory.

    Returns
    -------
    Tensor of shape (n, n)
    """
    if share >= 1:
        return C
    cleaned = torch.empty_like(C)
    for columns in torch.arange(C.shape[1], device=C.device).split(block_size):
        values = C[:, columns].T.contiguous()  # sorting contiguous values is several times as fast
        sizes, order = values.abs().sort(dim=1, descending=True)
        before = sizes.cumsum(1) - sizes  # sum of the larger ones: the entry that reaches the share is kept
        kept = torch.zeros_like(values, dtype=torch.bool).scatter_(
            1, order, before <= share * sizes.sum(1, keepdim=True)
        )
        cleaned[:, columns] = torch.where(kept, values, 0.0).T
    return cleaned


def low_rank_affinity(C: Square, rank: int, power: float) -> Affinity:
    """max(UU', 0)^power over its largest entry.

    U are the unit rows of W sqrt(S), for the leading singular values S and vectors W of (C + C')/2 with ones on its
    diagonal.

    Parameters
    ----------
    C : Tensor of shape (n, n)
        Coefficients.
    rank : int
        Number of singular values.
    power : float
        Exponent.

    Returns
    -------
    Tensor of shape (n, n)
    """
    M = (C + C.T) / 2
    M = M.fill_diagonal_(1.0)
    values, W = singular_vectors(M, min(rank, len(M) - 1))
    U = normalize(W.to(M) * values.to(M).sqrt())
    A = (U @ U.T).clamp_min(0.0) ** power
    return A / A.max()
