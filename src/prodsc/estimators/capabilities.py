"""What a method can do beyond `fit` and `labels_`: each class declares it, commands and exports ask here."""

from collections.abc import Callable
from enum import StrEnum
from typing import Any

from prodsc.errors import ParameterError


class Capability(StrEnum):
    """One thing a method may offer. The value completes the sentence "this needs a method that can ..."."""

    PREDICT = "label rows it was not fitted on"
    PROBABILITIES = "give the probability of each cluster"
    OUTLIER_SCORE = "score outliers"
    TRANSFORM = "give a learned representation"
    COEFFICIENTS = "express rows by each other"
    AFFINITY = "give the affinity of any rows"
    HISTORY = "record the loss of every training step"
    DIAGNOSE = "be diagnosed for collapse"
    K_CURVE = "estimate the number of clusters"
    CONSTRAINTS = "use known labels and pairs"
    RANKS = "train on several processes"


METHOD_OF = {  # the method of the estimator that a capability promises
    Capability.PREDICT: "predict",
    Capability.PROBABILITIES: "predict_proba",
    Capability.OUTLIER_SCORE: "outlier_score",
    Capability.TRANSFORM: "transform",
    Capability.COEFFICIENTS: "coefficients",
    Capability.AFFINITY: "affinity",
}


def can(model: Any, capability: Capability) -> bool:
    """Whether the method of a model (an estimator, fitted or not, or its class) has declared the capability."""
    return capability in model.capabilities


def method_of(model: Any, capability: Capability) -> Callable[..., Any]:
    """The method of a model that a declared capability promises, such as `predict`.

    Parameters
    ----------
    model : estimator
        Its method must have declared the capability.
    capability : Capability
        A key of `METHOD_OF`.
    """
    method: Callable[..., Any] = getattr(model, METHOD_OF[capability])
    return method


def require_capability(model: Any, capability: Capability, purpose: str) -> None:
    """Raise one sentence when a model cannot do what `purpose` (such as "the figure map") needs."""
    if not can(model, capability):
        name = model.__name__ if isinstance(model, type) else type(model).__name__
        raise ParameterError(f"{purpose} needs a method that can {capability.value}; {name} cannot. Use PRODSC.")
