"""Looking at a fit while it trains: scores, losses and rank at given steps of the joint phase. Labels only score."""

import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prodsc import PRODSC
from prodsc.core import metrics, theory
from prodsc.training import Callback, Training

SHARED = Path(os.environ.get("PRODSC_SHARED", Path(__file__).parents[1].parent / "shared" / "data"))


def shared(name: str) -> tuple[np.ndarray, np.ndarray]:
    """X and y of a real data set beside the project."""
    path = SHARED / f"{name}.npz"
    if not path.exists():
        sys.exit(f"{path} is not there: this benchmark needs the shared data sets.")
    with np.load(path, allow_pickle=False) as file:
        return file["X"], file["y"]


class Looks(Callback):
    """A callback that labels all rows at some steps, as a fit that ended there would."""

    def __init__(self, model: PRODSC, X: np.ndarray, y: np.ndarray, at: tuple[int, ...]):
        self.model, self.X, self.y, self.at = model, X, y, at
        self.found: dict[int, dict[str, Any]] = {}

    def on_step(self, training: Training) -> None:
        if training.current.name != "joint" or training.step not in self.at:
            return
        rows = self.model._rows(self.X)
        self.model._label(rows)
        Z = torch.cat([*self.model._outputs(self.model.network_.z, rows.chunks())])
        rank = float(theory.effective_rank(Z))
        self.found[training.step] = {
            **metrics.scores(self.y, self.model.labels_),
            **training.history.last(),
            "rank": rank,
        }
        self.model.network_.train()  # labelling switched it to evaluation
