"""Learning rates that change while training: a function of the position alone, so a resumed run has the same."""

import math
from collections.abc import Callable

from prodsc.training.loop import Callback, Training


class Schedule(Callback):
    """The learning rate of a phase is its optimiser's own, times a factor of the share of its steps already done."""

    def __init__(self, **factors: Callable[[float], float]):
        self.factors = factors  # by the name of the phase, with _ for -; a phase without one keeps the full rate

    def on_batch(self, training: Training) -> None:
        factor = self.factors.get(training.current.name.replace("-", "_"), constant)
        assert training.optimizer is not None
        for group in training.optimizer.param_groups:
            full = group.setdefault("initial_lr", group["lr"])
            group["lr"] = full * factor(training.step / training.current.steps)


def constant(share: float) -> float:
    return 1.0


def rising(share: float) -> float:
    """From 0 to 1 in a straight line."""
    return share


def cosine(share: float) -> float:
    """From 1 to 0 along half a cosine."""
    return (1 + math.cos(math.pi * share)) / 2
