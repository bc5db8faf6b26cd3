"""C: Gram matrix, sign, row softmax or Sinkhorn, and the two published variants of the coefficients."""

from prodsc.core.self_expression.coefficients import (
    COEFFICIENT_FORMS,
    NORMALISERS,
    CoefficientForm,
    Normaliser,
    SelfExpression,
    gram,
    informed,
    perplexity,
    potentials,
    row_softmax,
    self_expression,
    sinkhorn,
)
from prodsc.core.self_expression.post_processing import low_rank_affinity, strongest
from prodsc.core.self_expression.senet import CodeKernel, ExpressionNet

__all__ = [
    "COEFFICIENT_FORMS",
    "NORMALISERS",
    "CodeKernel",
    "CoefficientForm",
    "ExpressionNet",
    "Normaliser",
    "SelfExpression",
    "gram",
    "informed",
    "low_rank_affinity",
    "perplexity",
    "potentials",
    "row_softmax",
    "self_expression",
    "sinkhorn",
    "strongest",
]
