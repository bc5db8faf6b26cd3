"""One training step against the bare network's forward and backward, in the loop that a fit runs.

Everything a step does is counted: reading the batch, the terms, backward, optimiser, guard, history. After each step
the same network runs forward and backward alone on the same batch, so that both see the same moment of the machine.
Processor time, so that other processes do not count; medians over the steps.

A default step sees the rows of its batch and as many ends of walks. The bare network gets as many rows.
"""

import sys
import time
from statistics import median
from typing import Any

import numpy as np
import torch

from prodsc import PRODSC
from prodsc.runs.recipes import load_recipe
from prodsc.training import Callback, Training

ROWS = {  # of the table in the issue: the published configurations of these shapes
    "step, n 1024, d 128, k 10": ("cifar10", 1.25),
    "step, n 1500, d 128, k 100": ("cifar100", 1.25),
    "step, n 2048, d 1024, k 1000": ("imagenet-1k", 1.6),
}
WARM, SKIPPED = 3, 2  # warm-up steps; joint steps that are not counted: the first is always slower


class AgainstBare(Callback):
    """After every step, one pass of the network alone."""

    def __init__(self) -> None:
        self.steps: dict[str, list[float]] = {}
        self.bare: list[float] = []
        self._mark = time.process_time()

    def on_step(self, training: Training) -> None:
        now = time.process_time()
        self.steps.setdefault(training.current.name, []).append(now - self._mark)
        X = training.batch.X
        began = time.process_time()
        self.run_bare(training.network, X).backward()
        self.bare.append(time.process_time() - began)
        training.network.zero_grad()
        training.batch = None
        self._mark = time.process_time()

    def run_bare(self, network: Any, X: torch.Tensor) -> torch.Tensor:
        """The outputs of the network, added up."""
        H = network.encode(X)
        return network.z(H).sum() + network.y(H).sum()


class AgainstBareWalk(AgainstBare):
    """The same for a default fit of features, whose step has two views and known coordinates."""

    def run_bare(self, network: Any, X: torch.Tensor) -> torch.Tensor:
        """The outputs for both views, added up."""
        H, H_near = (network.encode(points, skip=1) for points in (X, X))
        labels = network.outputs(H).sum() + network.outputs(H_near).sum()
        return network.z(H).sum() + network.y(H_near).sum() + labels


def subspaces(n: int, D: int, k: int, dim: int = 6, noise: float = 0.3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """n unit rows near a union of k random subspaces, and which one each is near."""
    rng = np.random.default_rng(seed)
    bases = rng.standard_normal((k, dim, D), dtype=np.float32) / D**0.5
    y = rng.integers(k, size=n)
    X = np.empty((n, D), dtype=np.float32)
    for c in range(k):
        mine = np.flatnonzero(y == c)
        X[mine] = rng.standard_normal((len(mine), dim), dtype=np.float32) @ bases[c]
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    X += noise * rng.standard_normal((n, D), dtype=np.float32) / D**0.5
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def ratios(recipe: str, steps: int, **change: object) -> dict[str, float]:
    """Medians: seconds of the bare network, and of a warm-up and a joint step over it."""
    parameters = (
        load_recipe(recipe).parameters | {"warmup_steps": WARM, "epochs": steps + SKIPPED, "n_init": 1} | change
    )
    n, k = parameters["batch_size"], parameters["n_clusters"]
    X, _ = subspaces(n + n // 8, 768, k)  # one batch an epoch, another one each time
    against = AgainstBare()
    PRODSC.from_flat(**parameters, random_state=0, on_collapse="warn").fit(X, callbacks=[against])
    return _medians(against)


def default_ratios(k: int) -> dict[str, float]:
    """The same of a fit with nothing set but k."""
    against = AgainstBareWalk()
    PRODSC(k, random_state=0, device="cpu").fit(subspaces(4096, 768, k)[0], callbacks=[against])
    return _medians(against)


def _medians(against: AgainstBare) -> dict[str, float]:
    bare = median(against.bare[1:])
    joint = against.steps["joint"]
    return {
        "bare": bare,
        "warm-up": median(against.steps["warm-up"][1:]) / bare,
        "joint": median(joint[SKIPPED:]) / bare,
        "mean": float(np.mean(joint[SKIPPED:])) / bare,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name, (recipe, aim) in ROWS.items():
        if not sys.argv[1:] or recipe in sys.argv[1:]:
            print(name, aim, ratios(recipe, 8), flush=True)
    for k in (10, 100):
        print("default step, k", k, default_ratios(k), flush=True)
