"""A run at one moment, in one safetensors file: weights, optimiser, history and position. Never a pickle."""

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
from prodsc.errors import ModelFileError
from prodsc.training.loop import Callback, Training

FORMAT = "prodsc-checkpoint"
VERSION = 1
SECONDS = float(os.environ.get("PRODSC_CHECKPOINT_SECONDS", "15"))  # between checkpoints: what a kill may cost
SHARE = 1 / 20  # of the time at most for saving: a matrix of all pairs is a gigabyte
LONGEST = 20  # times SECONDS, however long saving takes


@dataclass(frozen=True)
class Checkpoint:
    phase: int
    step: int
    weights: dict[str, float]  # of the terms: the collapse guard may have changed them
    about: dict[str, Any]  # what the run is a run of: it must not change between stop and resume
    network: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    history: dict[str, np.ndarray]

    def check_same(self, about: dict[str, Any], path: Path) -> None:
        """A resumed run must be the same run: parameters and data."""
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
        training.network.load_state_dict(self.network)
        load_optimizer_tensors(training.optimizer, self.optimizer)
        training.history.restore(self.history)
        training.objective.weights.update(self.weights)


def save_checkpoint(path: Path, training: Training, about: dict[str, Any]) -> None:
    history = training.history.columns()
    phase_names = [phase.name for phase in training.phases]
    tensors = {f"network/{name}": tensor for name, tensor in training.network.state_dict().items()}
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
    metadata = {"format": FORMAT, "version": str(VERSION), "position": json.dumps(position), "about": json.dumps(about)}
    files.write_tensors(path, tensors, metadata)


def load_checkpoint(path: Path) -> Checkpoint:
    metadata, tensors = files.read_tensors(path)
    if metadata.get("format") != FORMAT:
        raise ModelFileError(f"{path} is not a prodsc checkpoint. Start again with a new --out.")
    if int(metadata["version"]) > VERSION:
        raise ModelFileError(f"{path} was written by a newer prodsc (format {metadata['version']}). Upgrade prodsc.")
    position = json.loads(metadata["position"])
    groups: dict[str, dict[str, Tensor]] = {"network": {}, "optimizer": {}, "history": {}}
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
        groups["optimizer"],
        history,
    )


def optimizer_tensors(optimizer: torch.optim.Optimizer | None) -> dict[str, Tensor]:
    """The optimiser's buffers by number of parameter; hyper-parameters come from the run, not from here."""
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
    if optimizer is None or not tensors:
        return
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in tensors.items():
        i, name = key.split("/", 1)
        state.setdefault(int(i), {})[name] = value
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


class CheckpointCallback(Callback):
    """Saves every few seconds and at the end. Inside its `with`, SIGINT and SIGTERM wait for the step to end, save,
    and then raise `Interrupted`; a second one acts at once."""

    def __init__(self, path: Path, about: dict[str, Any]):
        self.path, self.about = path, about
        self._last, self._wait = time.monotonic(), SECONDS
        self._stopping = False
        self._handlers: dict[int, Any] = {}

    def __enter__(self) -> "CheckpointCallback":
        if threading.current_thread() is threading.main_thread():  # only there may Python catch signals
            self._handlers = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def _stop(self, number: int, frame: object) -> None:
        self._stopping = True
        signal.signal(number, self._handlers[number])

    def on_step(self, training: Training) -> None:
        stopping = ranks.any_of(self._stopping)  # a signal reaches ranks at different steps; they stop at the same
        if stopping or time.monotonic() - self._last >= self._wait:
            self.save(training)
        if stopping:
            raise Interrupted(f"stopped in {training.current.name} at step {training.step} of {training.current.steps}")

    def on_end(self, training: Training) -> None:
        self.save(training)

    def save(self, training: Training) -> None:
        began = time.monotonic()
        if ranks.first():
            save_checkpoint(self.path, training, self.about)
        self._last = time.monotonic()
        self._wait = min(max(SECONDS, (self._last - began) / SHARE), LONGEST * SECONDS)


class Interrupted(KeyboardInterrupt):
    """The user asked the run to stop; its checkpoint is written."""


def _codes(names: np.ndarray, known: list[str]) -> np.ndarray:
    return np.array([known.index(name) for name in names.tolist()], dtype=np.int64)
