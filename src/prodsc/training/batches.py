"""Which rows make step t: a pure function of (seed, t), so that a resumed run sees the same batches."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from prodsc.random import StepStream, generator


class ConstrainedRows(Protocol):
    """Rows with known labels or pairs."""

    def draw_rows(self, most: int, seed: Sequence[int]) -> np.ndarray:
        """At most so many of these rows, both rows of a pair together."""


class Batches:
    """Epochs of shuffled batches, `batches[t]` for step t.

    The last incomplete batch of an epoch is dropped, except when it is the only one.

    Parameters
    ----------
    n_rows : int
        Number of rows of the data.
    batch_size : int
        Rows per batch, at most `n_rows`.
    seed : sequence of int
        Key of the random order, such as `(seed, Stream.FIRST_PHASE)`.
    constraints : ConstrainedRows, optional
        Rows that every batch shall hold some of: a random batch rarely holds both rows of a pair.
    constrained_share : float
        Largest share of a batch that `constraints` may take.
    max_listed : int
        Number of rows up to which the order of an epoch is kept as a list. Beyond it, it is computed where needed.
    """

    def __init__(
        self,
        n_rows: int,
        batch_size: int,
        seed: Sequence[int],
        constraints: ConstrainedRows | None = None,
        constrained_share: float = 0.25,
        max_listed: int = 2**24,
    ):
        self.n_rows, self.seed, self.constraints = n_rows, tuple(seed), constraints
        self.constrained_share, self.listed = constrained_share, n_rows <= max_listed
        self.size = min(n_rows, batch_size)
        self.per_epoch = n_rows // self.size
        self._epoch = -1
        self._order = np.arange(n_rows if self.listed else 0)

    def __getitem__(self, t: int) -> np.ndarray:
        """Row numbers of step t, ascending: the order inside a batch does not matter, and sorted reads are faster."""
        if self.size == self.n_rows:
            return np.arange(self.n_rows)
        batch = self._shuffled(t)
        return batch if self.constraints is None else self._with_constrained(batch, t, self.constraints)

    def _with_constrained(self, batch: np.ndarray, t: int, constraints: ConstrainedRows) -> np.ndarray:
        """The batch with some of its rows replaced by constrained ones."""
        seed = (*self.seed, t, StepStream.KNOWN_ROWS)  # longer than the seed of an epoch, so never the same
        known = constraints.draw_rows(int(self.constrained_share * self.size), seed)
        others = np.setdiff1d(batch, known, assume_unique=True)
        stay = generator(*seed, 1).choice(len(others), self.size - len(known), replace=False)
        return np.sort(np.concatenate([known, others[stay]]))

    def _shuffled(self, t: int) -> np.ndarray:
        epoch, i = divmod(t, self.per_epoch)
        places = np.arange(i * self.size, (i + 1) * self.size)
        if not self.listed:
            return np.sort(shuffled(places, self.n_rows, (*self.seed, epoch)))
        if epoch != self._epoch:
            self._order = generator(*self.seed, epoch).permutation(self.n_rows)
            self._epoch = epoch
        return np.sort(self._order[places])


def shuffled(places: np.ndarray, n: int, seed: Sequence[int], rounds: int = 6) -> np.ndarray:
    """Entries of a random permutation of 0, ..., n - 1 at these places, without making the rest of it.

    A Feistel cipher permutes the numbers of 2b bits. Where its value is beyond n - 1 it is applied again.
    """
    bits = max(1, (max(n - 1, 1).bit_length() + 1) // 2)
    low = np.uint64(2**bits - 1)
    keys = generator(*seed).integers(2**63, size=rounds, dtype=np.uint64)
    entries = np.asarray(places, dtype=np.uint64).copy()
    outside = np.ones(len(entries), dtype=bool)
    while outside.any():
        left, right = entries[outside] >> np.uint64(bits), entries[outside] & low
        for key in keys:
            left, right = right, left ^ (_mixed(right + key) & low)
        entries[outside] = (left << np.uint64(bits)) | right
        outside = entries >= n
    return entries.astype(np.int64)


def _mixed(x: np.ndarray) -> np.ndarray:
    """A hash of 64 bits: the mixing function of splitmix64."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
