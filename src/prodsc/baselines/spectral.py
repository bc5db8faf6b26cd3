"""Spectral clustering of the graph of nearest neighbours."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prodsc.core.graph import neighbour_graph, neighbour_index, spectral_labels
from prodsc.estimators.base import Clusterer
from prodsc.estimators.capabilities import Capability
from prodsc.sources.rows import RowReader
from prodsc.sources.source import RowsInput
from prodsc.training import Callback


class SpectralClusterer(Clusterer):
    """k eigenvectors of the normalised Laplacian of the k-NN graph, rows normalised, k-means.

    A new row gets the label that most of its nearest training rows have. See docs/methods/spectral.md.
    """

    capabilities = frozenset({Capability.PREDICT})

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 10,
        scaling: str = "unit",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.scaling = scaling
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _fit(self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        self.rows_ = torch.cat(list(rows.chunks()))
        graph = neighbour_graph(self.rows_.numpy(), self.n_neighbors)
        self.labels_ = spectral_labels(graph, self.n_clusters_, self.n_init, self.seed_)

    def predict(self, X: RowsInput) -> np.ndarray:
        """The most frequent label among the nearest training rows; for a training row, its own label.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to label.

        Returns
        -------
        ndarray of int, shape (n,)
        """
        rows = self._new_rows(X)
        index = neighbour_index(self.rows_.numpy(), self.n_neighbors)
        labels = []
        for part in rows.chunks():
            distances, neighbours = index.kneighbors(part.numpy())
            votes = np.eye(self.n_clusters_)[self.labels_[neighbours]].sum(1)
            is_training_row = distances[:, 0] <= 1e-6 * np.linalg.norm(part.numpy(), axis=1)  # equal in float32
            labels.append(np.where(is_training_row, self.labels_[neighbours[:, 0]], votes.argmax(1)))
        return np.concatenate(labels)

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {"rows": self.rows_}, {}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.rows_ = tensors["rows"]
