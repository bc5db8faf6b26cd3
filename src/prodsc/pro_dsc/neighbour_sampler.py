"""Neighbour views: Y of half of the rows of a batch is computed from one of their nearest rows.

In the paper y_i is computed from x_i. With neighbour views it is computed, for a random half of the rows of every step,
from one of the nearest rows of x_i, while z_i is still computed from x_i. Coefficients that distinguish neighbours then
have a large loss, so the network learns nothing finer than a neighbourhood. Without them a long fit splits clusters
while every term of the loss improves.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from prodsc.core.graph import leading_directions, nearest_among, nearest_neighbours
from prodsc.random import Stream, generator, sorted_subset
from prodsc.sources.rows import RowReader
from prodsc.sources.stored import StoredRows


@dataclass(frozen=True)
class SamplerLimits:
    """Memory and time that neighbours may take."""

    exact_rows: int = 2**15  # up to so many rows, the neighbours of all are found once
    pool_rows: int = 2**13  # of more rows, a random pool of so many may be neighbours, found for each batch
    pool_bytes: int = 2**27
    pool_bytes_of_files: int = 2**23  # where the rows stay in files, memory is scarce
    directions: int = 128  # principal directions in which neighbours are found


class NeighbourSampler:
    """Draws one of the nearest rows of each row of a batch.

    Parameters
    ----------
    rows : RowReader
        All training rows.
    n_neighbors : int
        Number of nearest rows to draw from.
    seed : int
        Seed of the fit.
    read : function
        Turns batches of rows into the tensor in which neighbours are found and from which they are taken.
    limits : SamplerLimits
    """

    def __init__(
        self,
        rows: RowReader,
        n_neighbors: int,
        seed: int,
        read: Callable[[Iterable[Tensor]], Tensor],
        limits: SamplerLimits = SamplerLimits(),
    ):
        row_bytes = 4 * int(np.prod(rows.array.shape[1:]))
        in_files = isinstance(rows.array, StoredRows)
        room = (limits.pool_bytes_of_files if in_files else limits.pool_bytes) // row_bytes
        exact = len(rows) <= min(limits.exact_rows, room)
        self.pool_rows = np.arange(len(rows))
        if not exact:
            size = max(2, min(limits.pool_rows, room))
            self.pool_rows = sorted_subset(len(rows), size, seed, Stream.NEIGHBOUR_POOL)
        self.pool = read(rows.chunks(self.pool_rows))
        self.directions = leading_directions(self.pool.flatten(1), limits.directions)
        self.points = self.project(self.pool)
        share = len(self.pool_rows) / len(rows)
        self.n_neighbors = min(max(1, round(n_neighbors * share)), len(self.pool_rows) - 1)
        self.table = nearest_neighbours(self.points, self.n_neighbors) if exact else None

    def project(self, X: Tensor) -> Tensor:
        """Unit rows in the principal directions, in which neighbours are found."""
        return normalize(X.flatten(1) @ self.directions)

    def take(self, rows: np.ndarray, X: Tensor, ranks: np.ndarray) -> Tensor:
        """The neighbour of each row with the given rank, or the row itself where the rank is -1.

        Parameters
        ----------
        rows : array of int
            Row numbers in the data.
        X : tensor
            These rows, as `read` gives them.
        ranks : array of int
            0 for the nearest.
        """
        if self.table is not None:
            nearest = self.table[torch.from_numpy(rows).to(self.table.device)]
        else:
            place = np.searchsorted(self.pool_rows, rows).clip(max=len(self.pool_rows) - 1)
            own = torch.from_numpy(np.where(self.pool_rows[place] == rows, place, -1)).to(X.device)
            nearest = nearest_among(self.project(X), self.points, self.n_neighbors, own)
        rank = torch.from_numpy(ranks).to(nearest.device)
        neighbours = self.pool[nearest.gather(1, rank.clamp_min(0)[:, None])[:, 0]]
        neighbours[rank < 0] = X[rank < 0]
        return neighbours

    def draw_ranks(self, n: int, key: Sequence[int]) -> np.ndarray:
        """For each of n rows the rank of a random neighbour, or -1 (the row itself) with probability one half.

        The draw is a function of the key alone, so a resumed fit repeats it.
        """
        random = generator(*key)
        return np.where(random.random(n) < 0.5, -1, random.integers(self.n_neighbors, size=n))
