"""Extremal eigenvectors of symmetric matrices: the one place that chooses an eigensolver."""

import numpy as np
import scipy.linalg
import scipy.sparse.linalg
import torch
from torch import Tensor

from prodsc.types import Square

FULL_BELOW = 256  # a full decomposition of a small matrix is faster than anything clever
LANCZOS_SHARE = 1 / 20  # of all eigenvectors; beyond it Lanczos needs a basis so large that LAPACK wins
LANCZOS_RESTARTS = 8  # allowed before LAPACK takes over, at about the cost LAPACK would have had
REFINEMENTS = 6  # allowed from a given start before the exact solver takes over, at well under its cost
REFINED = 1e-2  # residual per eigenvector over the mean diagonal; the error of the eigenvalues is its square


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
    if L.device.type != "cpu" or n <= FULL_BELOW or k > n // 2:
        values, vectors = torch.linalg.eigh(L)
        return values[:k], vectors[:, :k]
    if k <= n * LANCZOS_SHARE:
        found = _lanczos(L, k)
        if found is not None:
            return found
    return _lapack_subset(L, k)


def largest_eigenvectors(W: Square, k: int) -> tuple[Tensor, Tensor]:
    """The k largest eigenvalues of a symmetric matrix, descending, and their eigenvectors as columns."""
    values, vectors = smallest_eigenvectors(-W, k)
    return -values, vectors


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


def _lanczos(L: Square, k: int) -> tuple[Tensor, Tensor] | None:
    """ARPACK on L, or None when it did not converge: clustered eigenvalues can make it stall."""
    array = L.numpy()

    def multiply(vector: np.ndarray) -> np.ndarray:
        return array @ vector

    operator = scipy.sparse.linalg.LinearOperator(array.shape, matvec=multiply, dtype=array.dtype)
    # A fixed start keeps fits repeatable. Not the constant vector: that is an eigenvector of every Laplacian.
    start = np.random.default_rng(0).standard_normal(len(array)).astype(array.dtype)
    try:
        values, vectors = scipy.sparse.linalg.eigsh(
            operator, k=k, which="SA", v0=start, ncv=min(len(array) - 1, max(2 * k + 1, 40)), maxiter=LANCZOS_RESTARTS
        )
    except (scipy.sparse.linalg.ArpackError, scipy.sparse.linalg.ArpackNoConvergence):
        return None
    order = np.argsort(values)
    return torch.from_numpy(values[order].copy()), torch.from_numpy(np.ascontiguousarray(vectors[:, order]))


def _lapack_subset(L: Square, k: int) -> tuple[Tensor, Tensor]:
    values, vectors = scipy.linalg.eigh(L.numpy(), subset_by_index=[0, k - 1], driver="evr", check_finite=False)
    return torch.from_numpy(values), torch.from_numpy(np.ascontiguousarray(vectors))
