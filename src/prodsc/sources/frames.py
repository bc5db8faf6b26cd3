"""Tables in memory of other libraries: as Arrow tables, which are read like the tables of files.

pandas, polars, pyarrow, DuckDB, Daft, Hugging Face datasets, Lance; single cells (AnnData).
"""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from pathlib import Path
from typing import Any

import numpy as np

from prodsc.errors import InputError, reason_of
from prodsc.sources.arrow import pa
from prodsc.sources.tables import ColumnTable

IN_MEMORY = Path("the table")  # how messages call a table that has no path


def is_plain_frame(X: Any) -> bool:
    """Is it a frame of pandas or polars that has only columns of single values, or no frame at all?

    Such a frame is an array at once, and its columns must be in the order of the fit, as scikit-learn asks.
    """
    dtypes = getattr(X, "dtypes", None)
    if dtypes is None or not (hasattr(X, "iloc") or type(X).__module__.startswith("polars.")):
        return not is_table(X)
    kinds = list(dtypes.values()) if isinstance(dtypes, dict) else list(dtypes)
    if any(str(kind).startswith(("List(", "Array(", "list<", "fixed_size_list<")) for kind in kinds):
        return False
    objects = [i for i, kind in enumerate(kinds) if str(kind) == "object"]
    return not any(_holds_vectors(X.iloc[:, i]) for i in objects)


def _holds_vectors(column: Any) -> bool:
    """Does a column of Python objects hold lists or arrays? The first that is not missing decides."""
    first = next((value for value in column if value is not None and not isinstance(value, float)), None)
    return isinstance(first, (list, tuple, np.ndarray))


def is_table(X: Any) -> bool:
    """Can X be read as an Arrow table?"""
    return _reader(X) is not None


def is_cells(X: Any) -> bool:
    """Is X an AnnData object?"""
    return all(hasattr(X, name) for name in ("obs_names", "var_names", "obs", "X"))


def open_table(X: Any) -> ColumnTable:
    """A table in memory as the table of a file.

    Parameters
    ----------
    X : frame of pandas or polars, Arrow table, anything that Arrow can read, or Hugging Face data set

    Returns
    -------
    ColumnTable

    Raises
    ------
    InputError
        If a column mixes types.
    """
    table = arrow_table(X)
    table = table.rename_columns([str(name) for name in table.column_names])
    return ColumnTable(
        IN_MEMORY,
        dict(enumerate(table.schema)),
        len(table),
        lambda columns, rows: table.select([*columns]).to_batches(max_chunksize=rows),
        table.column,
        in_memory=True,
        on_disk=False,
    )


def arrow_table(X: Any) -> Any:
    """A table in memory as an Arrow table; `is_table` says what that is possible for."""
    read = _reader(X)
    assert read is not None
    try:
        return read(X)
    except (pa.ArrowException, TypeError, ValueError) as error:
        reason = reason_of(error)
        raise InputError(f"the table cannot be read as Arrow ({reason}); mend or drop that column.") from error


def _reader(X: Any) -> Callable[[Any], Any] | None:
    """How X becomes an Arrow table; None if it is no table."""
    if hasattr(X, "dtype"):  # an array, or a single column
        return None
    if hasattr(X, "iloc") and hasattr(X, "columns"):  # pandas
        return lambda frame: pa.Table.from_pandas(frame, preserve_index=False)
    if hasattr(X, "with_format"):  # Hugging Face
        return _of_datasets
    if hasattr(X, "__arrow_c_stream__"):  # pyarrow, polars, DuckDB, Daft, ...
        return lambda frame: pa.table(frame)
    for name in ("to_arrow", "to_table"):  # LanceDB, Lance, pyarrow.dataset
        if callable(getattr(X, name, None)):
            return methodcaller(name)
    return None


def _of_datasets(X: Any) -> Any:
    if not hasattr(X, "__len__"):
        raise InputError("X is a data set that is streamed; prodsc needs its rows many times: load it, or take a part.")
    if hasattr(X, "keys"):
        raise InputError(f"X is a dictionary of data sets ({', '.join(X)}); give one of them, such as X['train'].")
    return X.with_format("arrow")[:]
