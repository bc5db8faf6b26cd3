"""Walk: labels that keep the information of a random walk on the neighbour graph, taught to a small network."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, normalize

from prodsc.core.graph import Walk, WalkLabels, WalkSampler, label_walks, make_walk, neighbours_and_distances
from prodsc.core.graph.walk_labels import WALK_RULES, WalkRules
from prodsc.core.losses import Objective, Term, negative_information
from prodsc.estimators.soft import SoftClusterer
from prodsc.nn import build_seeded
from prodsc.random import StepStream, Stream, generator, sorted_subset
from prodsc.sources.rows import RowReader
from prodsc.training import Batches, Phase, Training


@dataclass(frozen=True)
class CoordinateRules:
    """Constants of the space in which neighbours are found (docs/notes/walk_information.md)."""

    n_directions: int = 128  # principal directions
    max_spreads: tuple[float, ...] = (2.0, 1.0)  # widest column, in medians: the more informative one is taken
    spread_rows: int = 3000  # rows on which it is chosen
    graph_rows: int = 2**15  # of more rows a random part is clustered; the network labels the others


RULES = CoordinateRules()
FEW_CANDIDATES = replace(WALK_RULES, gammas=WALK_RULES.gammas[-1:], starts=2)  # to rank two limits


class WalkClusterer(SoftClusterer):
    """Clusters that keep the most information about one step of a random walk between nearest rows.

    The walk takes the place of PRO-DSC's coefficients: Z follows from it in closed form, small clusters of Z are
    merged by the information they lose, rows move by the likelihood of their walk, and many such labellings vote.
    A network with k outputs learns the labels, so that new rows are labelled in one pass. See docs/methods/walk.md.

    Attributes
    ----------
    uneven_ : bool
        Whether the clusters differ so much in size that the leading eigenvectors of the walk decided instead of
        the vote.
    """

    network_: "WalkNetwork"
    uneven_: bool

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_neighbors: int = 15,
        scaling: str = "unit",
        hidden_size: int = 256,
        batch_size: int | str = "auto",
        steps: int = 100,
        learning_rate: float = 1e-3,
        weight_decay: float = 1e-2,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.n_neighbors = n_neighbors
        self.scaling = scaling
        self.hidden_size = hidden_size
        self.batch_size = batch_size
        self.steps = steps
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _network(self, sample: Tensor) -> "WalkNetwork":
        width = sample.shape[1]
        n_directions = min(RULES.n_directions, width)
        random = torch.Generator().manual_seed(self.seed_)
        layers = build_seeded(lambda: make_layers(n_directions, self.hidden_size, self.n_clusters_), random)
        return WalkNetwork(layers, width, n_directions)

    def _prepare(self, rows: RowReader) -> None:
        chosen = np.arange(len(rows))
        if len(rows) > RULES.graph_rows:
            chosen = sorted_subset(len(rows), RULES.graph_rows, self.seed_, Stream.NEIGHBOUR_POOL)
        self._X = torch.cat([*rows.chunks(chosen)]).to(self.device_)
        self.network_.set_coordinates(self._X, self._choose_max_spread())
        walks, found = self._label(self.network_.coordinates(self._X), (0.5, 1, 2), self.seed_)
        self.uneven_ = found.uneven
        self._targets = torch.from_numpy(found.labels).long().to(self.device_)
        self._sampler = WalkSampler(walks[1])

    def _choose_max_spread(self) -> float:
        """The limit of the columns' spread under which the walk on some rows keeps the most information."""
        some = self._X[:: -(-len(self._X) // RULES.spread_rows)]

        def kept(max_spread: float) -> float:
            network = WalkNetwork(nn.Identity(), *self.network_.directions.shape).to(self.device_)
            network.set_coordinates(some, max_spread)
            return self._label(network.coordinates(some), (1,), 0, FEW_CANDIDATES)[1].information

        return max(RULES.max_spreads, key=kept)

    def _label(
        self, points: Tensor, factors: tuple[float, ...], seed: int, rules: WalkRules = WALK_RULES
    ) -> tuple[list[Walk], WalkLabels]:
        """Labels of points by the walks on graphs of `n_neighbors` times these factors neighbours."""
        sizes = [max(1, int(factor * self.n_neighbors)) for factor in factors]
        near, distances = (part.cpu().numpy() for part in neighbours_and_distances(points, max(sizes)))
        walks = [make_walk(near[:, :m], distances[:, :m]) for m in sizes]
        unit = normalize(points).double().cpu().numpy()
        return walks, label_walks(walks, unit, self.n_clusters_, seed, self.n_neighbors, rules)

    def _objective(self) -> Objective["WalkBatch"]:
        return Objective(
            Term("cross_entropy", 1.0, lambda s: cross_entropy(s.logits, s.targets)),
            Term("negative_information", 1.0, lambda s: negative_information(*s.logits.softmax(1).chunk(2))),
        )

    def _phases(self, objective: Objective[Any], n_rows: int) -> list[Phase]:
        n = len(self._X)
        size = max(512, 8 * self.n_clusters_) if isinstance(self.batch_size, str) else self.batch_size
        batches = [
            Batches(n, min(size, max(n // 2, 1)), (self.seed_, stream))
            for stream in (Stream.FIRST_PHASE, Stream.SECOND_PHASE)
        ]
        phases = [
            Phase("labels", self.steps, ("cross_entropy",), batches[0], self._adam),
            # Information prefers clusters of like size, so it does not refine uneven ones.
            Phase("information", self.steps, ("negative_information",), batches[1], self._adam),
        ]
        return phases[:1] if self.uneven_ else phases

    def _adam(self, network: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(network.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay)

    def _step(self, rows: RowReader, phase: Phase, t: int) -> "WalkBatch":
        batch = phase.batches[t]
        ends = self._sampler.ends(batch, generator(*phase.batches.seed, t, StepStream.NEIGHBOUR))
        which = torch.from_numpy(np.concatenate([batch, ends])).to(self.device_)
        return WalkBatch(self.network_, self._X[which], self._targets[torch.from_numpy(batch)].repeat(2))

    def _finish(self, training: Training, rows: RowReader) -> None:
        del self._X, self._targets, self._sampler  # only training reads them
        super()._finish(training, rows)

    def _logits(self) -> nn.Module:
        return self.network_

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = super()._state()
        return tensors, facts | {"uneven": self.uneven_}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.uneven_ = facts["uneven"]


def make_layers(n_inputs: int, hidden_size: int, k: int) -> nn.Sequential:
    """A perceptron with two hidden layers and k outputs."""
    return nn.Sequential(
        nn.Linear(n_inputs, hidden_size), nn.BatchNorm1d(hidden_size), nn.ReLU(),
        nn.Linear(hidden_size, hidden_size), nn.ReLU(), nn.Linear(hidden_size, k),
    )  # fmt: skip


class WalkNetwork(nn.Module):
    """Rows to logits: fixed principal coordinates, scaled to one length, then trained layers.

    Parameters
    ----------
    layers : nn.Module
    width : int
        Columns of the input.
    n_directions : int
    """

    scale: Tensor
    mean: Tensor
    directions: Tensor

    def __init__(self, layers: nn.Module, width: int, n_directions: int):
        super().__init__()
        self.layers = layers
        self.register_buffer("scale", torch.ones(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("directions", torch.zeros(width, n_directions))

    @torch.no_grad()
    def set_coordinates(self, X: Tensor, max_spread: float) -> None:
        """Principal directions of rows, after columns wider than `max_spread` medians are made so wide.

        Parameters
        ----------
        X : Tensor of shape (n, width)
        max_spread : float
        """
        spread = X.std(0, correction=0)
        varying = spread[spread > 0]
        median = varying.median() if len(varying) else spread.new_ones(())
        self.scale.copy_(1 / (spread / (max_spread * median)).clamp_min(1))
        self.mean.copy_((X * self.scale).mean(0))
        centred = (X * self.scale - self.mean).double()
        width, n_directions = self.directions.shape
        if width == n_directions:
            self.directions.copy_(torch.eye(width))
            return
        vectors = torch.linalg.eigh(centred.T @ centred)[1][:, -n_directions:].flip(1)
        signs = vectors.gather(0, vectors.abs().argmax(0, keepdim=True)).sign()
        self.directions.copy_(vectors * signs)  # eigenvectors have no sign of their own

    def coordinates(self, X: Tensor) -> Tensor:
        """Rows along the principal directions, all of the same length."""
        P = (X * self.scale - self.mean) @ self.directions
        return normalize(P) * self.directions.shape[1] ** 0.5

    def forward(self, X: Tensor) -> Tensor:
        return self.layers(self.coordinates(X))


class WalkBatch:
    """Rows, then the end of a walk from each; the labels of the former count for both."""

    def __init__(self, network: WalkNetwork, X: Tensor, targets: Tensor):
        self.network, self.X, self.targets = network, X, targets

    @cached_property
    def logits(self) -> Tensor:
        return self.network(self.X)
