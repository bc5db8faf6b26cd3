"""TERMS: one file per term, each a function of tensors whose docstring is its equation; objective.py adds them up."""

from prodsc.losses.block_diagonal import RememberedBlockDiagonal, block_diagonal, laplacian
from prodsc.losses.coding_rate import coding_rate, nuclear_spread, scale
from prodsc.losses.coding_rate_parts import coding_length, coding_rate_parts
from prodsc.losses.dictionary import dictionary_expression, elastic_net
from prodsc.losses.links import links
from prodsc.losses.norms import frobenius, l1, nuclear
from prodsc.losses.objective import LossReport, Objective, Term
from prodsc.losses.reconstruction import reconstruction
from prodsc.losses.self_expression import self_expression
from prodsc.losses.soft_labels import disagreement, negative_entropy, self_label, soft_cross_entropy
from prodsc.losses.subspace_bases import (
    basis_affinity,
    divergence,
    mean_square,
    overlap,
    sharpened,
    unit_columns,
)
from prodsc.losses.temi import sameness, temi
from prodsc.losses.turtle import fitted_classifier

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
    "nuclear",
    "nuclear_spread",
    "overlap",
    "reconstruction",
    "sameness",
    "scale",
    "self_expression",
    "self_label",
    "sharpened",
    "soft_cross_entropy",
    "temi",
    "unit_columns",
]
