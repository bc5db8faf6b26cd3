"""The numbers of every training step, as columns."""

import math
from collections.abc import Sequence

import numpy as np
import torch

from prodsc.core.losses import LossReport


class History:
    """Columns `phase`, `epoch`, `step`, `total`, one per term and one per meter (NaN where not active).

    Parameters
    ----------
    terms : sequence of str
        Names of the terms of the objective.
    meters : sequence of str
        Names of the columns that callbacks write.
    """

    def __init__(self, terms: Sequence[str], meters: Sequence[str] = ()):
        self.terms, self.meters = [*terms, *meters], tuple(meters)
        self._where: list[tuple[str, int, int]] = []
        self._values: list[torch.Tensor] = []

    def __len__(self) -> int:
        return len(self._where)

    def record(self, phase: str, epoch: int, step: int, report: LossReport) -> None:
        """Add a row."""
        absent = report.total.new_tensor(math.nan)
        values = [report.total.detach(), *(report.parts.get(name, absent) for name in self.terms)]
        self._where.append((phase, epoch, step))
        self._values.append(torch.stack(values))  # stays on the device: reading it would wait for every step

    def annotate(self, **meters: float) -> None:
        """Write meters into the newest row."""
        for name, value in meters.items():
            self._values[-1][1 + self.terms.index(name)] = value

    def last(self) -> dict[str, float]:
        """Total and active terms of the newest step, without the meters."""
        values = dict(zip(["total", *self.terms], self._values[-1].tolist(), strict=True))
        return {name: value for name, value in values.items() if not math.isnan(value) and name not in self.meters}

    def values(self) -> np.ndarray:
        """n x (1 + terms): total and the terms."""
        if not self._values:
            return np.zeros((0, 1 + len(self.terms)))
        return torch.stack(self._values).double().cpu().numpy()

    def columns(self) -> dict[str, np.ndarray]:
        """All columns by name, one entry per step."""
        where = np.array([(epoch, step) for _, epoch, step in self._where], dtype=np.int64).reshape(-1, 2)
        named = {"phase": np.array([phase for phase, _, _ in self._where]), "epoch": where[:, 0], "step": where[:, 1]}
        return named | dict(zip(["total", *self.terms], self.values().T, strict=True))

    def restore(self, columns: dict[str, np.ndarray]) -> None:
        """Continue after the rows of an earlier run."""
        phases, epochs, steps = columns["phase"].tolist(), columns["epoch"].tolist(), columns["step"].tolist()
        self._where = list(zip(phases, epochs, steps, strict=True))
        values = np.stack([columns[name] for name in ["total", *self.terms]], axis=1)
        self._values = list(torch.from_numpy(values).float())
