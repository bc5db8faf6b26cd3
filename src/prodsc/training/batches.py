"""Which rows make step t: a pure function of (seed, t), so that a resumed run sees the same batches."""

from collections.abc import Sequence

import numpy as np

from prodsc.pro_dsc.constraints import Links
from prodsc.random import StepStream, generator

LISTED = 2**24  # rows whose shuffled order is kept in a list; for more it is computed where it is needed
ROUNDS = 6
KNOWN = 0.25  # of a batch, at most, are rows of which something is known


class Batches:
    """Epochs of shuffled batches. The last incomplete batch is dropped, except when it is the only one.

    Rows of which something is known (`links`) take up to KNOWN of every batch: a random batch would rarely hold both
    ends of a pair.
    """

    def __init__(self, n_rows: int, batch_size: int, seed: Sequence[int], links: Links | None = None):
        self.n_rows, self.seed, self.links = n_rows, tuple(seed), links
        self.size = min(n_rows, batch_size)
        self.per_epoch = n_rows // self.size
        self._epoch = -1
        self._order = np.arange(n_rows if n_rows <= LISTED else 0)

    def __getitem__(self, t: int) -> np.ndarray:
        """Row numbers of step t, ascending: the order inside a batch does not matter, the disk likes it sorted."""
        if self.size == self.n_rows:
            return np.arange(self.n_rows)
        batch = self._shuffled(t)
        return batch if self.links is None else self._with_known(batch, t)

    def _with_known(self, batch: np.ndarray, t: int) -> np.ndarray:
        assert self.links is not None
        seed = (*self.seed, t, StepStream.KNOWN_ROWS)  # longer than the seed of an epoch, so never the same
        known = self.links.drawn(int(KNOWN * self.size), seed)
        others = np.setdiff1d(batch, known, assume_unique=True)
        stay = generator(*seed, 1).choice(len(others), self.size - len(known), replace=False)
        return np.sort(np.concatenate([known, others[stay]]))

    def _shuffled(self, t: int) -> np.ndarray:
        epoch, i = divmod(t, self.per_epoch)
        places = np.arange(i * self.size, (i + 1) * self.size)
        if self.n_rows > LISTED:
            return np.sort(shuffled(places, self.n_rows, (*self.seed, epoch)))
        if epoch != self._epoch:
            self._order = generator(*self.seed, epoch).permutation(self.n_rows)
            self._epoch = epoch
        return np.sort(self._order[places])


def shuffled(places: np.ndarray, n: int, seed: Sequence[int]) -> np.ndarray:
    """What stands at these places of a shuffled 0, ..., n - 1, without making the rest of it.

    A Feistel cipher permutes the numbers of 2b bits; where it leads beyond n it is applied again, until it leads back.
    """
    bits = max(1, (max(n - 1, 1).bit_length() + 1) // 2)
    low = np.uint64(2**bits - 1)
    keys = generator(*seed).integers(2**63, size=ROUNDS, dtype=np.uint64)
    found = np.asarray(places, dtype=np.uint64).copy()
    outside = np.ones(len(found), dtype=bool)
    while outside.any():
        left, right = found[outside] >> np.uint64(bits), found[outside] & low
        for key in keys:
            left, right = right, left ^ (_mixed(right + key) & low)
        found[outside] = (left << np.uint64(bits)) | right
        outside = found >= n
    return found.astype(np.int64)


def _mixed(x: np.ndarray) -> np.ndarray:
    """A hash of 64 bits: multiplications that overflow, and shifts (the constants are splitmix64's)."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
