"""L3 of the paper: the regulariser that asks the affinity graph for k components."""

import torch
from torch import Tensor, nn

from prodsc.core.linalg import smallest_eigenvectors
from prodsc.types import Affinity, Scalar, Square

EXACT_EVERY = 50  # batches: a refined subspace could miss an eigenvector that has only now become small


def laplacian(A: Affinity) -> Square:
    """L = Diag(A1) - A."""
    L = -A
    L.diagonal().add_(A.sum(1))
    return L


def block_diagonal(A: Affinity, k: int) -> Scalar:
    """(1/n) * sum of the k smallest eigenvalues of L = Diag(A1) - A; zero iff A has at least k components.

    With k >= n that is all of them, the trace of L.
    """
    _, U = smallest_eigenvectors(laplacian(A.detach()), k)
    return energy(A, U)  # Ky Fan: U attains the minimum, so no gradient through the solver


def energy(A: Affinity, U: Tensor) -> Scalar:
    """tr(U'LU) / n; for any orthonormal U at least (1/n) times the k smallest eigenvalues of L = Diag(A1) - A.

    As sum_ij a_ij (|u_i|^2 - <u_i, u_j>) / n it is linear in A, so that forward and backward need the one product UU'.
    """
    weights = U.square().sum(1, keepdim=True) - U @ U.T
    return (A * weights).sum() / len(A)


class RememberedBlockDiagonal(nn.Module):
    """`block_diagonal` that starts each eigenproblem from the eigenvectors its rows had when they were last seen.

    The graph of a batch changes little between steps, and the eigenvectors of a batch are near those of all rows
    restricted to it. What is remembered is one row per data row, rotated to agree with what was there before. A module,
    so that a checkpoint of the network it is part of has the memory too.
    """

    memory: Tensor
    calls: Tensor

    def __init__(self, n_rows: int, k: int):
        super().__init__()
        self.register_buffer("memory", torch.zeros(n_rows, k))
        self.register_buffer("calls", torch.zeros((), dtype=torch.long))

    def forward(self, A: Affinity, rows: Tensor) -> Scalar:
        """The term for the graph of these data rows."""
        L = laplacian(A.detach())
        old = self.memory[rows].to(L)
        known = int(self.calls) % EXACT_EVERY > 0 and bool(old.any(1).double().mean() > 0.7)
        _, U = smallest_eigenvectors(L, old.shape[1], start=old if known else None)
        if U.shape == old.shape:  # a batch smaller than k has fewer eigenvectors: nothing to remember
            left, _, right = torch.linalg.svd(U.T @ old)
            self.memory[rows] = (U @ (left @ right)).to(self.memory)
        self.calls += 1
        return energy(A, U)
