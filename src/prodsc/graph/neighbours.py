"""Nearest neighbours by cosine, exactly, a block of rows at a time."""

import torch
from torch import Tensor
from torch.nn.functional import normalize

from prodsc.types import Rows

BLOCK = 1024  # rows looked at together: bounds memory at BLOCK x n


def nearest_neighbours(X: Rows, n_neighbors: int) -> Tensor:
    """n x min(n_neighbors, n - 1): for each row the other rows with the largest cosine, the nearest first."""
    unit = normalize(X)
    found = []
    for start in range(0, len(unit), BLOCK):
        cosines = unit[start : start + BLOCK] @ unit.T
        here = torch.arange(len(cosines), device=X.device)
        cosines[here, start + here] = -torch.inf  # no row is its own neighbour
        found.append(cosines.topk(min(n_neighbors, len(unit) - 1), dim=1).indices)
    return torch.cat(found)
