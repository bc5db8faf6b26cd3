"""A training in one safetensors file: weights, optimiser, states, history and position. Never a pickle."""

import json
import os
import signal
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prodsc import files, ranks
from prodsc.errors import Interrupted, ModelFileError, reason_of
from prodsc.training.loop import Callback, Training

CHECKPOINT_FORMAT = "prodsc-checkpoint"
CHECKPOINT_VERSION = 3
SECONDS = float(os.environ.get("PRODSC_CHECKPOINT_SECONDS", "15"))  # between checkpoints: what a kill may cost


@dataclass(frozen=True)
class Checkpoint:
    """What `load_checkpoint` reads."""

    phase: int
    step: int
    weights: dict[str, float]  # of the terms: the collapse guard may have changed them
    about: dict[str, Any]  # estimator, parameters, seed and data, which must not change between stop and resume
    network: dict[str, Tensor]
    extra: dict[str, Tensor]  # of Training.extra_state
    optimizer: dict[str, Tensor]
    history: dict[str, np.ndarray]

    def check_same(self, about: dict[str, Any], path: Path) -> None:
        """Raise a ModelFileError if parameters or data are not those of the checkpoint."""
        if self.about["data"] != about["data"]:
            raise ModelFileError(f"{path} belongs to other data (another fingerprint). Give the file it was made from.")
        if self.about.get("links") != about.get("links"):
            raise ModelFileError(f"{path} was made with other known labels or links. Give the same, or start anew.")
        made_by, now = self.about.get("estimator"), about.get("estimator")
        if made_by not in (None, now):
            raise ModelFileError(f"{path} was made by {made_by}, not {now}. Start anew.")
        changed = [name for name, value in about["parameters"].items() if self.about["parameters"].get(name) != value]
        if changed:
            raise ModelFileError(
                f"{path} was made with another {changed[0]}={self.about['parameters'].get(changed[0])!r}, now "
                f"{about['parameters'][changed[0]]!r}. Use the same parameters, or start anew."
            )

    def restore(self, training: Training) -> None:
        """Put weights, optimiser, states and history back."""
        try:
            _codes(self.history["phase"], [phase.name for phase in training.phases])  # raises for unknown ones
            training.network.load_state_dict(self.network)
            training.extra_state.load_state_dict(self.extra)
            load_optimizer_tensors(training.optimizer, self.optimizer)
            training.history.restore(self.history)
            training.objective.weights.update(self.weights)
        except (RuntimeError, ValueError, KeyError, TypeError) as error:
            raise ModelFileError(
                f"the checkpoint does not fit this network ({reason_of(error)}). Start again with a new --out."
            ) from error


