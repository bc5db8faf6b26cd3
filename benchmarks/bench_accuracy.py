"""Time to accuracy: processor seconds until a fit labels as well as the published schedule does at its end.

The published schedule against a fit with nothing set but k, on the same code and data. Weights are copied at some steps
and label all rows after the fit; the cost of that is not counted. Labels only measure: neither schedule was chosen
here. A published schedule takes many minutes, so unless it is asked for in full a few of its steps are timed and
multiplied: they all cost the same.

python benchmarks/bench_accuracy.py orl|cifar10_efflite0 [full]
"""

import sys
import time
from dataclasses import dataclass
from statistics import median
from typing import Any

import numpy as np
import torch
from snapshots import Snapshots, shared

from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.runs.recipes import load_recipe
from prodsc.training import Callback, Training

TIMED = 6  # steps of each phase when the published schedule is not run in full; the first of them is not counted


@dataclass(frozen=True)
class Race:
    published: dict[str, Any]
    ends_with: float  # ACC of the published schedule, where it was run in full
    ours: dict[str, Any]
    steps: tuple[int, ...]  # joint steps of ours that are scored


def race(name: str) -> Race:
    if name == "orl":
        return Race(load_recipe("orl").parameters, 0.84, {"n_clusters": 40}, (50, 100, 200, 300))
    published = load_recipe("cifar10").parameters | {"scaling": "unit", "epochs": 40}
    return Race(published, 0.77, {"n_clusters": 10}, (40, 60, 80, 120, 160, 200))


class Clock(Callback):
    """Processor seconds of every step by phase, and at some joint steps the seconds so far and the weights."""

    def __init__(self, scored_steps: tuple[int, ...] = ()):
        self.snapshots = Snapshots(scored_steps)
        self.steps: dict[str, list[float]] = {}
        self.seconds_at: dict[int, float] = {}
        self.scored: list[tuple[int, float, float]] = []  # step, seconds so far, ACC
        self.seconds = 0.0
        self._mark = time.process_time()

    def on_step(self, training: Training) -> None:
        spent = time.process_time() - self._mark
        self.steps.setdefault(training.current.name, []).append(spent)
        self.seconds += spent
        if training.current.name == "joint":
            self.seconds_at[training.step] = self.seconds
        self.snapshots.on_step(training)
        self._mark = time.process_time()

    def score(self, model: PRODSC, X: np.ndarray, y: np.ndarray) -> None:
        """ACC of the copied weights."""
        for step, _, _, labels in self.snapshots.labelled(model, X):
            self.scored.append((step, self.seconds_at[step], metrics.scores(y, labels)["ACC"]))
            print(f"  step {step}: {self.seconds_at[step]:.0f} s, ACC {self.scored[-1][2]:.3f}", file=sys.stderr)


def fitted(X: np.ndarray, y: np.ndarray, parameters: dict[str, Any], scored_steps: tuple[int, ...] = ()) -> Clock:
    model = PRODSC.from_flat(**parameters, random_state=0)
    clock = Clock(scored_steps)
    model.fit(X, callbacks=[clock])
    clock.score(model, X, y)
    return clock


def published_run(X: np.ndarray, y: np.ndarray, given: Race, full: bool) -> tuple[float, float]:
    """Seconds of the published schedule and the ACC it ends with."""
    parameters = given.published
    per_epoch = max(1, len(X) // parameters["batch_size"])
    joint = parameters["epochs"] * per_epoch
    if full:
        clock = fitted(X, y, parameters, (joint,))
        return clock.seconds, clock.scored[-1][2]
    short = {"warmup_steps": TIMED, "epochs": -(-TIMED // per_epoch), "pretrain_epochs": 2, "n_init": 1}
    some = X[: TIMED * parameters["batch_size"]]  # as many rows as the timed steps see
    steps = fitted(some, y, parameters | short).steps
    counts = {"warm-up": parameters["warmup_steps"], "joint": joint}
    if "pre-train" in steps:
        counts["pre-train"] = parameters["pretrain_epochs"] * max(1, len(X) // parameters["pretrain_batch_size"])
    return sum(median(steps[phase][1:]) * count for phase, count in counts.items()), given.ends_with


def speedup(name: str, full: bool = False) -> dict[str, float]:
    """Seconds of the published schedule, of ours until it has that ACC (not a number: never), and their ratio."""
    X, y = shared(name)
    given = race(name)
    slow, target = published_run(X, y, given, full)
    clock = fitted(X, y, given.ours, given.steps)
    there = [seconds for _, seconds, acc in clock.scored if acc >= target]
    fast = there[0] if there else float("nan")
    best = max(acc for _, _, acc in clock.scored)
    return {
        "published": slow,
        "target": target,
        "ours": fast,
        "best": best,
        "whole": clock.seconds,
        "ratio": slow / fast,
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    print(speedup(sys.argv[1], full="full" in sys.argv[2:]))
