"""Theorem 2 of the paper: the weight of self-expression below which Z keeps full rank."""

import math

import torch
import torch.nn.functional as F

from prodsc.types import Scalar, Square


def gamma_bound(alpha: float, n: int, d: int, lambda_max: float) -> float:
    """alpha^2 / (lambda_max (alpha + min(d/n, 1))): a bound on the weight of 1/2 ||Z - ZC||^2, undivided.

    lambda_max is the largest eigenvalue of M = (I - C)(I - C)'. The library's gamma multiplies the term divided
    by n, so it is compared with n times this.
    """
    return alpha**2 / (lambda_max * (alpha + min(d / n, 1.0)))


def gamma_safe(n: int, d: int, eps: float) -> float:
    """The bound on the library's gamma that needs no data: ||C||_2 <= 1 gives lambda_max(M) <= 4.

    For d <= n the batch size cancels: d / (4 eps (1 + eps)).
    """
    return n * gamma_bound(d / (n * eps), n, d, lambda_max=4.0)


def no_collapse_margin(gamma: float, n: int, d: int, eps: float, lambda_max: float) -> float:
    """n gamma_bound(d / (n eps), n, d, lambda_max) / gamma, for the library's gamma; > 1 rules collapse out.

    For d <= n the batch size cancels: d / (eps (1 + eps) gamma lambda_max). Below 1 nothing is said: the
    condition is sufficient, not necessary.
    """
    if gamma * lambda_max == 0:  # nothing pulls towards collapse
        return math.inf
    return n * gamma_bound(d / (n * eps), n, d, lambda_max) / gamma


@torch.no_grad()
def lambda_max(C: Square, iterations: int = 8, generator: torch.Generator | None = None) -> Scalar:
    """||(I - C)'v||^2 <= lambda_max(M), M = (I - C)(I - C)', with the unit v of so many power iterations.

    An estimate from below, in matrix-vector products alone: O(n^2) each, M is never built. Without a generator
    the start is the same random vector in every call, so that two runs agree.
    """
    generator = generator or torch.Generator().manual_seed(0)
    v = torch.randn(len(C), generator=generator, device=generator.device, dtype=C.dtype).to(C.device)
    for _ in range(iterations):
        residual = v - C.T @ v
        v = F.normalize(residual - C @ residual, dim=0)  # stays zero when C = I, where M = 0
    v = F.normalize(v, dim=0)
    return (v - C.T @ v).square().sum()


@torch.no_grad()
def lambda_max_bound(C: Square) -> Scalar:
    """||I - C||_1 ||I - C||_inf >= ||I - C||_2^2 = lambda_max(M): the largest column sum times the largest row sum."""
    magnitudes = C.abs()
    diagonal = (1 - C.diagonal()).abs() - magnitudes.diagonal()  # the identity touches nothing else
    return (magnitudes.sum(0) + diagonal).max() * (magnitudes.sum(1) + diagonal).max()
