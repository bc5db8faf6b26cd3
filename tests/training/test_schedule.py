"""Learning rates as a function of the position."""

import pytest
import torch
from torch import nn

from prodsc.core.losses import Objective, Term
from prodsc.training import Batches, Callback, History, Phase, Training, train
from prodsc.training.schedule import Schedule, cosine, linear_warmup


class Rates(Callback):
    def __init__(self):
        self.seen = []

    def on_step(self, training):
        self.seen.append(training.optimizer.param_groups[0]["lr"])


def rates(schedule):
    network = nn.Linear(2, 1)
    batches = Batches(4, 4, (0,))
    optimizer = lambda net: torch.optim.SGD(net.parameters(), lr=0.5)  # noqa: E731
    phases = [Phase("warm-up", 4, ("t",), batches, optimizer), Phase("joint", 2, ("t",), batches)]
    objective = Objective(Term("t", 1.0, lambda X: network(X).square().mean()))
    seen = Rates()
    train(Training(network, objective, phases, History(["t"])), lambda phase, t: torch.ones(4, 2), [schedule, seen])
    return seen.seen


def test_a_phase_without_a_factor_has_the_full_rate_again():
    assert rates(Schedule(warm_up=linear_warmup)) == pytest.approx([0, 0.125, 0.25, 0.375, 0.5, 0.5])


def test_cosine():
    assert rates(Schedule(joint=cosine))[4:] == pytest.approx([0.5, 0.25])
    assert cosine(1.0) == pytest.approx(0)
