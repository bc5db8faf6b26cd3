"""Terms on probabilities of clusters: neighbours agree, clusters are of like size, a model labels itself."""

import torch
from jaxtyping import Float
from torch import Tensor

from prodsc.types import Rows, Scalar


def disagreement(P: Float[Tensor, "*h n k"], P_other: Float[Tensor, "*h n k"]) -> Float[Tensor, "*h"]:
    """-mean_i log <p_i, p'_i>: zero when each row and its neighbour certainly have the same cluster.

    Parameters
    ----------
    P : Tensor of shape (..., n, k)
        Probabilities of the clusters.
    P_other : Tensor of shape (..., n, k)
        Those of a neighbour of each row.

    Returns
    -------
    Tensor of shape (...)
    """
    return -(P * P_other).sum(-1).clamp_min(torch.finfo(P.dtype).tiny).log().mean(-1)


def negative_entropy(P: Float[Tensor, "*h n k"]) -> Float[Tensor, "*h"]:
    """-H(m) = sum_k m_k log m_k, m = mean_i p_i: lowest, -log k, when all clusters have the same size.

    Parameters
    ----------
    P : Tensor of shape (..., n, k)
        Probabilities of the clusters.

    Returns
    -------
    Tensor of shape (...)
    """
    m = P.mean(-2)
    return torch.xlogy(m, m).sum(-1)


def negative_information(P: Rows, P_other: Rows) -> Scalar:
    """-sum_ab J_ab log(J_ab / (m_a m_b)), J = (P'P_other + P_other'P) / 2n, m its marginal.

    The information that the cluster of a row has about that of its neighbour, negative.

    Parameters
    ----------
    P : Tensor of shape (n, k)
        Probabilities of the clusters.
    P_other : Tensor of shape (n, k)
        Those of a neighbour of each row.

    Returns
    -------
    Tensor, a scalar
    """
    J = P.T @ P_other / len(P)
    J = (J + J.T) / 2
    m = J.sum(1)
    return 2 * torch.xlogy(m, m).sum() - torch.xlogy(J, J.clamp_min(1e-12)).sum()


def soft_cross_entropy(logits: Rows, T: Rows) -> Scalar:
    """-mean_i sum_k t_ik log softmax(logits_i)_k.

    Parameters
    ----------
    logits : Tensor of shape (n, k)
        Scores of the clusters.
    T : Tensor of shape (n, k)
        Target probabilities.

    Returns
    -------
    Tensor, a scalar
    """
    return -(T * torch.log_softmax(logits, dim=1)).sum(1).mean()


def self_label(logits: Rows, confidence: float) -> Scalar:
    """-mean of log p(y_i), y_i = argmax p_i, over rows with p(y_i) > confidence, every cluster with the same weight.

    Zero when no row is that certain.

    Parameters
    ----------
    logits : Tensor of shape (n, k)
        Scores of the clusters.
    confidence : float
        Probability above which a row is used.

    Returns
    -------
    Tensor, a scalar
    """
    log_p = torch.log_softmax(logits, dim=1)
    top, y = log_p.max(1)
    confident = (top.detach().exp() > confidence).to(log_p)
    sizes = torch.zeros_like(log_p[0]).index_add(0, y, confident)
    weights = confident / sizes.clamp_min(1.0)[y]
    return -(weights * top).sum() / weights.sum().clamp_min(1.0)
