"""From the rows of Y to the self-expressive coefficients C and the affinity A.

    S = YY'      P = normalise(|S| / eta), diag(P) = 0      A = (P + P') / 2      C = sign(S) * A  or  sign(S) * P

Column j of C expresses point j, as in the paper: the reconstruction of row z_j is row j of C'Z.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from prodsc.choices import CoefficientForm, Normaliser
from prodsc.core.linalg import gram
from prodsc.types import Affinity, Rows, Square


@dataclass(frozen=True)
class SelfExpression:
    """S = YY', the affinity A and the coefficients C of a batch."""

    S: Square
    A: Affinity
    C: Square


def apply_constraints(K: Square, R: Tensor) -> Square:
    """Set the similarity of known pairs: 1 for pairs that belong together, -infinity for pairs that do not.

    A similarity of 0 would still have the weight e^0 in the softmax.

    Parameters
    ----------
    K : Tensor of shape (n, n)
        Similarities in [0, 1].
    R : Tensor of shape (n, n)
        1 for two rows that belong together, -1 for two that do not, 0 where nothing is known.

    Returns
    -------
    Tensor of shape (n, n)
    """
    return K.masked_fill(R > 0, 1.0).masked_fill(R < 0, -torch.inf)


def row_softmax(K: Square) -> Square:
    """P with rows that sum to 1. The published runs use this (one Sinkhorn half-step) nearly everywhere.

    Parameters
    ----------
    K : Tensor of shape (n, n)
        |S| / eta.

    Returns
    -------
    Tensor of shape (n, n)
    """
    return torch.softmax(K, dim=1)


def potentials(K: Square, half_steps: int, stop_column_gradient: bool = True) -> list[Tensor]:
    """p_0 = 0 and p_t = -log sum_j exp(K_ij + p_{t-1,j}): the scalings of Sinkhorn in the log domain.

    Odd t scale rows, even t scale columns; K = |S|/eta is symmetric, so both are the same formula.
    The published code lets no gradient through the column scalings, hence the default.

    Parameters
    ----------
    K : Tensor of shape (n, n)
        |S| / eta.
    half_steps : int
        Number of half-steps.
    stop_column_gradient : bool
        As in the published code.

    Returns
    -------
    list of Tensor of shape (n,)
        p_0, ..., p_half_steps.
    """
    chain = [torch.zeros_like(K[0])]
    for t in range(1, half_steps + 1):
        p = -torch.logsumexp(K + chain[-1], dim=1)
        chain.append(p.detach() if stop_column_gradient and t % 2 == 0 else p)
    return chain


def sinkhorn(K: Square, half_steps: int = 5, stop_column_gradient: bool = True) -> Square:
    """n times the Sinkhorn scaling of exp(K) with marginals 1/n, after the given number of half-steps.

    An odd number ends on rows that sum to 1, an even number on columns that do; many approach a doubly
    stochastic matrix. One half-step is exactly the row softmax.

    Parameters
    ----------
    K : Tensor of shape (n, n)
        |S| / eta.
    half_steps : int
        Number of half-steps.
    stop_column_gradient : bool
        As in the published code.

    Returns
    -------
    Tensor of shape (n, n)
    """
    chain = potentials(K, half_steps, stop_column_gradient)
    last, before = chain[-1], chain[-2]
    rows, columns = (last, before) if half_steps % 2 else (before, last)
    return torch.exp(K + rows[:, None] + columns[None, :])


def normalise(K: Square, normaliser: Normaliser, half_steps: int) -> Square:
    """P, by the row softmax or by Sinkhorn."""
    return row_softmax(K) if normaliser == "softmax" else sinkhorn(K, half_steps)


def perplexity(Y: Rows, eta: float, every: int = 1) -> float:
    """The effective number of rows that express a row, as a share of all: exp of the mean entropy of P, over n - 1.

    Parameters
    ----------
    Y : Tensor of shape (n, d)
        Unit rows.
    eta : float
        Temperature.
    every : int
        Only every so many rows are used; all of them express these.

    Returns
    -------
    float
    """
    K = (Y[::every] @ Y.T).abs() / eta
    used = torch.arange(len(K), device=K.device)
    K[used, every * used] = -torch.inf
    P = torch.softmax(K, dim=1)
    return float(torch.special.entr(P).sum(1).mean().exp()) / max(len(Y) - 1, 1)


def self_expression(
    Y: Rows,
    eta: float,
    normaliser: Normaliser = "softmax",
    half_steps: int = 5,
    form: CoefficientForm = "symmetric",
    R: Tensor | None = None,
) -> SelfExpression:
    """S, A and C of a batch.

    Parameters
    ----------
    Y : Tensor of shape (n, d)
        Unit rows.
    eta : float
        Temperature.
    normaliser : {"softmax", "sinkhorn"}
        Of |S| / eta.
    half_steps : int
        Half-steps of Sinkhorn.
    form : {"symmetric", "directed"}
        C = sign(S) * A or sign(S) * P, the two published variants.
    R : Tensor of shape (n, n), optional
        Known pairs, see `apply_constraints`.

    Returns
    -------
    SelfExpression
    """
    S = gram(Y)
    K = S.abs() if R is None else apply_constraints(S.abs(), R)
    P = normalise(K / eta, normaliser, half_steps)
    A = (P + P.T).mul_(0.5).fill_diagonal_(0.0)  # no point expresses itself
    sign = S.detach().sign()  # its gradient is zero everywhere
    return SelfExpression(S, A, sign * A if form == "symmetric" else (sign * P).fill_diagonal_(0.0))
