"""Training: a network that gives Z and Y, from a configuration and the rows."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from prodsc import ranks
from prodsc.core import metrics
from prodsc.core.graph import nearest_neighbours, spectral_partition
from prodsc.core.self_expression import SelfExpression, perplexity
from prodsc.nn import Network, PrincipalCoordinates, compiled
from prodsc.pro_dsc.building import build_network, build_objective, build_phases, self_expression_of
from prodsc.pro_dsc.config import Config
from prodsc.pro_dsc.constraints import Constraints
from prodsc.pro_dsc.defaults import find_eta
from prodsc.pro_dsc.labeller import make_kernel, network_outputs
from prodsc.pro_dsc.neighbour_sampler import NeighbourSampler
from prodsc.pro_dsc.walk_start import WalkStart, start_walk
from prodsc.random import StepStream, Stream, evenly_spaced, generator
from prodsc.sources.rows import RowReader
from prodsc.sources.stored import StoredRows
from prodsc.training import Callback, Phase, Step
from prodsc.training.checkpoint import Checkpoint
from prodsc.training.guard import CollapseGuard
from prodsc.training.session import batch_share, read_batch, run_training
from prodsc.training.stopping import STOPPING_RULES, BestWeightsCallback, StopWhenConverged


@dataclass(frozen=True)
class TrainedNetwork:
    """What training leaves: the network, the configuration with every value known, and the history."""

    network: Network
    config: Config  # eta is known now, and gamma is its weight at the end
    seed: int
    device: torch.device
    history: dict[str, np.ndarray]


def train_network(
    config: Config,
    rows: RowReader,
    *,
    seed: int,
    device: torch.device,
    constraints: Constraints | None = None,
    callbacks: Sequence[Callback] = (),
    identity: dict[str, Any] | None = None,
    checkpoint: Path | None = None,
    saved: Checkpoint | None = None,
    show_progress: bool = False,
) -> TrainedNetwork:
    """Train the network of a configuration.

    Parameters
    ----------
    config : Config
    rows : RowReader
        The training rows.
    seed : int
        Seed of weights, batches and neighbours.
    device : torch.device
    constraints : Constraints or None
        Known labels and pairs.
    callbacks : sequence of Callback
        Called after those of the method itself.
    identity, checkpoint, saved, show_progress
        As in `training.session.run_training`.

    Returns
    -------
    TrainedNetwork
    """
    trainer = Trainer(config, rows, seed, device, constraints)
    objective = build_objective(config, len(rows), constraints is not None)
    with compiled(trainer.network, config.compile == "on"):
        training = run_training(
            trainer.network,
            objective,
            build_phases(config, objective, trainer.n_rows, seed, trainer.whiten, constraints, trainer.uneven),
            trainer.make_step,
            [*trainer.callbacks(), *callbacks],
            identity=identity or {},
            checkpoint=checkpoint,
            saved=saved,
            show_progress=show_progress,
        )
    return trainer.result(training.history.columns(), training.objective.weights["self_expression"])


class Trainer:
    """The state of one training beside the network: features of a frozen encoder, neighbours, rows that are scored."""

    def __init__(
        self, config: Config, rows: RowReader, seed: int, device: torch.device, constraints: Constraints | None = None
    ):
        self.config, self.rows, self.seed, self.device, self.constraints = config, rows, seed, device, constraints
        self.network = build_network(config, rows[slice(0, 100)], seed, device).to(device)
        ranks.broadcast(*self.network.state_dict().values())
        self.walk: WalkStart | None = None
        if config.from_walk:
            assert isinstance(self.network.encoder, nn.Sequential)
            coordinates = cast(PrincipalCoordinates, self.network.encoder[0])
            self.walk = start_walk(rows, coordinates, config.n_clusters, seed, device)
        if config.batch_size <= config.n_clusters < len(rows):
            warnings.warn(
                f"batch_size={config.batch_size} is not larger than n_clusters={config.n_clusters}, so no batch "
                "can show all clusters. Use a batch_size of several times n_clusters.",
                UserWarning,
                stacklevel=6,
            )

    @property
    def n_rows(self) -> int:
        """Rows that batches are drawn from."""
        return len(self.rows) if self.walk is None else len(self.walk.points)

    @property
    def uneven(self) -> bool:
        """Whether the walk shows clusters of very different size."""
        return self.walk is not None and self.walk.uneven

    def callbacks(self) -> list[Callback]:
        """Callbacks that belong to the method: the collapse guard, and the one that decides which weights to keep."""
        config = self.config
        guard = CollapseGuard(config.on_collapse, config.eps)
        if config.keep_weights == "best":
            return [guard, BestWeightsCallback(self.evaluate, self.network)]
        if config.keep_weights == "converged":
            some = self._scored_rows(len(self.rows))
            return [guard, StopWhenConverged(lambda: self._current_labels(some)[0], len(some))]
        return [guard]

    def result(self, history: dict[str, np.ndarray], gamma: float) -> TrainedNetwork:
        """The network as it is, with the configuration it has been trained under so far."""
        config = replace(self.config, eta=self.eta, gamma=gamma)
        return TrainedNetwork(self.network, config, self.seed, self.device, history)

    # ---- one step ------------------------------------------------------------------------------------------------

    def make_step(self, phase: Phase, t: int) -> Step:
        """Batch t of a phase."""
        batch = phase.batches[t]
        if self.walk is not None:
            return self._walk_step(self.walk, phase, t)
        relation = self._relation(batch) if "links" in phase.terms else None
        if self.config.whitened and phase.name == "joint":
            X = H = self._frozen_features(phase, t)
        else:
            X, H = read_batch(self.rows, phase, t).to(self.device), None
        near = self._neighbour_view(phase, t, X)
        return Step(self.network, X, lambda Y: self._express(Y, relation), batch, H, relation, near)

    def _walk_step(self, walk: WalkStart, phase: Phase, t: int) -> Step:
        """A batch and the ends of walks from its rows."""
        batch = phase.batches[t]
        ends = walk.sampler.ends(batch, generator(*phase.batches.seed, t, StepStream.NEIGHBOUR))
        mine = ranks.share(len(batch))
        points, near = (walk.points[torch.from_numpy(which[mine]).to(self.device)] for which in (batch, ends))
        H, H_near = (self.network.encode(P, skip=1) for P in (points, near))  # the coordinates are known
        targets = walk.labels[torch.from_numpy(batch).to(self.device)]
        return Step(self.network, points, lambda Y: self._express(Y, None), batch, H, near=H_near, targets=targets)

    def _express(self, Y: Tensor, relation: Tensor | None) -> SelfExpression:
        return self_expression_of(replace(self.config, eta=self.eta), Y, relation)

    def _frozen_features(self, phase: Phase, t: int) -> Tensor:
        """H of a batch, from an encoder that no longer changes: computed once, unless the rows stay in files."""
        self.eta  # noqa: B018 - found from the first features, before any step
        if isinstance(self.rows.array, StoredRows):
            return self._encode([read_batch(self.rows, phase, t)])
        return self._all_frozen[torch.from_numpy(batch_share(phase, t))]

    @cached_property
    def _all_frozen(self) -> Tensor:
        return self._encode(self.rows.chunks())

    @cached_property
    def eta(self) -> float:
        """Temperature of the coefficients; after a whitened start a function of the frozen features.

        So a resumed fit and every rank find the same value.
        """
        if self.config.eta is not None:
            return self.config.eta
        some = evenly_spaced(len(self.rows), self.config.batch_size)
        Y = normalize(self._encode(self.rows.chunks(some)))
        eta = torch.tensor(
            find_eta(Y, self.config.rules.expressing_share / self.config.n_clusters), dtype=torch.float64
        )
        ranks.broadcast(eta)
        return float(eta)

    def _neighbour_view(self, phase: Phase, t: int, X: Tensor) -> Tensor | None:
        """The rows that Y of a joint step is computed from; rows with constraints always stay themselves."""
        if phase.name != "joint" or self.config.n_neighbors == 0:
            return None
        batch = phase.batches[t]
        drawn = self._sampler.draw_ranks(len(batch), (*phase.batches.seed, t, StepStream.NEIGHBOUR_VIEW))
        if self.constraints is not None:
            drawn[np.isin(batch, self.constraints.rows)] = -1
        mine = ranks.share(len(batch))
        return self._sampler.take(batch[mine], X, drawn[mine])

    @cached_property
    def _sampler(self) -> NeighbourSampler:
        """Nearest rows in the space that the network learns from."""
        read = self._encode if self.config.whitened else lambda batches: torch.cat([*batches]).to(self.device)
        return NeighbourSampler(self.rows, max(1, self.config.n_neighbors), self.seed, read)

    def _relation(self, batch: np.ndarray) -> Tensor:
        assert self.constraints is not None
        return self.constraints.relation_of(batch).to(self.device)

    def whiten(self, network: Network) -> None:
        """The closed form of the warm-up, from all training rows."""
        assert network.whitening is not None
        network.eval()
        with torch.inference_mode():
            network.whitening.fit(lambda: (network.encoder(X.to(self.device)).flatten(1) for X in self.rows.chunks()))
        ranks.broadcast(network.whitening.W)

    def _encode(self, batches: Iterable[Tensor]) -> Tensor:
        """H of all batches, from an encoder that no longer changes."""
        with torch.no_grad():
            return torch.cat([self.network.encode(X.to(self.device)) for X in batches])

    # ---- how good are the current weights? -----------------------------------------------------------------------

    def evaluate(self) -> tuple[float, float]:
        """Of the current weights: how well nearest rows agree on their labels, and the perplexity of the coefficients
        in clusters of average size."""
        rows, near = self._rows_and_neighbours
        labels, Y = self._current_labels(rows)
        return metrics.agreement_beyond_chance(labels, near), self.config.n_clusters * perplexity(Y, self.eta)

    @cached_property
    def _rows_and_neighbours(self) -> tuple[np.ndarray, np.ndarray]:
        """The rows that are scored, and the nearest of each among them."""
        sampler = self._sampler
        some = self._scored_rows(len(sampler.pool_rows))
        near = nearest_neighbours(
            sampler.points[torch.from_numpy(some).to(self.device)], self.config.rules.max_neighbors
        )
        return sampler.pool_rows[some], near.cpu().numpy()

    def _scored_rows(self, n: int) -> np.ndarray:
        """Which of n rows are scored during training, ascending."""
        order = generator(self.seed, Stream.SCORED_ROWS).permutation(n)
        return np.sort(order[: max(STOPPING_RULES.n_rows, 4 * self.config.n_clusters)])

    def _current_labels(self, rows: np.ndarray) -> tuple[np.ndarray, Tensor]:
        """Labels by the current weights of some rows, clustered on their own, and their Y."""
        if self.config.whitened and "_all_frozen" in vars(self):
            batches: Iterable[Tensor] = [self._all_frozen[torch.from_numpy(rows)]]
            parts = network_outputs(self.network, self.network.y, batches, self.device, encoded=True)
        else:
            parts = network_outputs(self.network, self.network.y, self.rows.chunks(rows), self.device)
        Y = torch.cat([*parts])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the final labels give the warnings that matter
            kernel = make_kernel(self.config, Y, eta=self.eta, power=1.0)  # too few rows for a sharp affinity
            return spectral_partition(kernel, self.config.n_clusters, 1, self.seed).labels(Y), Y
