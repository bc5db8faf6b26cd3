"""A method is its list of terms; the objective adds them up."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import Tensor, nn

from prodsc.types import Scalar

StepT = TypeVar("StepT")


@dataclass(frozen=True)
class Term(Generic[StepT]):
    """weight * value(step). The value is recorded without its weight, so that runs with other weights compare.

    Parameters
    ----------
    name : str
        Name in the history.
    weight : float
        Factor of the value in the total.
    value : callable
        The value for what a batch became.
    state : torch.nn.Module, optional
        What the value remembers between steps; a checkpoint saves it.
    """

    name: str
    weight: float
    value: Callable[[StepT], Scalar]
    state: nn.Module | None = None


@dataclass(frozen=True)
class LossReport:
    """The loss of one batch: the weighted total, and each term without its weight."""

    total: Scalar
    parts: dict[str, Tensor]  # name -> unweighted value


class Objective(Generic[StepT]):
    """sum over terms of weight * value. `weights` may change during training (the collapse guard changes them).

    Parameters
    ----------
    *terms : Term
        With different names.
    """

    def __init__(self, *terms: Term[StepT]):
        self.terms = {term.name: term for term in terms}
        self.weights = {term.name: term.weight for term in terms}

    def __call__(self, step: StepT, only: Collection[str]) -> LossReport:
        """Add up the terms named in `only`, for what a batch became."""
        active = [term for term in self.terms.values() if term.name in only]
        parts = {term.name: term.value(step) for term in active}
        total = sum((self.weights[term.name] * parts[term.name] for term in active), start=0.0)
        return LossReport(total, {name: part.detach() for name, part in parts.items()})  # type: ignore[arg-type]
