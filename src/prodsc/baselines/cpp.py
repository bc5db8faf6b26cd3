"""CPP: rate reduction on frozen features, and the number of clusters by coding length."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prodsc import ranks
from prodsc.core.graph import spectral_partition
from prodsc.core.losses import Objective, Term, coding_length, coding_rate_parts
from prodsc.core.self_expression import gram, sinkhorn
from prodsc.errors import ParameterError
from prodsc.estimators.capabilities import Capability
from prodsc.estimators.deep import fit_identity
from prodsc.estimators.parameters import defaults_of
from prodsc.nn import Network
from prodsc.pro_dsc.building import build_network, build_objective, build_phases, self_expression_of
from prodsc.pro_dsc.config import Config, resolve_config
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.pro_dsc.interface import LabellerInterface
from prodsc.pro_dsc.labeller import fit_labeller
from prodsc.sources.rows import RowReader
from prodsc.sources.source import RowsInput
from prodsc.training import Callback, Phase, Step
from prodsc.training.session import open_checkpoint, read_batch, run_training
from prodsc.types import Rows, Square

AUTO_STEPS = 250  # of the joint phase, when epochs="auto": at 100 the objective still falls


class CPP(LabellerInterface):
    """Clustering by the principle of rate reduction on frozen features (CPP, ICLR 2024).

    PRO-DSC's network; memberships Pi instead of coefficients, and their rate instead of self-expression:

        -R(Z) + sum_j t_j/(2n) logdet(I + d/(t_j eps) Z' diag(Pi_j) Z) + beta ||Pi||_F^2,  Pi = Sinkhorn(|YY'|/eta)

    Training does not depend on n_clusters; `choose_k` finds one afterwards. See docs/methods/cpp.md.
    """

    capabilities = frozenset(Capability) - {Capability.DIAGNOSE, Capability.K_CURVE, Capability.CONSTRAINTS}

    departures = (
        "rows without their mean; width 512 instead of 4096; about 250 steps with rate 5e-3 instead of 730 "
        "with 1e-4; below 20,000 rows smaller batches and d = 64; two heads, not the better of two variants"
    )

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        heads: str = "separate",
        hidden_size: int = 512,
        n_components: int | str = "auto",
        scaling: str = "centred",
        eta: float = 0.175,
        half_steps: int = 5,
        beta: float = 0.025,
        eps: float = 0.1,
        batch_size: int | str = "auto",
        epochs: int | str = "auto",
        warmup_steps: int = 50,
        learning_rate: float = 5e-3,
        learning_rate_h: float | None = None,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        weight_decay_h: float = 5e-3,
        label_affinity: str = "coefficients",
        max_landmarks: int = 4096,
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.heads = heads
        self.hidden_size = hidden_size
        self.n_components = n_components
        self.scaling = scaling
        self.eta = eta
        self.half_steps = half_steps
        self.beta = beta
        self.eps = eps
        self.batch_size = batch_size
        self.epochs = epochs
        self.warmup_steps = warmup_steps
        self.learning_rate = learning_rate
        self.learning_rate_h = learning_rate_h
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.weight_decay_h = weight_decay_h
        self.label_affinity = label_affinity
        self.max_landmarks = max_landmarks
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _make_config(self, n_rows: int) -> Config:
        """PRO-DSC's configuration with the choices that CPP has, for the pieces that both share."""
        own = self.flat_params()
        size, d = cpp_sizes(n_rows, self.n_clusters_)
        own["batch_size"] = size = size if isinstance(self.batch_size, str) else self.batch_size
        own["n_components"] = d if isinstance(self.n_components, str) else self.n_components
        if isinstance(self.epochs, str):
            own["epochs"] = -(-AUTO_STEPS // (n_rows // min(n_rows, size)))
        published = {
            "encoder": "mlp",
            "gamma": 0.0,
            "normaliser": "sinkhorn",
            "regulariser": "none",
            "n_neighbors": 0,
            "keep_weights": "last",
            "power": 1.0,
        }
        params = defaults_of(PRODSC) | published | own
        return resolve_config(params, (n_rows, self.n_features_in_), self.n_clusters_)

    def _fit(self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        saved = open_checkpoint(checkpoint)
        if saved is not None:
            self.seed_ = saved.about["seed"]  # random_state=None drew another one just now
        config = self._make_config(len(rows))
        network = self._build_network(config, rows[slice(0, 100)]).to(self.device_)
        ranks.broadcast(*network.state_dict().values())
        objective = self._objective(config)

        def make_step(phase: Phase, t: int) -> MembershipStep:
            return MembershipStep(network, config, read_batch(rows, phase, t).to(self.device_), phase.batches[t])

        training = run_training(
            network,
            objective,
            self._phases(config, objective, len(rows)),
            make_step,
            callbacks,
            identity={} if checkpoint is None else fit_identity(self, self.seed_, rows),
            checkpoint=checkpoint,
            saved=saved,
            show_progress=bool(self.verbose),
        )
        self.history_ = training.history.columns()
        self._set_labels(*fit_labeller(network, config, rows, seed=self.seed_, device=self.device_))

    def _build_network(self, config: Config, sample: Tensor) -> Network:
        network = build_network(config, sample, self.seed_, self.device_)
        return network if self.heads == "separate" else SharedHead(network.encoder, network.f)

    def _objective(self, config: Config) -> Objective[Any]:
        return Objective(
            build_objective(config, 0).terms["coding_rate"],
            Term("coding_rate_parts", 1.0, lambda s: coding_rate_parts(s.Z, s.Pi, self.eps)),
            Term("frobenius", self.beta, lambda s: s.Pi.square().sum()),
        )

    def _phases(self, config: Config, objective: Objective[Any], n_rows: int) -> list[Phase]:
        *before, joint = build_phases(config, objective, n_rows, self.seed_, lambda network: None)
        return [*before, joint if self.heads == "separate" else replace(joint, on_enter=None)]

    def memberships(self, X: RowsInput) -> np.ndarray:
        """Pi of rows: how far each row belongs with each other one.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            The rows.

        Returns
        -------
        ndarray of float, shape (n, n)
        """
        rows = self._new_rows(X)
        return memberships(self.config_, self.labeller_.Y(rows)).cpu().numpy()

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        config = self._make_config(len(self.labels_))
        self._restore_labeller(self._build_network(config, self._sample()), config, tensors, facts)


def cpp_sizes(n_rows: int, k: int) -> tuple[int, int]:
    """Rows of a batch and dimension d where they are "auto": as published for large data, less for fewer rows.

    A step costs n^2 d^2. Fewer than 20,000 rows take ten rows of each cluster, 256 to 1024, and d = 64 for up to 32
    clusters.

    Parameters
    ----------
    n_rows : int
    k : int
        Number of clusters.

    Returns
    -------
    batch_size : int
    n_components : int
    """
    if n_rows >= 20_000:
        return 1024, 128
    return min(1024, max(256, 10 * k)), 64 if k <= 32 else 128


class SharedHead(Network):
    """One head for both: y is z."""

    def __init__(self, encoder: nn.Module, f: nn.Module):
        super().__init__(encoder, f, nn.Identity())

    def y(self, H: Rows) -> Rows:
        return self.z(H)


class MembershipStep(Step):
    """X -> H -> Z, Y -> Pi of one batch."""

    def __init__(self, network: Network, config: Config, X: Tensor, rows: np.ndarray):
        super().__init__(network, X, lambda Y: self_expression_of(config, Y), rows)
        self.config = config

    @cached_property
    def Pi(self) -> Square:
        return memberships(self.config, self.Y)


def memberships(config: Config, Y: Rows) -> Square:
    """Pi = n Sinkhorn(|YY'|/eta), the diagonal kept."""
    assert config.eta is not None
    return sinkhorn(gram(Y).abs() / config.eta, config.half_steps)


@dataclass(frozen=True)
class ChosenK:
    """The number of clusters with the shortest code, and the coding length of every candidate."""

    k: int
    lengths: dict[int, float]


def choose_k(model: CPP, X: RowsInput, candidates: Sequence[int]) -> ChosenK:
    """argmin over k of the coding length of Z in the k clusters that a fitted model finds."""
    if not len(candidates):
        raise ParameterError("choose_k: candidates must hold at least one number of clusters, got none.")
    rows = model._new_rows(X)
    Z, Y = model.labeller_.Z(rows), model.labeller_.Y(rows)
    lengths = {}
    for k in candidates:
        partition = spectral_partition(model.partition_.kernel, k, model.n_init, model.seed_)
        lengths[k] = float(coding_length(Z.double().cpu(), torch.from_numpy(partition.labels(Y)), model.eps))
    return ChosenK(min(lengths, key=lengths.__getitem__), lengths)
