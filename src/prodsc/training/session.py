"""A training run with its checkpoint, progress and history: the loop, and all that surrounds it."""

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from prodsc import ranks
from prodsc.core.losses import Objective
from prodsc.errors import TrainingError
from prodsc.training.checkpoint import Checkpoint, CheckpointCallback, load_checkpoint
from prodsc.training.history import History
from prodsc.training.loop import Callback, Phase, Training, extra_state, train


def open_checkpoint(path: Path | None) -> Checkpoint | None:
    """The checkpoint of an interrupted run; None when there is none."""
    return load_checkpoint(path) if path is not None and path.exists() else None


def run_training(
    network: nn.Module,
    objective: Objective[Any],
    phases: Sequence[Phase],
    make_step: Callable[[Phase, int], Any],
    callbacks: Sequence[Callback],
    *,
    identity: dict[str, Any],
    checkpoint: Path | None = None,
    saved: Checkpoint | None = None,
    show_progress: bool = False,
) -> Training:
    """Train a network through all phases.

    Parameters
    ----------
    network : nn.Module
        Trained in place.
    objective : Objective
        The terms of the loss.
    phases : sequence of Phase
        What to do one after the other.
    make_step : function of a phase and a step number
        Gives what the terms read of a batch.
    callbacks : sequence of Callback
        Called in this order.
    identity : dict
        What the run is a run of (method, parameters, seed, data). A checkpoint of another identity is refused.
    checkpoint : Path or None
        Where the state is saved every few seconds and when the run is interrupted.
    saved : Checkpoint or None
        The state to continue from.
    show_progress : bool
        Whether to show a progress line.

    Returns
    -------
    Training
        The state after the last step.

    Raises
    ------
    TrainingError
        If training diverges.
    """
    callbacks = [*callbacks]
    history = History([*objective.terms], [name for callback in callbacks for name in callback.columns])
    states = extra_state(objective, callbacks).to(next(network.parameters()).device)
    training = Training(network, objective, phases, history, states)
    with ExitStack() as stack:
        stack.enter_context(ranks.global_batch_norm(network))
        if show_progress and ranks.first():
            from prodsc.training.progress import ProgressCallback  # needs rich, which a quiet fit does not

            callbacks.append(stack.enter_context(ProgressCallback()))
        if checkpoint is not None:
            if saved is not None:
                saved.check_same(identity, checkpoint)
                training.phase, training.step = saved.phase, saved.step
            callbacks.append(stack.enter_context(CheckpointCallback(checkpoint, identity)))
        try:
            train(training, make_step, callbacks, restore=None if saved is None else saved.restore)
        except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]  # of weights that are not finite
            raise TrainingError(
                f"the loss cannot be computed at step {training.step + 1} of {training.current.name}: training "
                "diverged. Lower learning_rate or gamma."
            ) from error
    training.batch = None
    return training


def read_batch(rows: Any, phase: Phase, t: int) -> Any:
    """This rank's share of the rows of batch t; from files, the next batch is read in the meantime."""
    X = rows[batch_share(phase, t)]
    if t + 1 < phase.steps:
        rows.prefetch(batch_share(phase, t + 1))
    return X


def batch_share(phase: Phase, t: int) -> np.ndarray:
    """Row numbers of this rank's share of batch t."""
    batch = phase.batches[t]
    return batch[ranks.share(len(batch))]
