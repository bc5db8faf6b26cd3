"""What the sparse solvers share: points are expressed a block at a time, so that no N x N matrix is ever made."""

from collections.abc import Callable, Iterable

import scipy.sparse
from torch import Tensor

BLOCK_BYTES = 16 * 2**20  # of one matrix of a block; malloc keeps buffers below 32 MB for the next block


def blocks(n: int, values_per_point: int) -> list[slice]:
    """Consecutive points, as many at a time as BLOCK_BYTES holds of float64 values."""
    size = max(1, BLOCK_BYTES // (8 * values_per_point))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def sparse_coefficients(solve: Callable[[slice], Tensor], points: Iterable[slice]) -> scipy.sparse.csc_array:
    """C, N x N, from a solver that gives the coefficients of a block of points as rows; column j expresses point j."""
    rows = [scipy.sparse.csr_array(solve(block).cpu().numpy()) for block in points]
    return scipy.sparse.vstack(rows, format="csr").T
