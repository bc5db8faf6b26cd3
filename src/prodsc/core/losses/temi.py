"""TEMI's loss: pointwise mutual information of the clusters of two neighbours, weighted by how sure they are one."""

from jaxtyping import Float
from torch import Tensor

PerHead = Float[Tensor, "h n k"]  # probabilities of n rows in k clusters by each of h heads


def sameness(t: PerHead, t_other: PerHead) -> Float[Tensor, " n"]:
    """w = mean over heads of sum_k t_k(x) t_k(x'): the teachers' belief that two neighbours share a cluster."""
    return (t * t_other).sum(2).mean(0)


def temi(
    s: PerHead, t_other: PerHead, w: Float[Tensor, " n"], p: Float[Tensor, "h k"], exponent: float
) -> Float[Tensor, " h"]:
    """-mean over rows of w log sum_k (s_k(x) t_k(x'))^exponent / p_k, for each head."""
    return -(w * ((s * t_other) ** exponent / p[:, None]).sum(2).log()).mean(1)
