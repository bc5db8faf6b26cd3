"""Terms of the loss: functions of tensors whose docstring is their equation. `Objective` adds them up."""

from prodsc.core.losses.block_diagonal import RememberedBlockDiagonal, block_diagonal, laplacian
from prodsc.core.losses.coding_rate import coding_rate, nuclear_spread, scale
from prodsc.core.losses.coding_rate_parts import coding_length, coding_rate_parts
from prodsc.core.losses.dictionary import dictionary_expression, elastic_net
from prodsc.core.losses.links import links
from prodsc.core.losses.norms import frobenius, l1, nuclear
from prodsc.core.losses.objective import LossReport, Objective, Term
from prodsc.core.losses.reconstruction import reconstruction
from prodsc.core.losses.self_expression import self_expression, walk_expression
from prodsc.core.losses.soft_labels import (
    disagreement,
    negative_entropy,
    negative_information,
    self_label,
    soft_cross_entropy,
)
from prodsc.core.losses.subspace_bases import (
    basis_affinity,
    divergence,
    mean_square,
    overlap,
    sharpened_target,
    unit_columns,
)
from prodsc.core.losses.temi import sameness, temi
from prodsc.core.losses.turtle import fitted_classifier

__all__ = [
    "LossReport",
    "Objective",
    "RememberedBlockDiagonal",
    "Term",
    "basis_affinity",
    "block_diagonal",
    "coding_length",
    "coding_rate",
    "coding_rate_parts",
    "dictionary_expression",
    "disagreement",
    "divergence",
    "elastic_net",
    "fitted_classifier",
    "frobenius",
    "l1",
    "laplacian",
    "links",
    "mean_square",
    "negative_entropy",
    "negative_information",
    "nuclear",
    "nuclear_spread",
    "overlap",
    "reconstruction",
    "sameness",
    "scale",
    "self_expression",
    "self_label",
    "sharpened_target",
    "soft_cross_entropy",
    "temi",
    "unit_columns",
    "walk_expression",
]
