"""Gram matrices and log-determinants with cheap gradients, and the choice of an eigensolver for dense matrices.

Sparse matrices and graphs in several components: `prodsc.core.graph.eigen`.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.linalg
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from prodsc.random import generator
from prodsc.types import Rows, Scalar, Square


@dataclass(frozen=True)
class EigenLimits:
    """Where one eigensolver becomes faster than another."""

    full_below: int = 256  # rows up to which a full decomposition is faster than anything else
    lanczos_share: float = 1 / 20  # of all eigenvectors; for more, Lanczos needs too large a basis and LAPACK wins
    subset_share: float = 1 / 3  # of all eigenvectors; for more, LAPACK finds all of them sooner
    lanczos_restarts: int = 8  # before LAPACK takes over, at about the cost of LAPACK
    refinements: int = 6  # of a given start before the exact solver takes over, at well under its cost
    refined: float = 1e-2  # residual per eigenvector over the mean diagonal; eigenvalues err by its square


EIGEN_LIMITS = EigenLimits()


def gram(Y: Rows) -> Square:
    """S = YY', entries in [-1, 1] for unit rows.

    Parameters
    ----------
    Y : Tensor of shape (n, d)

    Returns
    -------
    Tensor of shape (n, n)
    """
    return _Gram.apply(Y)


def half_logdet(M: Square) -> Scalar:
    """1/2 logdet(M), from the diagonal of the Cholesky factor: half the cost of LU.

    Parameters
    ----------
    M : Tensor of shape (n, n)
        Symmetric, positive definite.

    Returns
    -------
    Tensor, a scalar
    """
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
    """dM = M^-1 / 2, from the factor of the forward pass; the general rule for Cholesky takes several solves."""

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


def smallest_eigenvectors(
    L: Square, k: int, start: Tensor | None = None, limits: EigenLimits = EIGEN_LIMITS
) -> tuple[Tensor, Tensor]:
    """The smallest eigenvalues of a symmetric matrix and their eigenvectors.

    Parameters
    ----------
    L : Tensor of shape (n, n)
        Symmetric.
    k : int
        Number of eigenvectors, at most n of them.
    start : Tensor of shape (n, k), optional
        Nearly the eigenvectors, such as those of the last training step. They are refined to within `limits.refined`;
        if that takes too long, the exact solver runs instead. By Ky Fan the sum of the refined eigenvalues is never
        below the exact one.
    limits : EigenLimits
        Where one solver becomes faster than another.

    Returns
    -------
    values : Tensor of shape (min(k, n),)
        Ascending.
    vectors : Tensor of shape (n, min(k, n))
        Eigenvectors as columns.
    """
    n = len(L)
    k = min(k, n)
    if start is not None and n > limits.full_below and 3 * k < n:
        refined = _lobpcg(L, start, limits)
        if refined is not None:
            return refined
    if L.device.type != "cpu" or n <= limits.full_below:
        return _full(L, k)
    if k <= n * limits.lanczos_share:
        pairs = _lanczos(L, k, limits.lanczos_restarts)
        if pairs is not None:
            return pairs
    return _lapack(L, k, limits)


def largest_eigenvectors(W: Square, k: int) -> tuple[Tensor, Tensor]:
    """The k largest eigenvalues of a symmetric matrix, descending, and their eigenvectors as columns.

    Parameters
    ----------
    W : Tensor of shape (n, n)
        Symmetric.
    k : int
        Number of eigenvectors, at most n of them.

    Returns
    -------
    values : Tensor of shape (min(k, n),)
    vectors : Tensor of shape (n, min(k, n))
    """
    values, vectors = smallest_eigenvectors(-W, k)
    return -values, vectors


def singular_vectors(M: Square, k: int) -> tuple[Tensor, Tensor]:
    """The k largest singular values of a symmetric matrix, descending, and their vectors.

    These are its eigenvectors, and its eigenvalues without their signs.

    Parameters
    ----------
    M : Tensor of shape (n, n)
        Symmetric.
    k : int
        Number of singular values.

    Returns
    -------
    values : Tensor of shape (k,)
    vectors : Tensor of shape (n, k)
    """
    pairs = None
    if M.device.type == "cpu" and len(M) > EIGEN_LIMITS.full_below and k <= len(M) * EIGEN_LIMITS.lanczos_share:
        pairs = _lanczos(M, k, EIGEN_LIMITS.lanczos_restarts, "LM")
    values, vectors = pairs if pairs is not None else _full(M, len(M))
    order = values.abs().argsort(descending=True)[:k]
    return values[order].abs(), vectors[:, order]


def arpack(
    operator: scipy.sparse.linalg.LinearOperator | scipy.sparse.sparray, k: int, which: str, **options: Any
) -> tuple[np.ndarray, np.ndarray] | None:
    """Eigenvalues, ascending, and eigenvectors by ARPACK from a fixed start, or None if it did not converge.

    A graph nearly in several components has nearly equal eigenvalues, on which ARPACK can stall.

    Parameters
    ----------
    operator : sparse array or LinearOperator
        Symmetric.
    k : int
        Number of eigenvectors, well below the number of rows.
    which : {"LA", "SA", "LM"}
        Largest, smallest, or largest by absolute value.
    **options
        `tol`, `maxiter` and `ncv` of `scipy.sparse.linalg.eigsh`.

    Returns
    -------
    tuple of (values, vectors), or None
    """
    # A fixed start keeps fits repeatable. Not the constant vector: that is an eigenvector of every Laplacian.
    start = generator(0).standard_normal(operator.shape[0]).astype(operator.dtype)
    try:
        values, vectors = scipy.sparse.linalg.eigsh(operator, k=k, which=which, v0=start, **options)
    except scipy.sparse.linalg.ArpackError:  # not converged, among others
        return None
    order = np.argsort(values)
    return values[order], np.ascontiguousarray(vectors[:, order])


def _lobpcg(L: Square, start: Tensor, limits: EigenLimits) -> tuple[Tensor, Tensor] | None:
    """LOBPCG: Rayleigh-Ritz over [U, residual / diag(L), last move], or None when it has not converged."""
    diagonal = L.diagonal().abs()
    size = diagonal.mean()
    U = LU = moved = start[:, :0]
    trial = start
    for _ in range(limits.refinements + 1):
        trial = _orthonormal_to(U, trial)
        span, image = torch.cat([U, trial], 1), torch.cat([LU, L @ trial], 1)
        values, Q = torch.linalg.eigh(span.T @ image)
        values, Q = values[: start.shape[1]], Q[:, : start.shape[1]]
        if U.shape[1]:
            moved = trial @ Q[U.shape[1] :]
        U, LU = span @ Q, image @ Q
        residual = LU - U * values
        if residual.square().sum(0).mean().sqrt() <= limits.refined * size:
            return values, U
        trial = torch.cat([residual / diagonal.clamp_min(1e-3 * size)[:, None], moved], 1)
    return None


def _orthonormal_to(U: Tensor, vectors: Tensor) -> Tensor:
    """An orthonormal basis of the part of `vectors` outside U; twice, because once leaves rounding behind."""
    for _ in range(2):
        vectors = torch.linalg.qr(vectors - U @ (U.T @ vectors)).Q
    return vectors


def _lanczos(L: Square, k: int, restarts: int, which: str = "SA") -> tuple[Tensor, Tensor] | None:
    """ARPACK on a dense matrix, or None if it did not converge."""
    array = L.numpy()

    def multiply(vector: np.ndarray) -> np.ndarray:
        return array @ vector

    operator = scipy.sparse.linalg.LinearOperator(array.shape, matvec=multiply, dtype=array.dtype)
    pairs = arpack(operator, k, which, ncv=min(len(array) - 1, max(2 * k + 1, 40)), maxiter=restarts)
    return None if pairs is None else (torch.from_numpy(pairs[0]), torch.from_numpy(pairs[1]))


def _lapack(L: Square, k: int, limits: EigenLimits) -> tuple[Tensor, Tensor]:
    """A part of the eigenvectors by relatively robust representations, most of them by divide and conquer."""
    n = len(L)
    try:
        if k <= n * limits.subset_share:
            pairs = scipy.linalg.eigh(L.numpy(), subset_by_index=[0, k - 1], driver="evr", check_finite=False)
        else:
            pairs = scipy.linalg.eigh(L.numpy(), driver="evd", check_finite=False)
    except np.linalg.LinAlgError:
        return _full(L, k)
    values, vectors = pairs
    return torch.from_numpy(values[:k]), torch.from_numpy(vectors[:, :k])


def _full(L: Square, k: int) -> tuple[Tensor, Tensor]:
    """By PyTorch, on any device; if it does not converge in float32, in float64."""
    try:
        values, vectors = torch.linalg.eigh(L)
    except torch.linalg.LinAlgError:  # type: ignore[attr-defined]  # documented, but not in __all__
        values, vectors = torch.linalg.eigh(L.double().cpu())
    return values[:k].to(L), vectors[:, :k].to(L)
