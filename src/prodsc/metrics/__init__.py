"""ACC, NMI, ARI, calibration, the subspace-preserving error and connectivity."""

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
    "ari",
    "calibration_error",
    "connectivity",
    "matched",
    "nmi",
    "scores",
    "subspace_preserving_error",
]
