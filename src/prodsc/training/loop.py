"""The only training loop. Phases are data; everything else happens in callbacks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
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


@dataclass(frozen=True)
class Phase:
    """A number of steps on some terms of the objective.

    Parameters
    ----------
    name : str
        For example "joint".
    steps : int
        Number of steps.
    terms : tuple of str
        Names of the terms that are added up.
    batches : Batches
        Rows of each step.
    optimizer : callable, optional
        Makes a new optimiser for the network. By default the optimiser of the phase before is used further.
    on_enter : callable, optional
        Called with the network before the first step.
    """

    name: str
    steps: int
    terms: tuple[str, ...]
    batches: Batches
    optimizer: Callable[[Any], Optimizer] | None = None
    on_enter: Callable[[Any], None] | None = None


@dataclass
class Training:
    """The state of a training: what callbacks read and a checkpoint saves.

    Parameters
    ----------
    network : torch.nn.Module
        The network that is trained.
    objective : Objective
        The terms of the loss and their weights.
    phases : sequence of Phase
        What is trained, in order.
    history : History
        The numbers of every step.
    extra_state : torch.nn.ModuleDict
        What a checkpoint saves in addition to the network: the states of terms and callbacks (`extra_state`).
    """

    network: nn.Module
    objective: Objective[Any]
    phases: Sequence[Phase]
    history: History
    extra_state: nn.ModuleDict = field(default_factory=nn.ModuleDict)
    phase: int = 0  # index into phases
    step: int = 0  # steps done in it
    optimizer: Optimizer | None = None
    batch: Any = None  # what the terms read of the last batch
    ended_early: str = ""  # why the last phase ended with steps left

    @property
    def current(self) -> Phase:
        return self.phases[self.phase]


class Callback:
    """Called by the loop; override what you need."""

    columns: ClassVar[tuple[str, ...]] = ()  # of the history that it writes with `annotate`
    state: nn.Module | None = None  # what a checkpoint saves of it
    reason: ClassVar[str] = "a callback asked for it"  # why it ends a phase early

    def on_batch(self, training: Training) -> None:
        """Before the loss of a batch is computed: weights of terms may still be changed for it."""

    def on_step(self, training: Training) -> None:
        """After every step, when the state is consistent and may be saved."""

    def ends_phase(self, training: Training) -> bool:
        """Before every step: does the phase end here, with steps left?"""
        return False

    def on_end(self, training: Training) -> None:
        """After the last step."""


def extra_state(objective: Objective[Any], callbacks: Sequence[Callback]) -> nn.ModuleDict:
    """The states of terms and callbacks that have one, by the name of the term or of the callback's class."""
    states = {name: term.state for name, term in objective.terms.items()}
    states |= {type(callback).__name__: callback.state for callback in callbacks}
    return nn.ModuleDict({name: state for name, state in states.items() if state is not None})


def train(
    training: Training,
    make_step: Callable[[Phase, int], Any],
    callbacks: Sequence[Callback] = (),
    restore: Callable[[Training], None] | None = None,
    check_every: int = 10,
) -> None:
    """Run the phases from the position of `training`.

    Parameters
    ----------
    training : Training
        Changed in place.
    make_step : callable
        Makes what the terms read from a phase and the number of a step.
    callbacks : sequence of Callback
        Called in this order.
    restore : callable, optional
        Called with `training` once the optimiser of its phase is made: puts a checkpoint back.
    check_every : int
        Steps between tests of a finite loss. Each waits for the device.

    Raises
    ------
    TrainingError
        If the loss is not finite.
    """
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
            ending = [callback for callback in callbacks if callback.ends_phase(training)]
            if ending:
                training.ended_early = ending[0].reason
                break
            training.batch = None  # frees its memory before the next one is made
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
            if training.step % check_every == 0 or training.step == phase.steps:
                _check_finite(report, phase, t)
            for callback in callbacks:
                callback.on_step(training)
    for callback in callbacks:
        callback.on_end(training)


def _check_finite(report: LossReport, phase: Phase, t: int) -> None:
    if not torch.isfinite(report.total):
        raise TrainingError(
            f"the loss is {report.total.item()} at step {t + 1} of {phase.name}: training diverged. "
            "Lower learning_rate or gamma."
        )
