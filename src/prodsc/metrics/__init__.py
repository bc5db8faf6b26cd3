"""ACC, NMI, ARI, calibration, the subspace-preserving error and connectivity."""

from prodsc.metrics.neighbours import agreement_beyond_chance
from prodsc.metrics.scores import (
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
    "matched",
    "nmi",
    "scores",
    "subspace_preserving_error",
]
