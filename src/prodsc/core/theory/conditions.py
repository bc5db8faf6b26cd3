"""Theorem 2 of the paper: the weight of self-expression below which Z keeps full rank."""

import math

import torch
import torch.nn.functional as F

from prodsc.types import Scalar, Square


def gamma_bound(alpha: float, n: int, d: int, lambda_max: float) -> float:
    """alpha^2 / (lambda_max (alpha + min(d/n, 1))): a bound on the weight of 1/2 ||Z - ZC||^2, undivided.

    lambda_max is the largest eigenvalue of M = (I - C)(I - C)'. The library's gamma multiplies the term divided
    by n, so it is compared with n times this.

    Parameters
    ----------
    alpha : float
        d / (n eps).
    n : int
        Number of points of a batch.
    d : int
        Dimension of the representation.
    lambda_max : float
        Largest eigenvalue of M.

    Returns
    -------
    float
    """
    return alpha**2 / (lambda_max * (alpha + min(d / n, 1.0)))


def gamma_safe(n: int, d: int, eps: float) -> float:
    """The bound on the library's gamma that needs no data: ||C||_2 <= 1 gives lambda_max(M) <= 4.

    For d <= n the batch size cancels: d / (4 eps (1 + eps)).

    Parameters
    ----------
    n : int
        Number of points of a batch.
    d : int
        Dimension of the representation.
    eps : float
        Precision of the coding rate.

    Returns
    -------
    float
    """
    return n * gamma_bound(d / (n * eps), n, d, lambda_max=4.0)


def no_collapse_margin(gamma: float, n: int, d: int, eps: float, lambda_max: float) -> float:
    """n gamma_bound(d / (n eps), n, d, lambda_max) / gamma, for the library's gamma; > 1 rules collapse out.

    For d <= n the batch size cancels: d / (eps (1 + eps) gamma lambda_max). Below 1 it may collapse or
    not: the condition is sufficient, not necessary.

    Parameters
    ----------
    gamma : float
        Weight of self-expression.
    n : int
        Number of points of a batch.
    d : int
        Dimension of the representation.
    eps : float
        Precision of the coding rate.
    lambda_max : float
        Largest eigenvalue of M.

    Returns
    -------
    float
    """
    if gamma * lambda_max == 0:  # nothing pulls towards collapse
        return math.inf
    return n * gamma_bound(d / (n * eps), n, d, lambda_max) / gamma


@torch.no_grad()
def lambda_max(C: Square, iterations: int = 8, generator: torch.Generator | None = None) -> Scalar:
    """||(I - C)'v||^2 <= lambda_max(M), M = (I - C)(I - C)', with a unit vector v after some power iterations.

    An estimate from below, in matrix-vector products alone: O(n^2) each, M is never built. Without a generator
    the start is the same random vector in every call.

    Parameters
    ----------
    C : Tensor of shape (n, n)
        Coefficients; column j expresses point j.
    iterations : int
        Power iterations.
    generator : torch.Generator, optional
        Draws the start.

    Returns
    -------
    Tensor, a scalar
    """
    generator = generator or torch.Generator().manual_seed(0)
    v = torch.randn(len(C), generator=generator, device=generator.device, dtype=C.dtype).to(C.device)
    for _ in range(iterations):
        residual = v - C.T @ v
        v = F.normalize(residual - C @ residual, dim=0)  # stays zero when C = I, where M = 0
    v = F.normalize(v, dim=0)
    return (v - C.T @ v).square().sum()
