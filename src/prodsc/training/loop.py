"""The only training loop: phases are data, everything else listens through callbacks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch import nn
from torch.optim import Optimizer

from prodsc import ranks
from prodsc.core.losses import LossReport, Objective
from prodsc.errors import TrainingError
from prodsc.nn import gradient_scaler
from prodsc.training.batches import Batches
from prodsc.training.history import History

CHECK_EVERY = 10  # steps between looks at whether the loss is finite: a look waits for the device


@dataclass(frozen=True)
class Phase:
    """So many steps on these terms. `optimizer` starts a new one; without it the previous phase's goes on."""

    name: str
    steps: int
    terms: tuple[str, ...]
    batches: Batches
    optimizer: Callable[[Any], Optimizer] | None = None
    on_enter: Callable[[Any], None] | None = None


@dataclass
class Training:
    """All that a run is at one moment: what callbacks see and a checkpoint holds."""

    network: nn.Module
    objective: Objective[Any]
    phases: Sequence[Phase]
    history: History
    phase: int = 0  # index into phases
    step: int = 0  # steps done in it
    optimizer: Optimizer | None = None
    batch: Any = None  # what the last batch became, for callbacks to look at

    @property
    def current(self) -> Phase:
        return self.phases[self.phase]


class Callback:
    """What may listen to the loop; override what you need."""

    columns: ClassVar[tuple[str, ...]] = ()  # of the history that it writes with `annotate`

    def on_batch(self, training: Training) -> None:
        """Before the loss of a batch is computed: weights of terms may still be changed for it."""

    def on_step(self, training: Training) -> None:
        """After every step, when the state is consistent and may be saved."""

    def enough(self, training: Training) -> bool:
        """Before every step: is the phase over, whatever steps are left?"""
        return False

    def on_end(self, training: Training) -> None:
        """After the last step."""


def train(
    training: Training,
    make_step: Callable[[Phase, int], Any],
    callbacks: Sequence[Callback] = (),
    restore: Callable[[Training], None] | None = None,
) -> None:
    """Run the phases from where `training` stands. `restore` puts back weights and optimiser of a checkpoint."""
    scaler = gradient_scaler(training.network)
    first_phase, first_step = training.phase, training.step
    for index, phase in enumerate(training.phases):
        if phase.optimizer is not None:
            training.optimizer = phase.optimizer(training.network)
        if index < first_phase:
            continue
        if index == first_phase and restore is not None:
            restore(training)
        training.phase, training.step = index, first_step if index == first_phase else 0
        if training.step == 0 and phase.on_enter is not None:
            phase.on_enter(training.network)
        training.network.train()
        optimizer = training.optimizer
        assert optimizer is not None
        for t in range(training.step, phase.steps):
            if any(callback.enough(training) for callback in callbacks):
                break
            training.batch = None  # frees the last one before the next is made
            training.batch = make_step(phase, t)
            for callback in callbacks:
                callback.on_batch(training)
            report = training.objective(training.batch, only=phase.terms)
            scaler.scale(report.total).backward()
            ranks.sum_gradients(training.network)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad()
            training.history.record(phase.name, t // phase.batches.per_epoch + 1, t + 1, report)
            training.step = t + 1
            if training.step % CHECK_EVERY == 0 or training.step == phase.steps:
                check_finite(report, phase, t)
            for callback in callbacks:
                callback.on_step(training)
    for callback in callbacks:
        callback.on_end(training)


def check_finite(report: LossReport, phase: Phase, t: int) -> None:
    if not torch.isfinite(report.total):
        raise TrainingError(
            f"the loss is {report.total.item()} at step {t + 1} of {phase.name}: training diverged. "
            "Lower learning_rate or gamma."
        )
