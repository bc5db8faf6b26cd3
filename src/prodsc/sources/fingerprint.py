"""A digest of the content of an array, by which a resumed run recognises its data."""

import hashlib
from collections.abc import Iterable
from typing import Any

import numpy as np

from prodsc.errors import InputError
from prodsc.sources.stored import StoredRows

BLOCK_BYTES = 2**24


def fingerprint(X: Any) -> str:
    """Digest of an array; its layout in memory does not matter.

    Rows are digested in blocks, so that a file need not fit in memory and ranks can share the work.

    Parameters
    ----------
    X : ndarray or StoredRows

    Returns
    -------
    str
        sha256, in hex, of the shape, the data type and the sha256 of each block.

    Raises
    ------
    InputError
        If X is an array of Python objects.
    """
    if isinstance(X, StoredRows) and "fingerprint" in X.cache:
        return X.cache["fingerprint"]
    array = X if isinstance(X, StoredRows) else np.asarray(X)
    if array.dtype.hasobject:
        raise InputError(f"X is of type {array.dtype}; only arrays of numbers have a fingerprint: convert it first.")
    rows = array.reshape(1) if array.ndim == 0 else array  # type: ignore[union-attr]
    step = block_rows(rows)
    return combined(array, (block_digest(rows[start : start + step]) for start in range(0, len(rows), step)))


def block_rows(X: Any) -> int:
    """Number of rows in a block."""
    return max(1, BLOCK_BYTES * len(X) // max(1, X.nbytes))


def block_digest(block: np.ndarray) -> bytes:
    """sha256 of a block of rows."""
    contiguous = np.ascontiguousarray(block)  # copies only what is not already contiguous
    return hashlib.sha256(contiguous.reshape(-1).view(np.uint8).data).digest()


def combined(X: Any, digests: Iterable[bytes]) -> str:
    """The fingerprint from the digests of all blocks, in order."""
    return hashlib.sha256(f"{X.shape} {X.dtype.str}\n".encode() + b"".join(digests)).hexdigest()
