"""UMAP, then k-means, a Gaussian mixture or HDBSCAN on its embedding."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.cluster import HDBSCAN
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture
from torch import Tensor

from prodsc.baselines.noise import NOISE, assign_noise
from prodsc.core.graph import kmeans, largest_first
from prodsc.errors import InputError, require
from prodsc.estimators.base import Clusterer
from prodsc.sources.rows import RowReader
from prodsc.sources.source import RowsInput
from prodsc.training import Callback


class UMAPMethod(Clusterer):
    """A method is its `_label`, which clusters UMAP's embedding.

    There is no `predict`: UMAP's `transform` needs the fitted UMAP object, which only a pickle could keep.
    """

    n_neighbors: int
    min_dist: float
    n_components: int
    embedding_: np.ndarray  # n x n_components

    def _label(self, X: np.ndarray) -> np.ndarray:
        """The labels of all rows, from `embedding_` and the rows X themselves."""
        raise NotImplementedError

    def _fit(self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        X = torch.cat(list(rows.chunks())).numpy()
        self.embedding_ = self._embed(X)
        self.labels_ = self._label(X)

    def _embed(self, X: np.ndarray) -> np.ndarray:
        """UMAP's embedding; its warnings are about its start and its threads, which a user here did not choose."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            umap = require("umap", extra="rivals", caller=type(self).__name__)
            reducer = umap.UMAP(
                n_neighbors=min(self.n_neighbors, len(X) - 1),
                min_dist=self.min_dist,
                n_components=self.n_components,
                random_state=self.seed_,
                n_jobs=1,  # what a seed means for UMAP
                verbose=bool(self.verbose),
            )
            return np.asarray(reducer.fit_transform(X), dtype=np.float32)

    def _check_rows(self, X: RowsInput, learn: bool, strict: bool = False) -> Any:
        array = super()._check_rows(X, learn, strict)
        least = self.n_components + 2  # UMAP starts from n_components + 1 eigenvectors
        if learn and len(array) < least:
            raise InputError(
                f"X has {len(array)} rows (n_samples={len(array)}); UMAP needs at least n_components + 2 = {least}. "
                "Lower n_components or give more rows."
            )
        return array

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return {"embedding": torch.from_numpy(self.embedding_)}, {}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.embedding_ = tensors["embedding"].numpy()


class UMAPKMeans(UMAPMethod):
    """k-means of UMAP's embedding, the best of `n_init` starts. See docs/methods/umap.md."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 30,
        min_dist: float = 0.0,
        n_components: int = 10,
        scaling: str = "none",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.min_dist = min_dist
        self.n_components = n_components
        self.scaling = scaling
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _label(self, X: np.ndarray) -> np.ndarray:
        centres, _ = kmeans(self.embedding_, self.n_clusters_, self.n_init, self.seed_)
        distances = torch.cdist(torch.from_numpy(self.embedding_), torch.from_numpy(centres).float())
        return largest_first(distances.argmin(1).numpy(), self.n_clusters_)[1]


class UMAPGMM(UMAPMethod):
    """A Gaussian mixture with full covariances, fitted to UMAP's embedding. See docs/methods/umap.md."""

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 30,
        min_dist: float = 0.0,
        n_components: int = 10,
        scaling: str = "none",
        n_init: int = 1,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.min_dist = min_dist
        self.n_components = n_components
        self.scaling = scaling
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _label(self, X: np.ndarray) -> np.ndarray:
        mixture = GaussianMixture(self.n_clusters_, n_init=self.n_init, random_state=self.seed_)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            labels = mixture.fit_predict(self.embedding_.astype(np.float64))
        return largest_first(labels, self.n_clusters_)[1]


class UMAPHDBSCAN(UMAPMethod):
    """HDBSCAN of UMAP's embedding. It finds the number of clusters itself. See docs/methods/umap.md.

    Attributes
    ----------
    n_clusters_ : int
        Number of clusters that HDBSCAN found.
    is_noise_ : ndarray of bool
        Rows that HDBSCAN calls noise. Each has the label of the nearest centroid among the input rows.
    """

    is_noise_: np.ndarray

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 30,
        min_dist: float = 0.0,
        n_components: int = 10,
        min_cluster_size: int | str = "auto",
        min_samples: int = 10,
        scaling: str = "none",
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.min_dist = min_dist
        self.n_components = n_components
        self.min_cluster_size = min_cluster_size
        self.min_samples = min_samples
        self.scaling = scaling
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _label(self, X: np.ndarray) -> np.ndarray:
        scan = HDBSCAN(
            min_cluster_size=self._smallest_cluster(len(X)), min_samples=min(self.min_samples, len(X)), copy=True
        )
        found = scan.fit_predict(self.embedding_.astype(np.float64))
        self.is_noise_ = found == NOISE
        labels, self.n_clusters_ = assign_noise(X, found)
        return labels

    def _smallest_cluster(self, n: int) -> int:
        """UMAP's clustering guide takes 500 for 70,000 rows in 10 classes: a fourteenth of the average class."""
        if isinstance(self.min_cluster_size, str):
            return max(5, n // (14 * self.n_clusters_))  # 5 is scikit-learn's default
        return min(self.min_cluster_size, n)

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = super()._state()
        return tensors | {"is_noise": torch.from_numpy(self.is_noise_)}, facts

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.is_noise_ = tensors["is_noise"].numpy()
