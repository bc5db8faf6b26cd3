"""The words that parameters take, as types and as tuples. Imports nothing heavy: the command line reads them."""

from typing import Literal, get_args

Scaling = Literal["unit", "centred", "standard", "global", "none", "raw"]
Normaliser = Literal["softmax", "sinkhorn"]
CoefficientForm = Literal["symmetric", "directed"]
OnCollapse = Literal["warn", "adjust", "raise", "ignore"]
Precision = Literal["auto", "float32", "bf16", "fp16"]

SCALINGS: tuple[str, ...] = get_args(Scaling)
NORMALISERS: tuple[str, ...] = get_args(Normaliser)
COEFFICIENT_FORMS: tuple[str, ...] = get_args(CoefficientForm)
ON_COLLAPSE: tuple[str, ...] = get_args(OnCollapse)
PRECISIONS: tuple[str, ...] = get_args(Precision)
