"""CPP: rate reduction on frozen features, and the number of clusters by coding length."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prodsc.core.graph import spectral_partition
from prodsc.core.losses import Objective, Term, coding_length, coding_rate_parts
from prodsc.core.self_expression import gram, sinkhorn
from prodsc.errors import ParameterError
from prodsc.estimators.capabilities import Capability
from prodsc.nn import Network
from prodsc.pro_dsc.building import expressed
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.sources.rows import RowReader
from prodsc.training import Callback, Phase, Step, Training
from prodsc.types import Rows, Square

AUTO_STEPS = 250  # of the joint phase, when epochs="auto": at 100 the objective still falls


class CPP(PRODSC):
    """Clustering by the principle of rate reduction on frozen features (CPP, ICLR 2024).

    PRO-DSC's network; memberships Pi instead of coefficients, and their rate instead of self-expression:

        -R(Z) + sum_j t_j/(2n) logdet(I + d/(t_j eps) Z' diag(Pi_j) Z) + beta ||Pi||_F^2,  Pi = Sinkhorn(|YY'|/eta)

    Training does not depend on n_clusters; `choose_k` finds one afterwards. See docs/methods/cpp.md.
    """

    capabilities = frozenset(Capability) - {Capability.DIAGNOSE, Capability.K_CURVE, Capability.CONSTRAINTS}

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
        super().__init__(  # the choices of PRO-DSC that CPP does not have are made here: the shared pieces read them
            n_clusters,
            encoder="mlp",
            hidden_size=hidden_size,
            n_components=n_components,
            scaling=scaling,
            eta=eta,
            normaliser="sinkhorn",
            half_steps=half_steps,
            gamma=0.0,
            beta=beta,
            eps=eps,
            anti_collapse="coding-rate",
            regulariser="none",
            batch_size=batch_size,
            epochs=epochs,
            neighbour_views=0,
            keep="last",
            warmup_steps=warmup_steps,
            learning_rate=learning_rate,
            learning_rate_h=learning_rate_h,
            momentum=momentum,
            weight_decay=weight_decay,
            weight_decay_h=weight_decay_h,
            label_affinity=label_affinity,
            power=1.0,
            max_landmarks=max_landmarks,
            n_init=n_init,
            random_state=random_state,
            device=device,
            verbose=verbose,
        )
        self.heads = heads

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
        *before, joint = super()._phases(objective, n_rows)
        if isinstance(self.epochs, str):
            per_epoch = joint.batches.per_epoch
            joint = replace(joint, steps=-(-AUTO_STEPS // per_epoch) * per_epoch)
        return [*before, joint if self.heads == "separate" else replace(joint, on_enter=None)]

    def _step(self, rows: RowReader, phase: Phase, t: int) -> "MembershipStep":
        return MembershipStep(self, self._batch(rows, phase, t), phase.batches[t])

    def _listeners(self) -> list[Callback]:
        return []

    def _finish(self, training: Training, rows: RowReader) -> None:
        self._label(rows)
        self.known_clusters_ = {}

    def memberships(self, X: Any) -> np.ndarray:
        """Pi, n x n: how far each row belongs with each other one."""
        return memberships(self, self._y(X)).cpu().numpy()


class SharedHead(Network):
    """One head for both: y is z."""

    def __init__(self, encoder: nn.Module, f: nn.Module):
        super().__init__(encoder, f, nn.Identity())

    def y(self, H: Rows) -> Rows:
        return self.z(H)


class MembershipStep(Step):
    """X -> H -> Z, Y -> Pi of one batch."""

    def __init__(self, model: CPP, X: Tensor, rows: np.ndarray):
        super().__init__(model.network_, X, lambda Y: expressed(model.settings_, Y), rows)
        self.model = model

    @cached_property
    def Pi(self) -> Square:
        return memberships(self.model, self.Y)


def memberships(model: CPP, Y: Rows) -> Square:
    """Pi = n Sinkhorn(|YY'|/eta), the diagonal kept."""
    return sinkhorn(gram(Y).abs() / model.settings_.eta, model.half_steps)


@dataclass(frozen=True)
class ChosenK:
    """The number of clusters with the shortest code, and the coding length of every candidate."""

    k: int
    lengths: dict[int, float]


def choose_k(model: CPP, X: Any, candidates: Sequence[int]) -> ChosenK:
    """argmin over k of the coding length of Z in the k clusters that a fitted model finds."""
    if not len(candidates):
        raise ParameterError("choose_k: candidates must hold at least one number of clusters, got none.")
    rows = model._new_rows(X)
    Z, Y = (torch.cat([*model._outputs(head, rows.chunks())]) for head in (model.network_.z, model.network_.y))
    lengths = {}
    for k in candidates:
        partition = spectral_partition(model.partition_.kernel, k, model.n_init, model.seed_)
        lengths[k] = float(coding_length(Z.double().cpu(), torch.from_numpy(partition.labels(Y)), model.eps))
    return ChosenK(min(lengths, key=lengths.__getitem__), lengths)
