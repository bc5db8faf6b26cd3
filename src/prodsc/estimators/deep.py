"""Base of the methods that train a network: their pieces go through the one training loop."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor, nn

from prodsc import ranks
from prodsc.core.losses import Objective
from prodsc.estimators import model_file
from prodsc.estimators.base import Clusterer
from prodsc.estimators.capabilities import Capability
from prodsc.sources.fingerprint import fingerprint
from prodsc.sources.rows import RowReader
from prodsc.training import Callback, Phase, Training
from prodsc.training.session import open_checkpoint, read_batch, run_training


class DeepClusterer(Clusterer):
    """A method is its `_network`, `_objective`, `_phases`, `_step` (what a batch becomes) and `_finish`.

    `history_` is a dict of columns with one row per training step.
    """

    capabilities = frozenset({Capability.HISTORY})

    network_: Any  # a torch module; methods declare their own
    history_: dict[str, np.ndarray]
    n_rows_: int  # of the fit, by which "auto" values are resolved

    def _network(self, sample: Tensor) -> nn.Module:
        """The network before training, drawn from `seed_`; `sample` is some rows as it will see them."""
        raise NotImplementedError

    def _prepare(self, rows: RowReader) -> None:
        """What must be known of the data before the terms are made, such as neighbours."""

    def _objective(self) -> Objective[Any]:
        raise NotImplementedError

    def _phases(self, objective: Objective[Any], n_rows: int) -> list[Phase]:
        raise NotImplementedError

    def _step(self, rows: RowReader, phase: Phase, t: int) -> Any:
        """Batch t of a phase, with whatever the terms read."""
        raise NotImplementedError

    def _batch(self, rows: RowReader, phase: Phase, t: int) -> Tensor:
        """Rows of batch t on the device; on several ranks, this rank's share."""
        return read_batch(rows, phase, t).to(self.device_)

    def _listeners(self) -> list[Callback]:
        """Callbacks that belong to the method itself."""
        return []

    def _finish(self, training: Training, rows: RowReader) -> None:
        """After training: set `labels_`."""
        raise NotImplementedError

    def _fit(self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        saved = open_checkpoint(checkpoint)
        if saved is not None:
            self.seed_ = saved.about["seed"]  # random_state=None drew another one just now
        self.n_rows_ = len(rows)
        self.network_ = self._network(rows[slice(0, 100)]).to(self.device_)
        ranks.broadcast(*self.network_.state_dict().values())
        self._prepare(rows)
        objective = self._objective()
        training = run_training(
            self.network_,
            objective,
            self._phases(objective, len(rows)),
            lambda phase, t: self._step(rows, phase, t),
            [*self._listeners(), *callbacks],
            identity={} if checkpoint is None else fit_identity(self, self.seed_, rows),
            checkpoint=checkpoint,
            saved=saved,
            show_progress=bool(self.verbose),
        )
        self.history_ = training.history.columns()
        self._finish(training, rows)

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        return model_file.training_state(self.network_, self.history_)

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self.history_ = model_file.restore_history(tensors, facts)
        self.n_rows_ = len(self.labels_)
        self.network_ = self._network(self._sample())
        self.network_.load_state_dict(model_file.under("network", tensors))
        self.network_.to(self.device_).eval()


def fit_identity(model: Clusterer, seed: int, rows: RowReader) -> dict[str, Any]:
    """What must not change between the stop of a fit and its resumption."""
    return {
        "estimator": type(model).__name__,
        "parameters": model_file.plain_parameters(model),
        "seed": seed,
        "data": fingerprint(rows.array),
    }
