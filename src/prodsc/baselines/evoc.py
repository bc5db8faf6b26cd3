"""EVoC: a node embedding of the graph of nearest neighbours, then density clustering of it."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prodsc.baselines.noise import NOISE, assign_noise
from prodsc.errors import InputError, require
from prodsc.estimators.base import Clusterer
from prodsc.sources.rows import RowReader
from prodsc.sources.source import RowsInput
from prodsc.training import Callback


class EVoC(Clusterer):
    """Embedding vector oriented clustering, by the library evoc. Rows are compared by angle. See docs/methods/evoc.md.

    There is no `predict`, as the library has none.

    Attributes
    ----------
    n_clusters_ : int
        Number of clusters that EVoC found.
    is_noise_ : ndarray of bool
        Rows that EVoC calls noise. Each has the label of the nearest centroid among the input rows.
    """

    is_noise_: np.ndarray

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 15,
        noise_level: float = 0.5,
        min_samples: int = 5,
        scaling: str = "none",
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.noise_level = noise_level
        self.min_samples = min_samples
        self.scaling = scaling
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _fit(self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        X = torch.cat(list(rows.chunks())).numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # numba's, about its threads and its cache
            found = self._labels_with_noise(X)
        self.is_noise_ = found == NOISE
        self.labels_, self.n_clusters_ = assign_noise(X, found)

    def _labels_with_noise(self, X: np.ndarray) -> np.ndarray:
        """The library's labels, found in one thread: with more, the same seed gives other labels."""
        evoc = require("evoc", extra="rivals", caller=type(self).__name__)
        numba = require("numba", extra="rivals", caller=type(self).__name__)
        n_neighbors = min(self.n_neighbors, len(X) - 1)
        model = evoc.EVoC(
            approx_n_clusters=self.n_clusters_,
            n_neighbors=n_neighbors,
            node_embedding_dim=min(max(n_neighbors // 4, 4), 15, *X.shape),  # its default, which may exceed X
            noise_level=self.noise_level,
            min_samples=min(self.min_samples, len(X) - 1),
            random_state=self.seed_,
        )
        n_threads = numba.get_num_threads()
        numba.set_num_threads(1)
        try:
            return np.asarray(model.fit_predict(X))
        finally:
            numba.set_num_threads(n_threads)

    def _check_rows(self, X: RowsInput, learn: bool, strict: bool = False) -> Any:
        array = super()._check_rows(X, learn, strict)
        if learn and len(array) < 4:  # the library reduces its first embedding to 4 dimensions
            raise InputError(f"X has {len(array)} rows (n_samples={len(array)}); EVoC needs at least 4.")
        return array

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {"is_noise": torch.from_numpy(self.is_noise_)}, {}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.is_noise_ = tensors["is_noise"].numpy()
