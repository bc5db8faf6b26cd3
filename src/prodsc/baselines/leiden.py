"""Leiden: communities of the graph of nearest neighbours."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import scipy.sparse
import torch

from prodsc.core.graph import largest_first, neighbour_graph
from prodsc.errors import require
from prodsc.estimators.base import Clusterer
from prodsc.sources.rows import RowReader
from prodsc.training import Callback


class Leiden(Clusterer):
    """Communities of the k-NN graph that maximise modularity at a resolution. See docs/methods/leiden.md.

    There is no `predict`: a community has no rule for new rows.

    Attributes
    ----------
    n_clusters_ : int
        Number of communities that were found.
    resolution_ : float
        Resolution at which they were found.
    """

    resolution_: float

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 15,
        resolution: float | str = "auto",
        scaling: str = "unit",
        n_init: int = 1,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.resolution = resolution
        self.scaling = scaling
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _fit(self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        library = require("graspologic_native", extra="rivals", caller=type(self).__name__)
        X = torch.cat(list(rows.chunks())).numpy()
        graph = neighbour_graph(X, self.n_neighbors)
        if isinstance(self.resolution, str):
            labels = self._search(library, graph)
        else:
            self.resolution_ = float(self.resolution)
            labels = self._communities(library, graph, self.resolution_)
        self.n_clusters_ = int(labels.max()) + 1
        self.labels_ = largest_first(labels, self.n_clusters_)[1]

    def _search(
        self, library: object, graph: scipy.sparse.csr_array, lowest: float = 1e-3, highest: float = 1e3
    ) -> np.ndarray:
        """Bisect the logarithm of the resolution, and keep the partition whose number of communities is nearest k."""
        best, best_gap = None, np.inf
        low, high = np.log(lowest), np.log(highest)
        for _ in range(20):  # 20 halvings of the range: the resolution is exact to 0.002 %
            middle = (low + high) / 2
            labels = self._communities(library, graph, float(np.exp(middle)))
            gap = int(labels.max()) + 1 - self.n_clusters_
            if abs(gap) < best_gap:
                best, best_gap, self.resolution_ = labels, abs(gap), float(np.exp(middle))
            if gap == 0:
                break
            low, high = (middle, high) if gap < 0 else (low, middle)
        assert best is not None
        return best

    def _communities(self, library: object, graph: scipy.sparse.csr_array, resolution: float) -> np.ndarray:
        """The communities of all rows, numbered from 0."""
        _, community = library.leiden_csr(  # type: ignore[attr-defined]
            graph.indptr.astype(np.int64),
            graph.indices.astype(np.int32),
            graph.data.astype(np.float64),
            graph.shape[0],
            resolution=resolution,
            seed=self.seed_,
            trials=self.n_init,
        )
        return np.unique([community[row] for row in range(graph.shape[0])], return_inverse=True)[1]
