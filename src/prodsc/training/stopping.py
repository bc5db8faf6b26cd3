"""Which state of a training stays: a fit that trains too long loses what it had while every loss improves."""

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor, nn

from prodsc import ranks
from prodsc.core import metrics
from prodsc.training.loop import Callback, Training

EVERY = 20  # steps between looks
WATCHED = 1536  # rows that a look labels
SETTLED, CALM = 0.99, 3  # labels with so much in common with those of the look before, so many looks in a row
LOOKS = 3  # that a state is judged by, its own and those before: one alone is noise, and many looks have a lucky one
SPLIT = 0.75  # of n/k rows: when a row is expressed by fewer, clusters are being split


class Kept(nn.Module):
    """The weights with the highest score so far. They are buffers of the network itself, so a checkpoint has them."""

    weights: Tensor
    score: Tensor
    step: Tensor
    perplexity: Tensor  # at the first look
    over: Tensor

    def __init__(self, network: nn.Module):
        super().__init__()
        self.register_buffer("weights", torch.cat([part.detach().flatten() for part in trained(network)]))
        self.register_buffer("score", torch.tensor(-torch.inf))
        self.register_buffer("step", torch.tensor(0))
        self.register_buffer("perplexity", torch.tensor(torch.nan))
        self.register_buffer("over", torch.tensor(False))

    def take(self, network: nn.Module, score: float, step: int) -> None:
        self.weights.copy_(torch.cat([part.detach().flatten() for part in trained(network)]))
        self.score.fill_(score)
        self.step.fill_(step)

    @torch.no_grad()
    def put_back(self, network: nn.Module) -> None:
        parts = trained(network)
        for part, weights in zip(parts, self.weights.split([part.numel() for part in parts]), strict=True):
            part.copy_(weights.view_as(part))


def trained(network: nn.Module) -> list[Tensor]:
    """Weights, and the statistics of batch normalisation, but not what a fit remembers of its rows."""
    state = network.state_dict(keep_vars=True).items()
    return [part for name, part in state if part.is_floating_point() and name.split(".")[0] not in ("kept", "memory")]


def split(perplexity: float, first: float) -> bool:
    """Are clusters being split, by the perplexity of this look and of the first one?"""
    return perplexity < SPLIT <= first


def smooth(agreement: np.ndarray) -> np.ndarray:
    """What states are compared by, from the agreement at each look so far: the mean of the last few."""
    return np.array([agreement[max(0, i + 1 - LOOKS) : i + 1].mean() for i in range(len(agreement))])


def due(training: Training) -> bool:
    """Is it time for a look?"""
    step, last = training.step, training.current.steps
    return training.current.name == "joint" and (step % EVERY == 0 or step == last)


class KeepBest(Callback):
    """Looks at the state every few joint steps, without labels, and leaves the best one in the network at the end.

    The network has a `kept` (a `Kept`). `look` gives two numbers of the network as it is: the agreement of neighbours
    on their labels, by whose mean over a few looks states are compared, and the perplexity of the coefficients, in
    clusters of average size. Perplexity falls while clusters form. Once a row is expressed by fewer rows than a cluster
    has, training only splits clusters, and is over; unless it began there.
    """

    columns = ("agreement", "perplexity")

    def __init__(self, look: Callable[[], tuple[float, float]]):
        self.look = look

    def enough(self, training: Training) -> bool:
        return training.current.name == "joint" and bool(self._kept(training).over)

    def on_step(self, training: Training) -> None:
        if not due(training):
            return
        step = training.step
        seen = torch.tensor(self.look())
        ranks.broadcast(seen)  # one rank's rounding must not keep another state than the others'
        training.network.train()
        agreement, perplexity = seen.tolist()
        training.history.annotate(agreement=agreement, perplexity=perplexity)
        kept = self._kept(training)
        if kept.perplexity.isnan():
            kept.perplexity.fill_(perplexity)
        kept.over.fill_(split(perplexity, float(kept.perplexity)))
        looks = training.history.columns()["agreement"]
        score = float(smooth(looks[np.isfinite(looks)])[-1])
        if score > kept.score and not kept.over:
            kept.take(training.network, score, step)

    def on_end(self, training: Training) -> None:
        if self._kept(training).step:
            self._kept(training).put_back(training.network)

    @staticmethod
    def _kept(training: Training) -> Kept:
        kept = training.network.kept
        assert isinstance(kept, Kept)
        return kept


class Settling(nn.Module):
    """The labels of the last look, and for how many looks they have hardly changed. A checkpoint has both."""

    labels: Tensor
    calm: Tensor

    def __init__(self, n_watched: int):
        super().__init__()
        self.register_buffer("labels", torch.full((n_watched,), -1))
        self.register_buffer("calm", torch.tensor(0))


class EndSettled(Callback):
    """Ends the joint phase once the labels of the watched rows have settled: what follows does not improve them.

    The network has a `kept` (a `Settling`). `look` gives the labels of the network as it is.
    """

    columns = ("stability",)

    def __init__(self, look: Callable[[], np.ndarray]):
        self.look = look

    def enough(self, training: Training) -> bool:
        return training.current.name == "joint" and bool(self._kept(training).calm >= CALM)

    def on_step(self, training: Training) -> None:
        if not due(training):
            return
        labels = torch.from_numpy(self.look()).to(self._kept(training).labels)
        ranks.broadcast(labels)
        training.network.train()
        kept = self._kept(training)
        if (kept.labels >= 0).all():
            stability = metrics.nmi(kept.labels.cpu().numpy(), labels.cpu().numpy())
            training.history.annotate(stability=stability)
            kept.calm.fill_(int(kept.calm) + 1 if stability >= SETTLED else 0)
        kept.labels.copy_(labels)

    @staticmethod
    def _kept(training: Training) -> Settling:
        kept = training.network.kept
        assert isinstance(kept, Settling)
        return kept
