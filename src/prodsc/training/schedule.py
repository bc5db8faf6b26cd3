"""Learning rates that change during training: functions of the position alone, so a resumed run has the same."""

import math
from collections.abc import Callable

from prodsc.training.loop import Callback, Training


class Schedule(Callback):
    """Multiplies the learning rate of the optimiser by a function of the share of the steps of the phase that are done.

    Parameters
    ----------
    **factors : callable
        The functions, by the name of the phase with _ for -. A phase without one keeps the full rate.
    """

    def __init__(self, **factors: Callable[[float], float]):
        self.factors = factors

    def on_batch(self, training: Training) -> None:
        factor = self.factors.get(training.current.name.replace("-", "_"), constant)
        assert training.optimizer is not None
        for group in training.optimizer.param_groups:
            full = group.setdefault("initial_lr", group["lr"])
            group["lr"] = full * factor(training.step / training.current.steps)


def constant(share: float) -> float:
    """Always 1."""
    return 1.0


def linear_warmup(share: float) -> float:
    """From 0 to 1, linearly."""
    return share


def cosine(share: float) -> float:
    """From 1 to 0 along half a cosine."""
    return (1 + math.cos(math.pi * share)) / 2
