"""A method that trains a network: its pieces go through the one loop, with progress, guard and checkpoint."""

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prodsc import ranks
from prodsc.core.losses import Objective
from prodsc.estimators import model_file
from prodsc.estimators.base import Clusterer
from prodsc.estimators.capabilities import Capability
from prodsc.sources.fingerprint import fingerprint
from prodsc.sources.rows import RowReader
from prodsc.training import Callback, History, Phase, Training, train
from prodsc.training.checkpoint import CheckpointCallback, load_checkpoint
from prodsc.training.loop import extra_state
from prodsc.training.progress import ProgressCallback


class DeepClusterer(Clusterer):
    """A method is its `_network`, `_objective` (the terms), `_phases`, `_step` (what a batch becomes) and `_finish`.

    `history_` is a dict of columns, one row per training step.
    """

    capabilities = frozenset({Capability.HISTORY})

    network_: Any  # a torch module; methods declare their own
    history_: dict[str, np.ndarray]

    def _network(self, sample: Tensor) -> nn.Module:
        """The network before training, drawn from `seed_`; `sample` is some rows as it will see them."""
        raise NotImplementedError

    def _prepare(self, rows: RowReader) -> None:
        """What must be known of the data before the terms are made (neighbours, a gamma)."""

    def _objective(self) -> Objective[Any]:
        raise NotImplementedError

    def _phases(self, objective: Objective[Any], n_rows: int) -> list[Phase]:
        raise NotImplementedError

    def _step(self, rows: RowReader, phase: Phase, t: int) -> Any:
        """Batch t of a phase, with whatever the terms read."""
        raise NotImplementedError

    def _batch(self, rows: RowReader, phase: Phase, t: int) -> Tensor:
        """This rank's share of batch t, on the device; from files, that of the next batch is read meanwhile."""
        X = rows[self._share(phase, t)].to(self.device_)
        if t + 1 < phase.steps:
            rows.prefetch(self._share(phase, t + 1))
        return X

    @staticmethod
    def _share(phase: Phase, t: int) -> np.ndarray:
        batch = phase.batches[t]
        return batch[ranks.share(len(batch))]

    def _also_about(self) -> dict[str, Any]:
        """What else must not change between stop and resume."""
        return {}

    def _listeners(self) -> list[Callback]:
        """Callbacks that belong to the method itself."""
        return []

    def _finish(self, training: Training, rows: RowReader) -> None:
        """After training: set `labels_`."""
        raise NotImplementedError

    def _fit(self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        saved = None
        if checkpoint is not None and checkpoint.exists():
            saved = load_checkpoint(checkpoint)
            self.seed_ = saved.about["seed"]  # random_state=None drew another one just now
        self.network_ = self._network(rows[slice(0, 100)]).to(self.device_)
        ranks.broadcast(*self.network_.state_dict().values())
        self._prepare(rows)
        objective = self._objective()
        listening = [*self._listeners(), *callbacks]
        history = History([*objective.terms], [name for callback in listening for name in callback.columns])
        states = extra_state(objective, listening).to(self.device_)
        training = Training(self.network_, objective, self._phases(objective, len(rows)), history, states)
        with ExitStack() as stack:
            stack.enter_context(ranks.global_batch_norm(self.network_))
            if self.verbose and ranks.first():
                listening.append(stack.enter_context(ProgressCallback()))
            if checkpoint is not None:
                about = {
                    "estimator": type(self).__name__,
                    "parameters": model_file.plain_parameters(self),
                    "seed": self.seed_,
                    "data": fingerprint(rows.array),
                    **self._also_about(),
                }
                if saved is not None:
                    saved.check_same(about, checkpoint)
                    training.phase, training.step = saved.phase, saved.step
                listening.append(stack.enter_context(CheckpointCallback(checkpoint, about)))
            train(
                training,
                lambda phase, t: self._step(rows, phase, t),
                listening,
                restore=saved.restore if saved is not None else None,
            )
        self.history_ = training.history.columns()
        training.batch = None
        self._finish(training, rows)

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        phases = sorted(set(self.history_["phase"].tolist()))
        tensors = {f"network/{name}": value for name, value in self.network_.state_dict().items()}
        for name, column in self.history_.items():
            values = np.array([phases.index(p) for p in column]) if name == "phase" else column
            tensors[f"history/{name}"] = torch.from_numpy(values)
        return tensors, {"phases": phases, "history": list(self.history_)}  # safetensors does not keep the order

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        history = {name: tensors[f"history/{name}"].numpy() for name in facts["history"]}
        self.history_ = history | {"phase": np.array(facts["phases"])[history["phase"]]}
        self.network_ = self._network(self._sample())
        self.network_.load_state_dict(model_file.under("network", tensors))
        self.network_.to(self.device_).eval()
