"""Scores of labels and coefficients: ACC, NMI, ARI, calibration, subspace-preserving error, connectivity."""

from prodsc.core.metrics.labels import agreement_beyond_chance, evenness, same_label_share
from prodsc.core.metrics.scores import (
    accuracy,
    ari,
    calibration_error,
    connectivity,
    matched,
    nmi,
    scores,
    subspace_preserving_error,
)

__all__ = [
    "accuracy",
    "agreement_beyond_chance",
    "ari",
    "calibration_error",
    "connectivity",
    "evenness",
    "matched",
    "nmi",
    "same_label_share",
    "scores",
    "subspace_preserving_error",
]
