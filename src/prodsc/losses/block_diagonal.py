"""L3 of the paper: the regulariser that asks the affinity graph for k components."""

from prodsc.linalg import smallest_eigenvectors
from prodsc.types import Affinity, Scalar, Square


def laplacian(A: Affinity) -> Square:
    """L = Diag(A1) - A."""
    return A.sum(1).diag() - A


def block_diagonal(A: Affinity, k: int) -> Scalar:
    """(1/n) * sum of the k smallest eigenvalues of L = Diag(A1) - A; zero iff A has at least k components.

    With k >= n that is all of them, the trace of L.
    """
    L = laplacian(A)
    _, U = smallest_eigenvectors(L.detach(), k)  # Ky Fan: U attains the minimum, so no gradient through the solver
    return ((L @ U) * U).sum() / len(A)  # tr(U'LU) in O(n^2 k)