def save_checkpoint(path: Path, training: Training, about: dict[str, Any]) -> None:
    """Write a training to a file.

    Parameters
    ----------
    path : Path
        The file, which is replaced at once.
    training : Training
        The training as it is after a step.
    about : dict
        Estimator, parameters, seed and data, as JSON can hold them.
    """
    history = training.history.columns()
    phase_names = [phase.name for phase in training.phases]
    tensors = {f"network/{name}": tensor for name, tensor in training.network.state_dict().items()}
    tensors |= {f"extra/{name}": tensor for name, tensor in training.extra_state.state_dict().items()}
    tensors |= {f"optimizer/{name}": tensor for name, tensor in optimizer_tensors(training.optimizer).items()}
    tensors |= {
        f"history/{name}": torch.from_numpy(column if name != "phase" else _codes(column, phase_names))
        for name, column in history.items()
    }
    position = {
        "phase": training.phase,
        "step": training.step,
        "phases": phase_names,
        "weights": training.objective.weights,
    }
    metadata = {
        "format": CHECKPOINT_FORMAT,
        "version": str(CHECKPOINT_VERSION),
        "position": json.dumps(position),
        "about": json.dumps(about),
    }
    files.write_tensors(path, tensors, metadata)


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint; raises a ModelFileError if the file is not one."""
    metadata, tensors = files.read_tensors(path)
    if metadata.get("format") != CHECKPOINT_FORMAT:
        raise ModelFileError(f"{path} is not a prodsc checkpoint. Start again with a new --out.")
    try:
        return _checkpoint(path, metadata, tensors)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ModelFileError(
            f"{path} is damaged ({type(error).__name__}: {reason_of(error)}). Start again with a new --out."
        ) from error


def _checkpoint(path: Path, metadata: dict[str, str], tensors: dict[str, Tensor]) -> Checkpoint:
    version = int(metadata["version"])
    if version > CHECKPOINT_VERSION:
        raise ModelFileError(f"{path} was written by a newer prodsc (format {version}). Upgrade prodsc.")
    if version < CHECKPOINT_VERSION:
        raise ModelFileError(
            f"{path} was written by an older prodsc and cannot be resumed. Start again with a new --out."
        )
    if files.SEAL not in metadata:
        raise ModelFileError(f"{path} is damaged: its digest is missing. Start again with a new --out.")
    position = json.loads(metadata["position"])
    groups: dict[str, dict[str, Tensor]] = {"network": {}, "extra": {}, "optimizer": {}, "history": {}}
    for name, tensor in tensors.items():
        group, _, rest = name.partition("/")
        groups[group][rest] = tensor
    history = {name: tensor.numpy() for name, tensor in groups["history"].items()}
    history["phase"] = np.array(position["phases"])[history["phase"]]
    return Checkpoint(
        position["phase"],
        position["step"],
        position["weights"],
        json.loads(metadata["about"]),
        groups["network"],
        groups["extra"],
        groups["optimizer"],
        history,
    )


def optimizer_tensors(optimizer: torch.optim.Optimizer | None) -> dict[str, Tensor]:
    """The buffers of an optimiser by the number of the parameter; its hyper-parameters come from the estimator."""
    if optimizer is None:
        return {}
    state = optimizer.state_dict()["state"]
    return {
        f"{i}/{name}": value.clone()
        for i, buffers in state.items()
        for name, value in buffers.items()
        if isinstance(value, Tensor)
    }


def load_optimizer_tensors(optimizer: torch.optim.Optimizer | None, tensors: dict[str, Tensor]) -> None:
    """Put the buffers of `optimizer_tensors` back."""
    if optimizer is None or not tensors:
        return
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        i, name = key.split("/", 1)
        state.setdefault(int(i), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


class CheckpointCallback(Callback):
    """Saves every few seconds and at the end.

    Use it as a context manager: within it, SIGINT and SIGTERM wait for the step to end, save, and then raise
    `Interrupted`. A second signal acts at once.

    Parameters
    ----------
    path : Path
        The file.
    about : dict
        See `save_checkpoint`.
    max_share : float
        Largest share of the time that is spent on saving: a matrix of all pairs is a gigabyte.
    max_wait : float
        Longest time between two checkpoints however long saving takes, as a multiple of the usual one.
    """

    def __init__(self, path: Path, about: dict[str, Any], max_share: float = 0.05, max_wait: float = 20.0):
        self.path, self.about, self.max_share, self.max_wait = path, about, max_share, max_wait
        self._last, self._wait = time.monotonic(), SECONDS
        self._stopping = False
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> "CheckpointCallback":
        if threading.current_thread() is threading.main_thread():  # Python catches signals only there
            self._handlers = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _stop(self, number: int, frame: object) -> None:
        self._stopping = True
        signal.signal(number, self._handlers[number])

    def on_step(self, training: Training) -> None:
        stopping = ranks.any_of(self._stopping)  # a signal reaches ranks at different steps
        if stopping or time.monotonic() - self._last >= self._wait:
            self.save(training)
        if stopping:
            raise Interrupted(f"stopped in {training.current.name} at step {training.step} of {training.current.steps}")

    def on_end(self, training: Training) -> None:
        self.save(training)

    def save(self, training: Training) -> None:
        """Save now, on the first rank, and decide when to save next."""
        began = time.monotonic()
        if ranks.first():
            save_checkpoint(self.path, training, self.about)
        self._last = time.monotonic()
        self._wait = min(max(SECONDS, (self._last - began) / self.max_share), self.max_wait * SECONDS)


def _codes(names: np.ndarray, known: list[str]) -> np.ndarray:
    return np.array([known.index(name) for name in names.tolist()], dtype=np.int64)
