"""The theorems of the paper: when the representation cannot collapse, its optimum, and measures of the distance to it.

conditions: the bound of Theorem 2.   water_filling: the exact optimum for a fixed C.
alignment: measures of Theorem 1.    structure: measures of Theorem 3.
"""

from prodsc.core.theory.alignment import commutator, eigenspace_correlation, gram_and_residual, spectra
from prodsc.core.theory.conditions import gamma_bound, gamma_safe, lambda_max, no_collapse_margin
from prodsc.core.theory.structure import (
    block_means,
    csc,
    effective_rank,
    effective_rank_of_spectrum,
    smallest_subspace_angles,
)
from prodsc.core.theory.water_filling import WaterFilling, water_filling

__all__ = [
    "WaterFilling",
    "block_means",
    "commutator",
    "csc",
    "effective_rank",
    "effective_rank_of_spectrum",
    "eigenspace_correlation",
    "gamma_bound",
    "gamma_safe",
    "gram_and_residual",
    "lambda_max",
    "no_collapse_margin",
    "smallest_subspace_angles",
    "spectra",
    "water_filling",
]
