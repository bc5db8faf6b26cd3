"""Parquet files, opened so that a small file cannot fill the memory.

A column may be one long text a million times, which a file stores once. Text is therefore read as codes of a
dictionary, and counted before it is written out.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

from prodsc.errors import InputError
from prodsc.sources.arrow import pa
from prodsc.sources.contents import check_text
from prodsc.sources.limits import LIMITS, check_unpacked

READ_FOOTER = """
import sys, pyarrow.parquet
of_file = pyarrow.parquet.read_metadata(sys.argv[1])
for i in range(of_file.num_row_groups):
    for j in range(of_file.num_columns):
        of_file.row_group(i).column(j).num_values
"""


def parquet_file(path: Path) -> pa.parquet.ParquetFile:
    """A Parquet file whose columns of text are read as dictionaries.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    ParquetFile
        A context manager, which closes the file.
    """
    facts = path.stat()
    _check_footer(path.resolve(), facts.st_size, facts.st_mtime_ns)
    metadata = pa.parquet.read_metadata(path)
    columns = [metadata.schema.column(i) for i in range(metadata.num_columns)]
    texts = [each.path for each in columns if each.physical_type == "BYTE_ARRAY" and "DECIMAL" not in _kind(each)]
    # Without a buffer size pyarrow reads whole row groups; with pre_buffer it keeps all that it has read.
    return pa.parquet.ParquetFile(path, read_dictionary=texts, buffer_size=2**20, pre_buffer=False)


@lru_cache(maxsize=4096)
def _check_footer(path: Path, size: int, modified: int) -> None:
    """Read what a file says of its columns in a process of its own: pyarrow ends the process if it is damaged.

    The result is kept for a file of this size and time.
    """
    command = [sys.executable, "-P", "-c", READ_FOOTER, str(path)]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(command, capture_output=True, env=environment, timeout=LIMITS.patience(path), check=False)
        crashed = done.returncode < 0  # other errors are raised again, and told, by the reader itself
    except subprocess.TimeoutExpired:
        crashed = True
    if crashed:
        raise InputError(
            f"{path} cannot be read as .parquet (what it says of its columns is damaged); copy or write it again."
        )


def _kind(column: Any) -> str:
    return f"{column.logical_type.type} {column.converted_type}"


def read_batches(file: pa.parquet.ParquetFile, names: Sequence[str], rows: int) -> Iterator[pa.RecordBatch]:
    """Some columns of a file, some rows at a time; the others are not decoded.

    Parameters
    ----------
    file : ParquetFile
    names : sequence of str
        The columns, in the order in which they are wanted.
    rows : int
        Most rows of a batch.

    Yields
    ------
    RecordBatch
    """
    for batch in file.iter_batches(batch_size=rows, columns=[*names]):
        yield batch.select([*names])


def read_column(file: pa.parquet.ParquetFile, name: str, path: Path) -> pa.ChunkedArray:
    """One column of a file; what it declares is checked first.

    Parameters
    ----------
    file : ParquetFile
    name : str
        The column.
    path : Path
        The file, for error messages.

    Returns
    -------
    ChunkedArray
    """
    declared_values(file, name, path)
    return file.read(columns=[name]).column(name)


def declared_values(file: pa.parquet.ParquetFile, name: str, path: Path) -> int:
    """How many numbers or texts a column has, as the file declares it; an InputError if they are too large.

    Parameters
    ----------
    file : ParquetFile
    name : str
        The column; each row may have a vector of numbers.
    path : Path
        The file, for error messages.

    Returns
    -------
    int
    """
    groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
    counts = {
        j: sum(group.column(j).num_values for group in groups)
        for j in range(file.metadata.num_columns)
        if file.schema.column(j).path.split(".")[0] == name.split(".")[0]
    }
    n_bytes = sum(n * _least_bytes(file.schema.column(j)) for j, n in counts.items())
    check_unpacked(n_bytes, path, f"the column '{name}'")
    return max(counts.values(), default=0)


def _least_bytes(column: Any) -> int:
    """Bytes that a value of a column takes in memory at least; text is a code, and an INT32 may be an int8."""
    known = {"DOUBLE": 8, "INT64": 8, "FLOAT": 4, "BYTE_ARRAY": 4, "FIXED_LEN_BYTE_ARRAY": column.length}
    return int(known.get(column.physical_type) or 1)


def is_text(kind: pa.DataType) -> bool:
    """Whether a column holds text, or codes of a dictionary of text."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def text_values(column: pa.ChunkedArray, path: Path, what: str) -> list[Any]:
    """A column of text as a list; its size is checked first.

    Parameters
    ----------
    column : ChunkedArray
        Of text, or of a dictionary of text.
    path : Path
        The file, for error messages.
    what : str
        How error messages call the column.

    Returns
    -------
    list of str, bytes or None
    """
    longest = max((_longest(chunk) for chunk in column.chunks), default=0)
    check_text(len(column), longest, path, what)
    return column.to_pylist()


def _longest(chunk: Any) -> int:
    values = chunk.dictionary if pa.types.is_dictionary(chunk.type) else chunk
    return int(pa.compute.max(pa.compute.binary_length(values)).as_py() or 0)
