"""Which row makes the coefficients of a row: itself or one of its nearest, by chance.

In the paper y_i comes from x_i. With neighbour views it comes, every other time, from a neighbour of x_i, another one
at every step, while z_i still comes from x_i: coefficients that tell neighbours apart then express badly, so that
nothing finer than a neighbourhood is worth learning. Without them a fit that goes on for long splits clusters, and
every term of the loss approves.
"""

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from prodsc.core.graph import leading_directions, nearest_among, nearest_neighbours
from prodsc.random import Stream, generator, sorted_subset
from prodsc.sources.rows import RowReader
from prodsc.sources.stored import StoredRows

ALL = 2**15  # rows: up to here the neighbours of each are found once, among all
SOME = 2**13  # of more rows so many may be neighbours, found for each batch
BYTES = 2**27  # of memory for the rows that may be neighbours
BYTES_OF_FILES = 2**23  # the same where rows stay in files, since memory is scarce
DIRECTIONS = 128  # along which neighbours are looked for
ITSELF = 0.5  # chance of a row to stand for itself
MOST = 10  # neighbours of a row
SHARE = 4  # a quarter of a cluster of average size, at most, are neighbours


def auto_neighbours(n_rows: int, n_clusters: int) -> int:
    """As many as are likely to be of the same cluster, in clusters of like size."""
    return max(1, min(MOST, n_rows // (SHARE * n_clusters)))


class Views:
    """The nearest rows of any row, of a fit. `read` gives the rows as the neighbours are to be found and used."""

    def __init__(self, rows: RowReader, n_neighbors: int, seed: int, read: Callable[[Iterable[Tensor]], Tensor]):
        row_bytes = 4 * int(np.prod(rows.array.shape[1:]))
        room = (BYTES_OF_FILES if isinstance(rows.array, StoredRows) else BYTES) // row_bytes
        all_of_them = len(rows) <= min(ALL, room)
        self.places = np.arange(len(rows))
        if not all_of_them:
            most = max(2, min(SOME, room))
            self.places = sorted_subset(len(rows), most, seed, Stream.NEIGHBOUR_POOL)
        self.pool = read(rows.chunks(self.places))
        self.directions = leading_directions(self.pool.flatten(1), DIRECTIONS)
        self.points = self.points_of(self.pool)
        self.most = min(max(1, round(n_neighbors * len(self.places) / len(rows))), len(self.places) - 1)
        self.table = nearest_neighbours(self.points, self.most) if all_of_them else None

    def points_of(self, X: Tensor) -> Tensor:
        return normalize(X.flatten(1) @ self.directions)

    def of(self, numbers: np.ndarray, X: Tensor, chosen: np.ndarray) -> Tensor:
        """What stands for each of these rows of the data: the `chosen`-th nearest, or for -1 the row itself."""
        if self.table is not None:
            found = self.table[torch.from_numpy(numbers).to(self.table.device)]
        else:
            where = np.searchsorted(self.places, numbers).clip(max=len(self.places) - 1)
            own = np.where(self.places[where] == numbers, where, -1)
            found = nearest_among(self.points_of(X), self.points, self.most, torch.from_numpy(own).to(X.device))
        rank = torch.from_numpy(chosen).to(found.device)
        near = self.pool[found.gather(1, rank.clamp_min(0)[:, None])[:, 0]]
        near[rank < 0] = X[rank < 0]
        return near

    def drawn(self, n: int, seed: Sequence[int]) -> np.ndarray:
        """Which neighbour stands for each of n rows, -1 for half of them: a function of the seed alone."""
        random = generator(*seed)
        return np.where(random.random(n) < ITSELF, -1, random.integers(self.most, size=n))
