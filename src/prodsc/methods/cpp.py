"""CPP: rate reduction on frozen features, and the number of clusters by coding length."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prodsc.data.matrix import Rows
from prodsc.graph import spectral_partition
from prodsc.losses import Objective, Term, coding_length, coding_rate_parts
from prodsc.methods.building import expressed
from prodsc.methods.pro_dsc import PRODSC
from prodsc.nn import Network
from prodsc.selfexpression import gram, sinkhorn
from prodsc.training import Callback, Phase, Step, Training
from prodsc.types import Rows as RowsOf
from prodsc.types import Square


class CPP(PRODSC):
    """Clustering by the principle of rate reduction on frozen features (CPP, ICLR 2024).

    PRO-DSC's network; memberships Pi instead of coefficients, and their rate instead of self-expression:

        -R(Z) + sum_j t_j/(2n) logdet(I + d/(t_j eps) Z' diag(Pi_j) Z) + beta ||Pi||_F^2,  Pi = Sinkhorn(|YY'|/eta)

    Training does not depend on n_clusters; `choose_k` finds one afterwards. See docs/methods/cpp.md.
    """

    # Choices of PRO-DSC that CPP does not have: its shared pieces read them.
    encoder: str | nn.Module = "mlp"
    head_hidden_size: int | None = None
    pretrain_batch_size = 1
    normaliser = "sinkhorn"
    coefficient_form = "symmetric"
    gamma: float | str = 0.0  # no term of self-expression
    anti_collapse = "coding-rate"
    regulariser = "none"
    regulariser_k: int | None = None
    learning_rate_encoder: float | None = None
    start = "warm-up"
    eigensolver = "exact"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        heads: str = "separate",
        hidden_size: int = 512,
        n_components: int = 128,
        scaling: str = "unit",
        eta: float = 0.175,
        half_steps: int = 5,
        beta: float = 0.025,
        eps: float = 0.1,
        batch_size: int = 1024,
        epochs: int | str = "auto",
        warmup_steps: int = 50,
        learning_rate: float = 1e-3,
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

    def _network(self, sample: Tensor) -> Network:
        network = super()._network(sample)
        return network if self.heads == "separate" else SharedHead(network.encoder, network.f)

    def _objective(self) -> Objective[Any]:
        return Objective(
            super()._objective().terms["coding_rate"],
            Term("coding_rate_parts", 1.0, lambda s: coding_rate_parts(s.Z, s.Pi, self.eps)),
            Term("frobenius", self.beta, lambda s: s.Pi.square().sum()),
        )

    def _phases(self, objective: Objective[Any], n_rows: int) -> list[Phase]:
        phases = super()._phases(objective, n_rows)
        return phases if self.heads == "separate" else [replace(phase, on_enter=None) for phase in phases]

    def _step(self, rows: Rows, phase: Phase, t: int) -> "MembershipStep":
        return MembershipStep(self, rows[phase.batches[t]].to(self.device_))

    def _listeners(self) -> list[Callback]:
        return []

    def _finish(self, training: Training, rows: Rows) -> None:
        self._label(rows)

    def memberships(self, X: Any) -> np.ndarray:
        """Pi, n x n: how far each row belongs with each other one."""
        return memberships(self, self._y(X)).cpu().numpy()


class SharedHead(Network):
    """One head for both: y is z."""

    def __init__(self, encoder: nn.Module, f: nn.Module):
        super().__init__(encoder, f, nn.Identity())

    def y(self, H: RowsOf) -> RowsOf:
        return self.z(H)


class MembershipStep(Step):
    """X -> H -> Z, Y -> Pi of one batch."""

    def __init__(self, model: CPP, X: Tensor):
        super().__init__(model.network_, X, lambda Y: expressed(model, Y))
        self.model = model

    @cached_property
    def Pi(self) -> Square:
        return memberships(self.model, self.Y)


def memberships(model: CPP, Y: RowsOf) -> Square:
    """Pi = n Sinkhorn(|YY'|/eta), the diagonal kept."""
    return sinkhorn(gram(Y).abs() / model.eta, model.half_steps)


@dataclass(frozen=True)
class ChosenK:
    """The number of clusters with the shortest code, and the coding length of every candidate."""

    k: int
    lengths: dict[int, float]


def choose_k(model: CPP, X: Any, candidates: Sequence[int]) -> ChosenK:
    """argmin over k of the coding length of Z in the k clusters that a fitted model finds."""
    Z, Y = model._outputs(model._new_rows(X))
    lengths = {}
    for k in candidates:
        partition = spectral_partition(model.partition_.kernel, k, model.n_init, model.seed_)
        lengths[k] = float(coding_length(Z.double(), torch.from_numpy(partition.labels(Y)), model.eps))
    return ChosenK(min(lengths, key=lengths.__getitem__), lengths)
