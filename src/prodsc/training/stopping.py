"""When training ends, and which weights it leaves: both without labels.

Every loss goes on improving in a fit that trains too long, while its clusters get worse. So the network is evaluated
every few joint steps.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from prodsc import ranks
from prodsc.core import metrics
from prodsc.training.loop import Callback, Training


@dataclass(frozen=True)
class StoppingRules:
    """When the network is evaluated, and what the numbers mean."""

    every: int = 20  # steps between evaluations
    n_rows: int = 1536  # rows that an evaluation labels
    smoothing_window: int = 3  # evaluations that a score is the mean of: the best of many single ones is luck
    split_below: float = 0.75  # perplexity, in clusters of average size, below which clusters are being split
    same_labels: float = 0.99  # NMI with the labels of the evaluation before, from which they count as unchanged
    n_unchanged: int = 3  # evaluations with unchanged labels, one after the other, that end training

    def is_due(self, training: Training) -> bool:
        """Is this a joint step after which the network is evaluated?"""
        step, last = training.step, training.current.steps
        return training.current.name == "joint" and (step % self.every == 0 or step == last)

    def splits_clusters(self, perplexity: float, first: float) -> bool:
        """Are clusters being split, by the perplexity now and at the first evaluation?"""
        return perplexity < self.split_below <= first

    def smooth(self, agreement: np.ndarray) -> np.ndarray:
        """The score of each evaluation: the mean of its agreement and of those just before."""
        n = self.smoothing_window
        return np.array([agreement[max(0, i + 1 - n) : i + 1].mean() for i in range(len(agreement))])


STOPPING_RULES = StoppingRules()


class BestWeights(nn.Module):
    """The weights of the network with the highest score so far, as buffers: a checkpoint has them.

    Parameters
    ----------
    network : torch.nn.Module
        The network whose weights, and statistics of batch normalisation, are copied.
    """

    weights: Tensor
    score: Tensor
    step: Tensor
    first_perplexity: Tensor
    ended: Tensor

    def __init__(self, network: nn.Module):
        super().__init__()
        self.register_buffer("weights", _flat_weights(network))
        self.register_buffer("score", torch.tensor(-torch.inf))
        self.register_buffer("step", torch.tensor(0))
        self.register_buffer("first_perplexity", torch.tensor(torch.nan))
        self.register_buffer("ended", torch.tensor(False))

    def copy_from(self, network: nn.Module, score: float, step: int) -> None:
        """Remember the weights of the network as it is."""
        self.weights.copy_(_flat_weights(network))
        self.score.fill_(score)
        self.step.fill_(step)

    @torch.no_grad()
    def copy_to(self, network: nn.Module) -> None:
        """Give the network the weights that were remembered."""
        parts = _weights(network)
        for part, weights in zip(parts, self.weights.split([part.numel() for part in parts]), strict=True):
            part.copy_(weights.view_as(part))


class BestWeightsCallback(Callback):
    """Evaluates the network every few joint steps and leaves the best weights in it at the end.

    Perplexity falls while clusters form. Once a row is expressed by fewer rows than a cluster has, training only
    splits clusters, and ends; unless it began there.

    Parameters
    ----------
    evaluate : callable
        Returns two numbers for the network as it is: the agreement of neighbours on their labels, by which weights are
        compared, and the perplexity of the coefficients, in clusters of average size.
    network : torch.nn.Module
        The network that is trained.
    rules : StoppingRules
        When to evaluate, and what the numbers mean.
    """

    columns = ("agreement", "perplexity")
    reason = "labels were best before"

    def __init__(
        self, evaluate: Callable[[], tuple[float, float]], network: nn.Module, rules: StoppingRules = STOPPING_RULES
    ):
        self.evaluate, self.rules = evaluate, rules
        self.state = self.best = BestWeights(network)

    def ends_phase(self, training: Training) -> bool:
        return training.current.name == "joint" and bool(self.best.ended)

    def on_step(self, training: Training) -> None:
        if not self.rules.is_due(training):
            return
        values = torch.tensor(self.evaluate())
        ranks.broadcast(values)  # all ranks must keep the same weights, whatever their rounding
        training.network.train()
        agreement, perplexity = values.tolist()
        training.history.annotate(agreement=agreement, perplexity=perplexity)
        best = self.best
        if best.first_perplexity.isnan():
            best.first_perplexity.fill_(perplexity)
        best.ended.fill_(self.rules.splits_clusters(perplexity, float(best.first_perplexity)))
        column = training.history.columns()["agreement"]
        score = float(self.rules.smooth(column[np.isfinite(column)])[-1])
        if score > best.score and not best.ended:
            best.copy_from(training.network, score, training.step)

    def on_end(self, training: Training) -> None:
        if self.best.step:
            self.best.copy_to(training.network)


class LabelConvergence(nn.Module):
    """The labels of the last evaluation, and for how many evaluations they have not changed: a checkpoint has both."""

    labels: Tensor
    n_unchanged: Tensor

    def __init__(self, n_rows: int):
        super().__init__()
        self.register_buffer("labels", torch.full((n_rows,), -1))
        self.register_buffer("n_unchanged", torch.tensor(0))


class StopWhenConverged(Callback):
    """Ends the joint phase once labels no longer change: further training does not improve them.

    Parameters
    ----------
    evaluate : callable
        Returns the labels of some rows, always the same ones, by the network as it is.
    n_rows : int
        Number of these rows.
    rules : StoppingRules
        When to evaluate, and when labels count as unchanged.
    """

    columns = ("stability",)
    reason = "labels have settled"

    def __init__(self, evaluate: Callable[[], np.ndarray], n_rows: int, rules: StoppingRules = STOPPING_RULES):
        self.evaluate, self.rules = evaluate, rules
        self.state = self.convergence = LabelConvergence(n_rows)

    def ends_phase(self, training: Training) -> bool:
        return training.current.name == "joint" and bool(self.convergence.n_unchanged >= self.rules.n_unchanged)

    def on_step(self, training: Training) -> None:
        if not self.rules.is_due(training):
            return
        seen = self.convergence
        labels = torch.from_numpy(self.evaluate()).to(seen.labels)
        ranks.broadcast(labels)
        training.network.train()
        if (seen.labels >= 0).all():
            stability = metrics.nmi(seen.labels.cpu().numpy(), labels.cpu().numpy())
            training.history.annotate(stability=stability)
            seen.n_unchanged.fill_(int(seen.n_unchanged) + 1 if stability >= self.rules.same_labels else 0)
        seen.labels.copy_(labels)


def _weights(network: nn.Module) -> list[Tensor]:
    """Weights and the statistics of batch normalisation."""
    return [part for part in network.state_dict(keep_vars=True).values() if part.is_floating_point()]


def _flat_weights(network: nn.Module) -> Tensor:
    """A copy of all weights in one vector."""
    return torch.cat([part.detach().flatten() for part in _weights(network)])
