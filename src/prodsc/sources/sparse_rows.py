"""Rows of a sparse matrix that are made dense when they are needed, a batch at a time."""

from typing import Any

import numpy as np

from prodsc.errors import InputError
from prodsc.sources.stored import StoredRows

DENSE_BYTES = 2**28  # up to here the dense matrix is simply made; a table of a file has the same limit


class SparseRows(StoredRows):
    """A sparse matrix that is indexed like the rows of a file: every access returns dense rows.

    Parameters
    ----------
    matrix : scipy sparse matrix or array
    column_order : ndarray or None
        The order in which its columns appear in a row.
    """

    def __init__(self, matrix: Any, column_order: np.ndarray | None = None):
        self.matrix = matrix.tocsr()
        self.files = []
        self.column_order = column_order
        self.shape = tuple(matrix.shape)
        self.ndim = 2
        self.dtype = matrix.dtype
        self.nbytes = int(np.prod(self.shape, dtype=object)) * self.dtype.itemsize  # of the dense rows
        self.cache = {}

    def reordered(self, order: np.ndarray) -> "SparseRows":
        """The same rows with their columns in another order."""
        return SparseRows(self.matrix, order if self.column_order is None else self.column_order[order])

    def _read(self, runs: list[tuple[int, int]]) -> np.ndarray:
        pieces = [np.arange(start, stop) for start, stop in runs]
        rows = self.matrix[np.concatenate(pieces) if pieces else np.empty(0, np.intp)].toarray()
        return rows if self.column_order is None else rows[:, self.column_order]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise InputError(
            f"X is a sparse matrix of {self.shape[0]:,} x {self.shape[1]:,}, which would take "
            f"{self.nbytes / 2**30:,.1f} GB as an array; this needs all of it: use PRODSC, which reads it in batches, "
            "or reduce its columns first (sklearn.decomposition.TruncatedSVD)."
        )


def sparse_array(matrix: Any, what: str) -> Any:
    """A sparse matrix as an array if that is small, else as rows that become dense when they are read.

    Parameters
    ----------
    matrix : scipy sparse matrix or array
    what : str
        How messages call it.

    Returns
    -------
    ndarray or SparseRows
    """
    if matrix.ndim != 2 or matrix.dtype.kind not in "biuf":
        raise InputError(
            f"{what} is a sparse matrix of type {matrix.dtype} and shape {matrix.shape}; give n x d numbers."
        )
    rows = SparseRows(matrix)
    return matrix.toarray() if rows.nbytes <= DENSE_BYTES else rows
