"""When the representation cannot collapse, what it then is, and how far training is from it.

conditions: Theorem 2's bound.   water_filling: the exact optimum for a fixed C.
alignment: meters of Theorem 1.  structure: meters of Theorem 3.
"""

from prodsc.core.theory.alignment import commutator, eigenspace_correlation, gram_and_residual, spectra
from prodsc.core.theory.conditions import gamma_bound, gamma_safe, lambda_max, lambda_max_bound, no_collapse_margin
from prodsc.core.theory.structure import block_means, cluster_ranks, csc, effective_rank, subspace_angles
from prodsc.core.theory.water_filling import WaterFilling, optimal_Z, water_filling

__all__ = [
    "WaterFilling",
    "block_means",
    "cluster_ranks",
    "commutator",
    "csc",
    "effective_rank",
    "eigenspace_correlation",
    "gamma_bound",
    "gamma_safe",
    "gram_and_residual",
    "lambda_max",
    "lambda_max_bound",
    "no_collapse_margin",
    "optimal_Z",
    "spectra",
    "subspace_angles",
    "water_filling",
]
