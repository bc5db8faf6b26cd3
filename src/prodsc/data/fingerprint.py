"""A short name for the content of an array, so that a resumed run can tell whether it sees the same data."""

import hashlib

import numpy as np

from prodsc.errors import InputError

BLOCK_BYTES = 2**24


def fingerprint(X: np.ndarray) -> str:
    """sha256 (hex) of shape, dtype and content; the layout in memory does not matter.

    Reads a block of rows at a time, so a memory map is never held in memory whole.
    """
    X = np.asarray(X)
    if X.dtype.hasobject:
        raise InputError(f"X is of type {X.dtype}; only arrays of numbers have a fingerprint: convert it first.")
    digest = hashlib.sha256(f"{X.shape} {X.dtype.str}\n".encode())
    rows = X.reshape(1) if X.ndim == 0 else X
    step = max(1, BLOCK_BYTES * len(rows) // max(1, rows.nbytes))
    for start in range(0, len(rows), step):
        block = np.ascontiguousarray(rows[start : start + step])  # copies only what is not already contiguous
        digest.update(block.reshape(-1).view(np.uint8).data)
    return digest.hexdigest()
