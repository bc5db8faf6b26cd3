"""Gram matrices and log-determinants with cheap gradients, and the one place that chooses an eigensolver."""

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from prodsc.random import generator
from prodsc.types import Rows, Scalar, Square

FULL_BELOW = 256  # a full decomposition of a small matrix is faster than anything clever
LANCZOS_SHARE = 1 / 20  # of all eigenvectors; beyond it Lanczos needs a basis so large that LAPACK wins
SUBSET_SHARE = 1 / 3  # of all eigenvectors; beyond it LAPACK finds all of them sooner than these
LANCZOS_RESTARTS = 8  # allowed before LAPACK takes over, at about the cost LAPACK would have had
REFINEMENTS = 6  # allowed from a given start before the exact solver takes over, at well under its cost
REFINED = 1e-2  # residual per eigenvector over the mean diagonal; the error of the eigenvalues is its square


def gram(Y: Rows) -> Square:
    """S = YY', entries in [-1, 1] for unit rows."""
    return _Gram.apply(Y)


def half_logdet(M: Square) -> Scalar:
    """1/2 logdet of a positive definite matrix: the log-diagonal of its Cholesky factor, half the cost of LU."""
    return _HalfLogdet.apply(M)


class _Gram(torch.autograd.Function):
    """dY = (dS + dS')Y: one product, where the general rule for a product of two matrices takes two."""

    @staticmethod
    def forward(ctx: Any, Y: Tensor) -> Tensor:
        ctx.save_for_backward(Y)
        return Y @ Y.T

    @staticmethod
    def backward(ctx: Any, dS: Tensor) -> Tensor:
        (Y,) = ctx.saved_tensors
        return (dS + dS.T) @ Y


class _HalfLogdet(torch.autograd.Function):
    """dM = M^-1 / 2, from the factor that is there already; the general rule for Cholesky takes several solves."""

    @staticmethod
    def forward(ctx: Any, M: Tensor) -> Tensor:
        R = torch.linalg.cholesky(M)
        ctx.save_for_backward(R)
        return R.diagonal().log().sum()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dvalue: Tensor) -> Tensor:
        (R,) = ctx.saved_tensors
        return torch.cholesky_inverse(R).mul_(dvalue / 2)


def smallest_eigenvectors(L: Square, k: int, start: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """The k smallest eigenvalues of a symmetric matrix, ascending, and their eigenvectors as columns.

    k is cut to n: a batch smaller than k has only n eigenvalues. A `start`, n x k and near the eigenvectors (those of
    the last training step), is refined instead of solving anew, to within REFINED; a poor one is not used. By Ky Fan
    the sum of refined eigenvalues is never below the exact one.
    """
    n = len(L)
    k = min(k, n)
    if start is not None and n > FULL_BELOW and 3 * k < n:
        refined = _lobpcg(L, start)
        if refined is not None:
            return refined
    if L.device.type != "cpu" or n <= FULL_BELOW:
        return _full(L, k)
    if k <= n * LANCZOS_SHARE:
        found = _lanczos(L, k)
        if found is not None:
            return found
    return _lapack(L, k)


def largest_eigenvectors(W: Square, k: int) -> tuple[Tensor, Tensor]:
    """The k largest eigenvalues of a symmetric matrix, descending, and their eigenvectors as columns."""
    values, vectors = smallest_eigenvectors(-W, k)
    return -values, vectors


def singular_vectors(M: Square, k: int) -> tuple[Tensor, Tensor]:
    """The k largest singular values of a symmetric matrix, descending, and their vectors: its eigenvectors, the
    eigenvalues without their signs."""
    found = None
    if M.device.type == "cpu" and len(M) > FULL_BELOW and k <= len(M) * LANCZOS_SHARE:
        found = _lanczos(M, k, "LM")
    values, vectors = found if found is not None else _full(M, len(M))
    order = values.abs().argsort(descending=True)[:k]
    return values[order].abs(), vectors[:, order]


def _lobpcg(L: Square, start: Tensor) -> tuple[Tensor, Tensor] | None:
    """LOBPCG: Rayleigh-Ritz over [U, residual / diag(L), last move], or None when it has not converged."""
    diagonal = L.diagonal().abs()
    size = diagonal.mean()
    U = LU = moved = start[:, :0]
    trial = start
    for _ in range(REFINEMENTS + 1):
        trial = _orthonormal_to(U, trial)
        span, image = torch.cat([U, trial], 1), torch.cat([LU, L @ trial], 1)
        values, Q = torch.linalg.eigh(span.T @ image)
        values, Q = values[: start.shape[1]], Q[:, : start.shape[1]]
        if U.shape[1]:
            moved = trial @ Q[U.shape[1] :]
        U, LU = span @ Q, image @ Q
        residual = LU - U * values
        if residual.square().sum(0).mean().sqrt() <= REFINED * size:
            return values, U
        trial = torch.cat([residual / diagonal.clamp_min(1e-3 * size)[:, None], moved], 1)
    return None


def _orthonormal_to(U: Tensor, vectors: Tensor) -> Tensor:
    """An orthonormal basis of the part of `vectors` outside U; twice, because once leaves rounding behind."""
    for _ in range(2):
        vectors = torch.linalg.qr(vectors - U @ (U.T @ vectors)).Q
    return vectors


def _lanczos(L: Square, k: int, which: str = "SA") -> tuple[Tensor, Tensor] | None:
    """ARPACK on L, or None when it did not converge: clustered eigenvalues can make it stall."""
    array = L.numpy()

    def multiply(vector: np.ndarray) -> np.ndarray:
        return array @ vector

    operator = scipy.sparse.linalg.LinearOperator(array.shape, matvec=multiply, dtype=array.dtype)
    # A fixed start keeps fits repeatable. Not the constant vector: that is an eigenvector of every Laplacian.
    start = generator(0).standard_normal(len(array)).astype(array.dtype)
    try:
        values, vectors = scipy.sparse.linalg.eigsh(
            operator, k=k, which=which, v0=start, ncv=min(len(array) - 1, max(2 * k + 1, 40)), maxiter=LANCZOS_RESTARTS
        )
    except (scipy.sparse.linalg.ArpackError, scipy.sparse.linalg.ArpackNoConvergence):
        return None
    order = np.argsort(values)
    return torch.from_numpy(values[order].copy()), torch.from_numpy(np.ascontiguousarray(vectors[:, order]))


def _lapack(L: Square, k: int) -> tuple[Tensor, Tensor]:
    """A part of the eigenvectors by relatively robust representations, most of them by divide and conquer."""
    n = len(L)
    try:
        if k <= n * SUBSET_SHARE:
            found = scipy.linalg.eigh(L.numpy(), subset_by_index=[0, k - 1], driver="evr", check_finite=False)
        else:
            found = scipy.linalg.eigh(L.numpy(), driver="evd", check_finite=False)
    except np.linalg.LinAlgError:
        return _full(L, k)
    values, vectors = found
    return torch.from_numpy(values[:k]), torch.from_numpy(vectors[:, :k])


def _full(L: Square, k: int) -> tuple[Tensor, Tensor]:
    """By PyTorch, on any device; a matrix that defeats it in float32 gets another chance in float64."""
    try:
        values, vectors = torch.linalg.eigh(L)
    except torch.linalg.LinAlgError:
        values, vectors = torch.linalg.eigh(L.double().cpu())
    return values[:k].to(L), vectors[:, :k].to(L)
