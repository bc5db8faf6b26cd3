"""Weights copied while a fit trains, and the labels they would have given. Real data beside the project."""

import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prodsc import PRODSC
from prodsc.core import metrics, theory
from prodsc.pro_dsc.labeller import Labeller, fit_labeller
from prodsc.training import Callback, Training

SHARED = Path(os.environ.get("PRODSC_SHARED", Path(__file__).parents[1].parent / "shared" / "data"))


def shared(name: str) -> tuple[np.ndarray, np.ndarray]:
    """X and y of a real data set beside the project."""
    path = SHARED / f"{name}.npz"
    if not path.exists():
        sys.exit(f"{path} is not there: this benchmark needs the shared data sets.")
    with np.load(path, allow_pickle=False) as file:
        return file["X"], file["y"]


@dataclass(frozen=True)
class Snapshot:
    """The weights at one joint step, and the last row of the history."""

    weights: dict[str, torch.Tensor]
    history: dict[str, Any]


class Snapshots(Callback):
    """Copies the weights at some steps of the joint phase."""

    def __init__(self, steps: tuple[int, ...] = (), every: int = 0):
        self.steps, self.every = steps, every
        self.by_step: dict[int, Snapshot] = {}

    def on_step(self, training: Training) -> None:
        step = training.step
        if training.current.name == "joint" and (step in self.steps or (self.every and step % self.every == 0)):
            weights = {name: value.clone() for name, value in training.network.state_dict().items()}
            self.by_step[step] = Snapshot(weights, dict(training.history.last()))

    def labelled(self, model: PRODSC, X: np.ndarray) -> Iterator[tuple[int, Snapshot, Labeller, np.ndarray]]:
        """Step, snapshot, labeller and labels of the training rows X, as of a fit that ended there."""
        config = model.config_
        if "power" in config.automatic:
            config = replace(config, power=1.0)  # chosen again for these weights
        rows = model._new_rows(X)
        for step, snapshot in self.by_step.items():
            model.network_.load_state_dict(snapshot.weights)
            labeller, labels = fit_labeller(model.network_, config, rows, seed=model.seed_, device=model.device_)
            yield step, snapshot, labeller, labels.labels

    def scores(self, model: PRODSC, X: np.ndarray, y: np.ndarray) -> dict[int, dict[str, Any]]:
        """Scores, losses and effective rank at each step; labels only score."""
        return {
            step: {
                **metrics.scores(y, labels),
                **snapshot.history,
                "rank": float(theory.effective_rank(labeller.Z(model._new_rows(X)))),
            }
            for step, snapshot, labeller, labels in self.labelled(model, X)
        }
