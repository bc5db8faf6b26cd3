"""SCAN on frozen features: linear heads on which neighbours agree, then self-labelling."""

from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prodsc.core.graph import nearest_neighbours
from prodsc.core.losses import Objective, Term, disagreement, negative_entropy, self_label
from prodsc.estimators.soft import HeadLosses, SoftClusterer, neighbours_within, one_of
from prodsc.nn import build_seeded
from prodsc.random import Stream
from prodsc.sources.rows import RowReader
from prodsc.training import Batches, Callback, Phase, Training


class SCAN(SoftClusterer):
    """Semantic clustering by adopting nearest neighbours (SCAN, ECCV 2020), on features.

    Linear heads with p = softmax; for rows x_i with a neighbour x'_i

        -mean_i log <p(x_i), p(x'_i)> - entropy_weight H(mean p)

    then, on the best head, cross-entropy with its own confident labels. See docs/methods/scan.md.
    """

    departures = (
        "features are frozen and there are no augmented images; one scale for all columns; rate 1e-3, batches "
        "of at least 512 and 100 epochs instead of 1e-4, 128 and 50"
    )

    network_: "LinearHeads"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_heads: int = 10,
        n_neighbors: int | str = "auto",
        scaling: str = "global",
        entropy_weight: float = 5.0,
        batch_size: int | str = "auto",
        epochs: int = 100,
        self_label_epochs: int = 20,
        confidence: float = 0.99,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-4,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.n_heads = n_heads
        self.n_neighbors = n_neighbors
        self.scaling = scaling
        self.entropy_weight = entropy_weight
        self.batch_size = batch_size
        self.epochs = epochs
        self.self_label_epochs = self_label_epochs
        self.confidence = confidence
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _network(self, sample: Tensor) -> "LinearHeads":
        generator = torch.Generator().manual_seed(self.seed_)
        width = sample.shape[1]
        heads = [build_seeded(lambda: nn.Linear(width, self.n_clusters_), generator) for _ in range(self.n_heads)]
        return LinearHeads(nn.ModuleList(heads))

    def _prepare(self, rows: RowReader) -> None:
        X = torch.cat([*rows.chunks()]).to(self.device_)
        n_neighbors = neighbours_within(self.n_neighbors, len(rows), self.n_clusters_, most=20)
        self._neighbours = nearest_neighbours(X, n_neighbors).cpu()

    def _objective(self) -> Objective[Any]:
        return Objective(
            Term("disagreement", 1.0, lambda s: s.disagreement.mean()),
            Term("negative_entropy", self.entropy_weight, lambda s: s.negative_entropy.mean()),
            Term("self_label", 1.0, lambda s: self_label(self.network_.best(s.X), self.confidence)),
        )

    def _phases(self, objective: Objective[Any], n_rows: int) -> list[Phase]:
        size = max(512, 10 * self.n_clusters_) if isinstance(self.batch_size, str) else self.batch_size
        pairs = Batches(n_rows, size, (self.seed_, Stream.FIRST_PHASE))
        # Large batches, so that every cluster has confident rows in each.
        single = Batches(n_rows, 1000, (self.seed_, Stream.SECOND_PHASE))
        return [
            Phase("joint", self.epochs * pairs.per_epoch, ("disagreement", "negative_entropy"), pairs, self._adam),
            Phase("self-label", self.self_label_epochs * single.per_epoch, ("self_label",), single, self._adam),
        ]

    def _adam(self, network: "LinearHeads") -> torch.optim.Optimizer:
        return torch.optim.Adam(network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay, fused=True)

    def _step(self, rows: RowReader, phase: Phase, t: int) -> "SCANBatch":
        batch = phase.batches[t]
        X, X_other = (rows[which].to(self.device_) for which in (batch, one_of(self._neighbours, batch, phase, t)))
        return SCANBatch(self.network_, X, X_other, self.entropy_weight)

    def _listeners(self) -> list[Callback]:
        return [HeadLosses("disagreement")]

    def _finish(self, training: Training, rows: RowReader) -> None:
        del self._neighbours  # n x n_neighbors: only training reads it
        super()._finish(training, rows)

    def _logits(self) -> nn.Module:
        return self.network_.best


class LinearHeads(nn.Module):
    """Independent heads, and their losses of the newest epoch."""

    losses: Tensor

    def __init__(self, heads: nn.ModuleList):
        super().__init__()
        self.heads = heads
        self.register_buffer("losses", torch.zeros(len(heads)))

    def forward(self, X: Tensor) -> Tensor:
        """Probabilities, heads x n x k."""
        return torch.softmax(torch.stack([head(X) for head in self.heads]), dim=2)

    @property
    def best(self) -> nn.Module:
        """The head with the lowest loss."""
        return self.heads[int(self.losses.argmin())]


class SCANBatch:
    """Rows and a neighbour of each: how far every head agrees on both, and how evenly it uses the clusters."""

    def __init__(self, network: LinearHeads, X: Tensor, X_other: Tensor, entropy_weight: float):
        self.network, self.X, self.X_other, self.entropy_weight = network, X, X_other, entropy_weight

    @cached_property
    def P(self) -> Tensor:
        return self.network(self.X)

    @cached_property
    def disagreement(self) -> Tensor:
        return disagreement(self.P, self.network(self.X_other))

    @cached_property
    def negative_entropy(self) -> Tensor:
        return negative_entropy(self.P)

    @property
    def by_head(self) -> Tensor:
        return self.disagreement + self.entropy_weight * self.negative_entropy
