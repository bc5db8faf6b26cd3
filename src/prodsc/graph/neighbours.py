"""Nearest neighbours by cosine, exactly, a block of rows at a time."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from prodsc.types import Rows

BLOCK = 1024  # rows looked at together: bounds memory at BLOCK x n


def nearest_neighbours(X: Rows, n_neighbors: int, asked: Tensor | None = None) -> Tensor:
    """n x min(n_neighbors, n - 1): for each row, or each of those asked for, the other rows with the largest cosine,
    the nearest first."""
    unit = normalize(X)
    asked = torch.arange(len(unit), device=X.device) if asked is None else asked.to(X.device)
    found = []
    for some in asked.split(BLOCK):
        cosines = unit[some] @ unit.T
        cosines[torch.arange(len(some), device=X.device), some] = -torch.inf  # no row is its own neighbour
        found.append(cosines.topk(min(n_neighbors, len(unit) - 1), dim=1).indices)
    return torch.cat(found)
