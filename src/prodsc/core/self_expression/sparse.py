"""Shared by the sparse solvers: points are expressed a block at a time, so that no dense N x N matrix is made."""

from collections.abc import Callable, Iterable

import scipy.sparse
from torch import Tensor


def blocks(n: int, values_per_point: int, block_bytes: int = 16 * 2**20) -> list[slice]:
    """Consecutive points, as many at a time as `block_bytes` holds of float64 values.

    Parameters
    ----------
    n : int
        Number of points.
    values_per_point : int
        Values of one matrix per point.
    block_bytes : int
        Size of one matrix of a block; malloc reuses buffers below 32 MB.

    Returns
    -------
    list of slice
    """
    size = max(1, block_bytes // (8 * values_per_point))
    return [slice(start, min(start + size, n)) for start in range(0, n, size)]


def sparse_coefficients(solve: Callable[[slice], Tensor], points: Iterable[slice]) -> scipy.sparse.csc_array:
    """C from a solver of blocks of points.

    Parameters
    ----------
    solve : callable
        Returns the coefficients of a block of points, as rows.
    points : iterable of slice
        See `blocks`.

    Returns
    -------
    sparse array of shape (n, n)
        Column j expresses point j.
    """
    rows = [scipy.sparse.csr_array(solve(block).cpu().numpy()) for block in points]
    return scipy.sparse.vstack(rows, format="csr").T
