"""L3 of the paper: the regulariser that makes the affinity graph have k components."""

import torch
from torch import Tensor, nn

from prodsc.core.linalg import smallest_eigenvectors
from prodsc.types import Affinity, Scalar, Square


def laplacian(A: Affinity) -> Square:
    """L = Diag(A1) - A.

    Parameters
    ----------
    A : Tensor of shape (n, n)
        Affinity: symmetric, not negative.

    Returns
    -------
    Tensor of shape (n, n)
    """
    L = -A
    L.diagonal().add_(A.sum(1))
    return L


def block_diagonal(A: Affinity, k: int) -> Scalar:
    """(1/n) * sum of the k smallest eigenvalues of L = Diag(A1) - A; zero iff A has at least k components.

    With k >= n that is all of them, the trace of L.

    Parameters
    ----------
    A : Tensor of shape (n, n)
        Affinity: symmetric, not negative.
    k : int
        Number of components.

    Returns
    -------
    Tensor, a scalar
    """
    _, U = smallest_eigenvectors(laplacian(A.detach()), k)
    return energy(A, U)  # Ky Fan: U attains the minimum, so no gradient through the solver


def energy(A: Affinity, U: Tensor) -> Scalar:
    """tr(U'LU) / n; for any orthonormal U at least (1/n) times the k smallest eigenvalues of L = Diag(A1) - A.

    As sum_ij a_ij (|u_i|^2 - <u_i, u_j>) / n it is linear in A, so that forward and backward need the one product UU'.

    Parameters
    ----------
    A : Tensor of shape (n, n)
        Affinity: symmetric, not negative.
    U : Tensor of shape (n, k)
        Orthonormal columns.

    Returns
    -------
    Tensor, a scalar
    """
    weights = U.square().sum(1, keepdim=True) - U @ U.T
    return (A * weights).sum() / len(A)


class RememberedBlockDiagonal(nn.Module):
    """`block_diagonal` that starts each eigenproblem from the eigenvectors its rows had when they were last seen.

    The graph of a batch changes little between steps, and the eigenvectors of a batch are near those of all rows
    restricted to it. The memory has one row per row of the data, rotated to agree with what was there before. It is a
    buffer, so that a checkpoint saves it.

    Parameters
    ----------
    n_rows : int
        Number of rows of the data.
    k : int
        Number of eigenvectors.
    exact_every : int
        Every so many batches the eigenproblem is solved exactly: a refined subspace could miss an eigenvalue that has
        just become small.
    """

    memory: Tensor
    calls: Tensor

    def __init__(self, n_rows: int, k: int, exact_every: int = 50):
        super().__init__()
        self.exact_every = exact_every
        self.register_buffer("memory", torch.zeros(n_rows, k))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, A: Affinity, rows: Tensor) -> Scalar:
        """The value for the affinity of these rows of the data."""
        L = laplacian(A.detach())
        old = self.memory[rows].to(L)
        known = int(self.calls) % self.exact_every > 0 and bool(old.any(1).double().mean() > 0.7)
        _, U = smallest_eigenvectors(L, old.shape[1], start=old if known else None)
        if U.shape == old.shape:  # a batch smaller than k has fewer eigenvectors: nothing to remember
            left, _, right = torch.linalg.svd(U.T @ old)
            self.memory[rows] = (U @ (left @ right)).to(self.memory)
        self.calls += 1
        return energy(A, U)
