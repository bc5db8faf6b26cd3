"""Which rows make step t: a pure function of (seed, t), so that a resumed run sees the same batches."""

from collections.abc import Sequence

import numpy as np


class Batches:
    """Epochs of shuffled batches. The last incomplete batch is dropped, except when it is the only one."""

    def __init__(self, n_rows: int, batch_size: int, seed: Sequence[int]):
        self.n_rows, self.seed = n_rows, tuple(seed)
        self.size = min(n_rows, batch_size)
        self.per_epoch = n_rows // self.size
        self._epoch = -1
        self._order = np.arange(n_rows)

    def __getitem__(self, t: int) -> np.ndarray:
        """Row numbers of step t, ascending: the order inside a batch does not matter, the disk likes it sorted."""
        if self.size == self.n_rows:
            return self._order
        epoch, i = divmod(t, self.per_epoch)
        if epoch != self._epoch:
            self._order = np.random.default_rng((*self.seed, epoch)).permutation(self.n_rows)
            self._epoch = epoch
        return np.sort(self._order[i * self.size : (i + 1) * self.size])
