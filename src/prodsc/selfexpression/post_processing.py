"""From a free matrix C of self-expression to an affinity, by the steps that DSC-Net takes."""

import torch
from torch.nn.functional import normalize

from prodsc.linalg import largest_eigenvectors
from prodsc.types import Affinity, Square


def strongest(C: Square, share: float) -> Square:
    """C with, in each column, only the largest entries that together reach `share` of the column's l1 norm."""
    if share >= 1:
        return C
    sizes, order = C.abs().sort(dim=0, descending=True)
    before = sizes.cumsum(0) - sizes  # the mass of the larger ones: the entry that crosses the line is kept
    kept = torch.zeros_like(C, dtype=torch.bool).scatter(0, order, before <= share * sizes.sum(0))
    return torch.where(kept, C, 0.0)


def low_rank_affinity(C: Square, rank: int, power: float) -> Affinity:
    """max(UU', 0)^power over its largest entry, U the unit rows of W sqrt(S) for the leading `rank` singular values S
    and vectors W of (C + C')/2 with ones on its diagonal."""
    M = (C + C.T) / 2
    M = M.fill_diagonal_(1.0)
    # The singular vectors of a symmetric M are the eigenvectors of MM, its singular values their roots.
    values, W = largest_eigenvectors(M @ M, min(rank, len(M) - 1))
    U = normalize(W.to(M) * values.to(M).clamp_min(0).pow(0.25))
    A = (U @ U.T).clamp_min(0.0) ** power
    return A / A.max()
