"""A method is its list of terms; the objective adds them up."""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Generic, TypeVar

from torch import Tensor

from prodsc.types import Scalar

StepT = TypeVar("StepT")


@dataclass(frozen=True)
class Term(Generic[StepT]):
    """weight * value(step). The value is recorded without its weight, so that runs with other weights compare."""

    name: str
    weight: float
    value: Callable[[StepT], Scalar]


@dataclass(frozen=True)
class LossReport:
    total: Scalar
    parts: dict[str, Tensor]  # name -> unweighted value


class Objective(Generic[StepT]):
    """sum over terms of weight * value. `weights` may be changed while training (the collapse guard does)."""

    def __init__(self, *terms: Term[StepT]):
        self.terms = {term.name: term for term in terms}
        self.weights = {term.name: term.weight for term in terms}

    def __call__(self, step: StepT, only: Collection[str]) -> LossReport:
        active = [term for term in self.terms.values() if term.name in only]
        parts = {term.name: term.value(step) for term in active}
        total = sum((self.weights[term.name] * parts[term.name] for term in active), start=0.0)
        return LossReport(total, {name: part.detach() for name, part in parts.items()})  # type: ignore[arg-type]
