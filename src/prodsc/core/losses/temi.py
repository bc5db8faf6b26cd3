"""The loss of TEMI: pointwise mutual information of the clusters of two neighbours."""

from jaxtyping import Float
from torch import Tensor

PerHead = Float[Tensor, "h n k"]  # probabilities of n rows in k clusters by each of h heads


def sameness(t: PerHead, t_other: PerHead) -> Float[Tensor, " n"]:
    """w = mean over heads of sum_k t_k(x) t_k(x'): the probability that two neighbours share a cluster.

    Parameters
    ----------
    t : Tensor of shape (h, n, k)
        Probabilities of n rows in k clusters by each of h teachers.
    t_other : Tensor of shape (h, n, k)
        Those of a neighbour of each row.

    Returns
    -------
    Tensor of shape (n,)
    """
    return (t * t_other).sum(2).mean(0)


def temi(
    s: PerHead, t_other: PerHead, w: Float[Tensor, " n"], p: Float[Tensor, "h k"], exponent: float
) -> Float[Tensor, " h"]:
    """-mean over rows of w log sum_k (s_k(x) t_k(x'))^exponent / p_k, for each head.

    Parameters
    ----------
    s : Tensor of shape (h, n, k)
        Probabilities by the students.
    t_other : Tensor of shape (h, n, k)
        Probabilities of a neighbour by the teachers.
    w : Tensor of shape (n,)
        See `sameness`.
    p : Tensor of shape (h, k)
        Sizes of the clusters.
    exponent : float
        Below 1: clusters differ less in size.

    Returns
    -------
    Tensor of shape (h,)
    """
    return -(w * ((s * t_other) ** exponent / p[:, None]).sum(2).log()).mean(1)
