"""Self-expressive coefficients C: of the network's outputs, of a free matrix, in closed form, sparse, by SENet."""

from prodsc.core.linalg import gram
from prodsc.core.self_expression.coefficients import (
    SelfExpression,
    apply_constraints,
    perplexity,
    potentials,
    row_softmax,
    self_expression,
    sinkhorn,
)
from prodsc.core.self_expression.post_processing import keep_largest, low_rank_affinity
from prodsc.core.self_expression.senet import CodeKernel, ExpressionNet

__all__ = [
    "CodeKernel",
    "ExpressionNet",
    "SelfExpression",
    "apply_constraints",
    "gram",
    "keep_largest",
    "low_rank_affinity",
    "perplexity",
    "potentials",
    "row_softmax",
    "self_expression",
    "sinkhorn",
]
