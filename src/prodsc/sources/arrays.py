"""Arrays and column names of what is in memory: NumPy arrays, tensors, data frames, nested lists,
memory maps."""

import sys
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from prodsc.errors import InputError, NotNumbersError, reason_of
from prodsc.sources.sparse_rows import sparse_array
from prodsc.sources.stored import StoredRows, on_disk

FEATURE_NAMES = ("X", "x", "features", "data", "embeddings")  # the first that a file has is X
LABEL_NAMES = ("y", "ys", "labels", "label", "gnd", "Y", "target", "targets")


def array_of(X: Any, *, what: str = "X") -> Any:
    """Convert an in-memory table to an array of numbers, without a copy where it already is one.

    Parameters
    ----------
    X : array, tensor, memory map, StoredRows, pandas or polars frame, sparse matrix, or nested list
    what : str
        How error messages call X.

    Returns
    -------
    ndarray or StoredRows
        StoredRows when X is a memory map of a whole file, or a large sparse matrix: its rows are read when needed.

    Raises
    ------
    InputError
        If X is complex, or does not hold numbers.
    """
    if isinstance(X, (np.memmap, StoredRows)):
        X = on_disk(X)
    if _is_tensor(X):
        X = X.detach().cpu()
        return (X.float() if str(X.dtype) == "torch.bfloat16" else X).numpy()
    if _is_sparse(X):
        return sparse_array(X, what)
    array: Any = X if isinstance(X, StoredRows) else _in_memory_array(X, what)
    if array.dtype.kind in "OUS":
        array = _numbers(array, what)
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {what} has type {array.dtype}. Give its real features.")
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} has type {array.dtype}; prodsc takes numbers. Convert the columns first.")
    return array


def frame_columns(X: Any, *, what: str = "X") -> list[str] | None:
    """Column names of a data frame, or of any object with `columns`; None if it has none or they are not text."""
    columns = getattr(X, "columns", None)
    if columns is None or len(columns) == 0:
        return None
    n_text = sum(isinstance(name, str) for name in columns)
    if 0 < n_text < len(columns):
        raise InputError(
            f"{what} has column names of which only {n_text} of {len(columns)} are text; rename the columns so that "
            f"all or none are text: {what}.columns = {what}.columns.astype(str)."
        )
    return list(columns) if n_text else None


def matched_columns(array: Any, names: Sequence[str], expected: Sequence[str], *, what: str = "X") -> Any:
    """Put the columns of an array into an expected order, by name.

    Parameters
    ----------
    array : ndarray or StoredRows of shape (n, d)
    names : sequence of str
        Names of its columns.
    expected : sequence of str
        The same names in the order that is wanted.
    what : str
        How error messages call the array.

    Returns
    -------
    ndarray or StoredRows
        The array itself when the order is already right.

    Raises
    ------
    InputError
        If a column is missing, additional, or there more than once.
    """
    names, expected = list(names), list(expected)
    if names == expected:
        return array
    missing = [name for name in expected if name not in set(names)]
    extra = [name for name in names if name not in set(expected)]
    problems = [f"lacks {listed(missing)}"] * bool(missing) + [f"also has {listed(extra)}"] * bool(extra)
    if problems:
        raise InputError(
            f"{what} must have the {len(expected)} columns that the model was fitted on, but it "
            f"{' and '.join(problems)}"
            f"; {'rename or add the columns' if missing else 'drop them (--drop), or name the one with labels'}."
        )
    position = {name: i for i, name in enumerate(names)}
    if len(position) != len(names) or len(set(expected)) != len(expected):
        twice = next(name for name in [*names, *expected] if names.count(name) > 1 or expected.count(name) > 1)
        raise InputError(f"{what} cannot be matched by name, because the column {twice} appears more than once.")
    order = np.array([position[name] for name in expected])
    return array.reordered(order) if isinstance(array, StoredRows) else array[:, order]


def listed(names: Iterable[str], most: int = 6, length: int = 80) -> str:
    """Up to `most` names, each cut to `length` characters, separated by commas, and how many more there are."""
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name if len(name) <= length else f"{name[:length]}..." for name in names[:most]) + more


def _in_memory_array(X: Any, what: str) -> np.ndarray:
    if isinstance(X, (dict, set, frozenset)):
        kind = type(X).__name__
        raise InputError(
            f"{what} is a {kind}; prodsc takes rows: give an array, a list of rows, or pandas.DataFrame({what})."
        )
    if isinstance(X, np.ma.MaskedArray):
        return unmasked(X, what)
    if hasattr(X, "to_numpy"):
        array = X.to_numpy()
        if array.dtype.kind == "O" and hasattr(X, "isna"):  # pandas: its own missing value is no float
            array[np.asarray(X.isna())] = np.nan
        return array
    try:
        return np.asanyarray(X)
    except ValueError as error:
        raise InputError(
            f"{what} cannot be made an array ({reason_of(error)}); give rows that all have the same length."
        ) from error


def unmasked(array: np.ma.MaskedArray, what: str) -> np.ndarray:
    """The values of a masked array.

    Parameters
    ----------
    array : numpy.ma.MaskedArray
    what : str
        How error messages call it.

    Returns
    -------
    ndarray

    Raises
    ------
    InputError
        If a value is masked: what lies below a mask means nothing.
    """
    if n_masked := int(np.ma.count_masked(array)):
        raise InputError(
            f"{what} is a masked array with {n_masked} masked {'value' if n_masked == 1 else 'values'}; fill them with "
            f"{what}.filled(value), or drop those rows."
        )
    return np.asarray(array.data)


def _numbers(array: np.ndarray, what: str) -> np.ndarray:
    try:
        return array.astype(np.float64)
    except ValueError as error:
        raise InputError(
            f"{what} holds text ({error}); prodsc takes numbers. Encode those columns, or say what they are: "
            f"prodsc.open_source({what}, id=..., text=..., drop=...)."
        ) from error
    except (TypeError, OverflowError) as error:
        raise NotNumbersError(
            f"{what} holds values that are not numbers, such as dates or lists ({reason_of(error)}); prodsc takes "
            "numbers. Convert or drop those columns."
        ) from error


def _is_tensor(X: Any) -> bool:
    """Whether X is a tensor of torch; torch need not be imported to know that it is not."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(X, torch.Tensor)


def _is_sparse(X: Any) -> bool:
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and sparse.issparse(X)
