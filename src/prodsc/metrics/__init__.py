"""ACC, NMI, ARI, the subspace-preserving error and connectivity."""

from prodsc.metrics.scores import accuracy, ari, connectivity, nmi, scores, subspace_preserving_error

__all__ = ["accuracy", "ari", "connectivity", "nmi", "scores", "subspace_preserving_error"]
