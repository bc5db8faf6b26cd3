"""From a free matrix C of self-expression to an affinity, by the steps that DSC-Net takes."""

import torch
from torch.nn.functional import normalize

from prodsc.core.linalg import singular_vectors
from prodsc.types import Affinity, Square

COLUMNS = 500  # sorted together: bounds memory


def strongest(C: Square, share: float) -> Square:
    """C with, in each column, only the largest entries that together reach `share` of the column's l1 norm."""
    if share >= 1:
        return C
    found = torch.empty_like(C)
    for columns in torch.arange(C.shape[1], device=C.device).split(COLUMNS):
        values = C[:, columns].T.contiguous()  # sorting along memory is several times as fast
        sizes, order = values.abs().sort(dim=1, descending=True)
        before = sizes.cumsum(1) - sizes  # the mass of the larger ones: the entry that crosses the line is kept
        kept = torch.zeros_like(values, dtype=torch.bool).scatter_(
            1, order, before <= share * sizes.sum(1, keepdim=True)
        )
        found[:, columns] = torch.where(kept, values, 0.0).T
    return found


def low_rank_affinity(C: Square, rank: int, power: float) -> Affinity:
    """max(UU', 0)^power over its largest entry, U the unit rows of W sqrt(S) for the leading `rank` singular values S
    and vectors W of (C + C')/2 with ones on its diagonal."""
    M = (C + C.T) / 2
    M = M.fill_diagonal_(1.0)
    values, W = singular_vectors(M, min(rank, len(M) - 1))
    U = normalize(W.to(M) * values.to(M).sqrt())
    A = (U @ U.T).clamp_min(0.0) ** power
    return A / A.max()
