"""What the theory promises, measured. python benchmarks/theory.py [cost] [collapse] [gamma]  (default: all)

cost      step time with the guard and the meters on and off, in one run
collapse  effective rank of SEDSC and PRO-DSC on the paper's synthetic data; gamma at 50 times the bound on digits
gamma     gamma="auto" beside published gammas on data at hand
Labels only score.
"""

import sys
import time
import warnings
from typing import Any

import numpy as np
import torch
from looks import shared
from sklearn.datasets import load_digits

from prodsc import PRODSC, SEDSC, diagnose
from prodsc.core import metrics, theory
from prodsc.random import sorted_subset
from prodsc.sources.synthetic import curve_and_blobs
from prodsc.training import Callback, Training
from prodsc.training.meters import Meters


class Clock(Callback):
    """Processor seconds at the end of every joint step, callbacks included."""

    def __init__(self) -> None:
        self.moments: list[float] = []

    def on_step(self, training: Training) -> None:
        if training.current.name == "joint":
            self.moments.append(time.process_time())  # of this process alone: the machine is shared


def cost() -> None:
    """Rounds are interleaved; the median over rounds of the total is compared. Run it with OMP_NUM_THREADS=1."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2048, 768)).astype(np.float32)
    how: dict[str, Any] = {"hidden_size": 4096, "batch_size": 1024, "epochs": 6, "warmup_steps": 1, "n_init": 1}
    modes: dict[str, tuple[str, list[Callback]]] = {
        "off": ("ignore", []),
        "guard": ("warn", []),
        "guard and meters each epoch": ("warn", [Meters(classes=np.arange(2048) % 10)]),
    }
    seconds: dict[str, list[float]] = {name: [] for name in modes}
    for _ in range(3):
        for name, (on_collapse, callbacks) in modes.items():
            clock = Clock()
            PRODSC.from_flat(10, on_collapse=on_collapse, **how).fit(X, callbacks=[*callbacks, clock])
            seconds[name].append(clock.moments[-1] - clock.moments[0])
    steps = len(clock.moments) - 1
    base = np.median(seconds["off"])
    for name, values in seconds.items():
        print(
            f"cost: {name:<28} {1e3 * np.median(values) / steps:.0f} ms a step, {np.median(values) / base:.3f} of off"
        )
    C = torch.rand(1024, 1024)
    began = time.process_time()
    for _ in range(20):
        theory.lambda_max(C)
    look = (time.process_time() - began) / 20
    print(
        f"cost: lambda_max alone {1e3 * look:.1f} ms, every 10 steps: {look / 10 / (base / steps):.2%} of a step",
        flush=True,
    )


def collapse() -> None:
    how: dict[str, Any] = {
        "encoder": "none", "head_hidden_size": 100, "n_components": 3, "scaling": "none", "batch_size": 200,
        "learning_rate": 5e-3, "epochs": 1000, "warmup_steps": 0, "beta": 1000, "on_collapse": "ignore",
    }  # fmt: skip
    for blobs in (1, 2):
        X, y = curve_and_blobs(blobs)
        for name, make in (
            ("SEDSC, gamma 1", lambda s: SEDSC.from_flat(2, gamma=1.0, random_state=s, **how)),
            ("SEDSC, gamma 100", lambda s: SEDSC.from_flat(2, gamma=100.0, random_state=s, **how)),
            ("PRO-DSC, gamma 0.5", lambda s: PRODSC.from_flat(2, gamma=0.5, random_state=s, **how)),
        ):
            models = [make(seed).fit(X) for seed in range(3)]
            ranks = [float(theory.effective_rank(torch.from_numpy(m.transform(X)))) for m in models]
            accuracy = [metrics.accuracy(y, m.labels_) for m in models]
            print(
                f"collapse: {blobs} blob(s), {name:<18} effective rank {np.mean(ranks):.2f} ± {np.std(ranks):.2f} of 3,"
                f" ACC {np.mean(accuracy):.3f} ± {np.std(accuracy):.3f}",
                flush=True,
            )
    X, y = load_digits(return_X_y=True)
    bound = 128 / (0.1 * 1.1)
    for name, change in (
        ("auto", {}),
        ("50 x bound", {"gamma": 50 * bound}),
        ("50 x, adjust", {"gamma": 50 * bound, "on_collapse": "adjust"}),
    ):
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            models = [PRODSC.from_flat(10, random_state=seed, **change).fit(X) for seed in range(3)]
        verdicts = {diagnose(m, X).verdict for m in models}
        accuracy = [metrics.accuracy(y, m.labels_) for m in models]
        print(
            f"collapse: digits, {name:<13} ACC {np.mean(accuracy):.3f} ± {np.std(accuracy):.3f}, {verdicts}, "
            f"{len(said)} warnings",
            flush=True,
        )


def features(n: int = 6000) -> tuple[np.ndarray, np.ndarray]:
    X, y = shared("cifar10_efflite0")
    rows = sorted_subset(len(X), n)
    return X[rows], y[rows]


def gamma() -> None:
    X, y = features()
    for value in ("auto", 150, 300, 600):
        found = [metrics.accuracy(y, PRODSC(10, gamma=value, random_state=seed).fit(X).labels_) for seed in range(3)]
        print(
            f"gamma: cifar10_efflite0, 6,000 rows, gamma {value}: ACC {np.mean(found):.3f} ± {np.std(found):.3f}",
            flush=True,
        )


if __name__ == "__main__":
    parts = {"cost": cost, "collapse": collapse, "gamma": gamma}
    for word in sys.argv[1:] or parts:
        parts[word]()
