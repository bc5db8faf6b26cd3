"""k-means and spherical k-means as methods to compare with."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from prodsc.core.graph import kmeans, largest_first
from prodsc.estimators.base import Clusterer
from prodsc.estimators.capabilities import Capability
from prodsc.sources.rows import RowReader
from prodsc.sources.source import RowsInput
from prodsc.training import Callback


class KMeansClusterer(Clusterer):
    """min over centres m: sum_i min_j ||x_i - m_j||^2, the best of `n_init` starts (scikit-learn's Lloyd).

    A new row gets the label of its nearest centre. See docs/methods/k-means.md.
    """

    capabilities = frozenset({Capability.PREDICT})

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        scaling: str = "none",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.scaling = scaling
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _fit(self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        centres = self._find(torch.cat(list(rows.chunks())))
        order, self.labels_ = largest_first(self._nearest(rows, centres), self.n_clusters_)
        self.centres_ = centres[torch.from_numpy(order)]

    def _find(self, X: Tensor) -> Tensor:
        centres, self.inertia_ = kmeans(X.numpy(), self.n_clusters_, self.n_init, self.seed_)
        return torch.from_numpy(centres).float()

    def predict(self, X: RowsInput) -> np.ndarray:
        """The nearest centre of each row.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to label.

        Returns
        -------
        ndarray of int, shape (n,)
        """
        return self._nearest(self._new_rows(X), self.centres_)

    def _nearest(self, rows: RowReader, centres: Tensor) -> np.ndarray:
        return torch.cat([torch.cdist(X, centres).argmin(1) for X in rows.chunks()]).numpy()

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {"centres": self.centres_}, {"inertia": self.inertia_}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.centres_, self.inertia_ = tensors["centres"], facts["inertia"]


class SphericalKMeans(KMeansClusterer):
    """max over unit centres m: sum_i max_j <x_i, m_j> for unit rows x_i: k-means by angle."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        scaling: str = "unit",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        super().__init__(
            n_clusters, scaling=scaling, n_init=n_init, random_state=random_state, device=device, verbose=verbose
        )

    def _find(self, X: Tensor) -> Tensor:
        generator = torch.Generator().manual_seed(self.seed_)
        points = normalize(X)
        runs = [self._once(points, generator) for _ in range(self.n_init)]
        best, self.inertia_ = min(runs, key=lambda pair: pair[1])
        return best

    def _once(
        self, X: Tensor, generator: torch.Generator, max_rounds: int = 300, tolerance: float = 1e-6
    ) -> tuple[Tensor, float]:
        """Assign, average, renormalise, from k rows by k-means++; the inertia is sum_i 1 - <x_i, m_j>."""
        centres = _spread_rows(X, self.n_clusters_, generator)
        last = float("inf")
        for _ in range(max_rounds):
            nearest, labels = (X @ centres.T).max(1)
            inertia = float((1 - nearest).sum())
            if last - inertia <= tolerance * len(X):
                break
            last = inertia
            sums = torch.zeros_like(centres).index_add_(0, labels, X)
            kept = sums.norm(dim=1) > 0  # a centre without rows stays where it is
            centres = torch.where(kept[:, None], normalize(sums), centres)
        return centres, inertia

    def _nearest(self, rows: RowReader, centres: Tensor) -> np.ndarray:
        return torch.cat([(normalize(X) @ centres.T).argmax(1) for X in rows.chunks()]).numpy()


def _spread_rows(X: Tensor, k: int, generator: torch.Generator) -> Tensor:
    """k rows, each drawn with a probability that grows with its angle to those before it (k-means++)."""
    chosen = [int(torch.randint(len(X), (1,), generator=generator))]
    gap = torch.full((len(X),), torch.inf)
    for _ in range(1, k):
        gap = torch.minimum(gap, (1 - X @ X[chosen[-1]]).clamp_min(0))
        weights = gap if gap.sum() > 0 else torch.ones_like(gap)
        chosen.append(int(torch.multinomial(weights, 1, generator=generator)))
    return X[chosen].clone()
