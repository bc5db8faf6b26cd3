"""What a file holds: arrays by name, none of them read yet."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prodsc.errors import InputError
from prodsc.progress import ProgressFunction
from prodsc.sources.limits import check_size

NO_PICKLE = "a pickle is never loaded, as it could run code"

ArrayLoaders = Mapping[str, Callable[[], Any]]  # by name, each read when called


# X and its column names, given the columns to exclude, progress, and the bytes from which X is kept on disk
MatrixReader = Callable[[Collection[str], ProgressFunction | None, int], tuple[Any, list[str] | None]]


@dataclass(frozen=True)
class FileContents:
    """What a file holds; nothing large is read until it is asked for."""

    arrays: ArrayLoaders  # a file of one nameless array has the name ""
    matrix: MatrixReader | None = None  # None if X is one of the arrays
    columns: Callable[[Collection[str]], list[str] | None] | None = None  # names of the columns of that X, without X
    notes: Callable[[Collection[str]], list[str]] | None = None  # what the user should know, given excluded columns
    is_table: bool = False  # whether the arrays are columns, of which X is made
    coordinates: Collection[str] = ()  # columns that are features although labels often have their name


def dense(matrix: Any, path: Path) -> np.ndarray:
    """A sparse matrix of a file as an array. Its indices are checked first: SciPy would write outside the array.

    Parameters
    ----------
    matrix : scipy sparse matrix or array
    path : Path
        The file, for error messages.

    Returns
    -------
    ndarray
    """
    if matrix.dtype.kind not in "biufc":
        raise InputError(f"{path} holds a sparse matrix of type {matrix.dtype}, not numbers; save it as numbers.")
    if hasattr(matrix, "check_format"):  # the other formats check their indices when they are made
        matrix.check_format(full_check=True)
    check_size(n_bytes(matrix.shape, matrix.dtype), path, "the dense rows of its sparse matrix")
    return matrix.toarray()


def n_bytes(shape: tuple[int, ...], dtype: np.dtype) -> int:
    """Bytes of an array of this shape, without overflow."""
    total = dtype.itemsize
    for length in shape:
        total *= int(length)
    return total


def check_text(n: int, longest: int, path: Path, what: str) -> None:
    """Raise an InputError if n texts are too large as an array, in which each takes as much as the longest.

    Parameters
    ----------
    n, longest : int
        Number of texts, and characters of the longest.
    path : Path
        Their file.
    what : str
        How the message calls them.
    """
    check_size(n * longest * np.dtype("U1").itemsize, path, what)


def utf8_text(path: Path, way_out: str) -> str:
    """The text of a file.

    Parameters
    ----------
    path : Path
        The file.
    way_out : str
        What to do if it is not in UTF-8: the end of the error message.

    Returns
    -------
    str
    """
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8; {way_out}.") from error
