"""Files of any size as a list of shards, each read on its own and only a block of rows at a time.

A shard is the unit in which many rows are labelled, resumed and given to other processes. Its blocks depend on the
shard alone, so its labels are the same to the last bit wherever and whenever it is labelled.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prodsc.errors import InputError, ProdscError, reason_of, require
from prodsc.memory import is_out_of_memory, memory_left
from prodsc.sources.arrays import LABEL_NAMES
from prodsc.sources.arrow import pa
from prodsc.sources.formats import existing, opened, shard_paths
from prodsc.sources.parquet import parquet_file
from prodsc.sources.stored import StoredFile, StoredRows
from prodsc.sources.tables import is_vector

SHARD_ROWS = 2**20  # a million rows are about a second of labelling, and little to lose when a process is killed
BLOCK_ROWS = 2**16  # rows that are labelled together
BLOCK_BYTES = 2**26  # of a block, 64 MB: the memory of a process does not depend on the width of the rows either
LANCE = ".lance"


@dataclass(frozen=True)
class Shard:
    """Some rows of a file.

    Parameters
    ----------
    path : str
        The .npy or .parquet file, Lance data set, or the address of a .parquet file such as s3://bucket/a.parquet.
    start, stop : int
        Its rows from `start` to before `stop`.
    version : str
        Changes when the file changes.
    """

    path: str
    start: int
    stop: int
    version: str

    def __len__(self) -> int:
        return self.stop - self.start


def is_sharded(source: Any) -> bool:
    """Whether `list_shards` takes a source: the path of a file or folder, or the address of one."""
    if not isinstance(source, (str, PathLike)):
        return False
    if is_address(source):
        return True
    path = Path(source).expanduser()
    return path.suffix.lower() in (".npy", ".parquet", LANCE) or (path.is_dir() and bool(shard_paths(path)))


def is_address(source: str | PathLike[str]) -> bool:
    """Whether a source is an address such as s3://bucket/folder, and no path."""
    return "://" in str(source)


def list_shards(source: str | PathLike[str], rows: int = SHARD_ROWS) -> list[Shard]:
    """Cut the rows of a source into shards. Only headers are read.

    Parameters
    ----------
    source : path or address
        A .npy or .parquet file, a folder of such files, a Lance data set, or the address of a .parquet file or of a
        folder of them, as pyarrow opens it (s3://, gs://, file://).
    rows : int
        Rows of a shard. Row groups of a Parquet file stay whole, so that a shard of them may have more.

    Returns
    -------
    list of Shard
        In the order of the rows.
    """
    shards: list[Shard] = []
    for path in _files(source):
        with _readable(path):
            bounds, version = _bounds(path, rows)
        shards += [Shard(path, start, stop, version) for start, stop in pairwise(bounds)]
    if not shards:
        raise InputError(f"{source} has no rows; name a file or folder that has some.")
    return shards


def read_blocks(shard: Shard, columns: Sequence[str] | None = None, exclude: Collection[str] = ()) -> Iterator[Any]:
    """The rows of a shard, a block at a time.

    Parameters
    ----------
    shard : Shard
    columns : sequence of str or None
        Of a table, the columns that are needed, if it has them. If left out, columns of vectors if there are any, else
        all.
    exclude : collection of str
        Columns of vectors that are not needed.

    Yields
    ------
    ndarray or Arrow table
    """
    with _readable(shard.path):
        if shard.path.endswith(".npy"):
            stored = _stored(Path(shard.path))
            step = _block_rows(stored.nbytes / max(1, len(stored)))
            yield from (stored[i : min(i + step, shard.stop)] for i in range(shard.start, shard.stop, step))
        else:
            blocks = _lance_blocks if shard.path.endswith(LANCE) else _parquet_blocks
            yield from blocks(shard, columns, exclude)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    """Errors of the libraries that read files become an InputError of one sentence."""
    try:
        yield
    except (ProdscError, GeneratorExit):
        raise
    except Exception as error:  # a damaged file raises many kinds of errors
        if is_out_of_memory(error):
            raise
        raise InputError(f"{path} cannot be read ({reason_of(error)}); check the path, or write it again.") from error


def _block_rows(bytes_per_row: float) -> int:
    held = min(BLOCK_BYTES, memory_left() / 16)  # a block is there several times
    return int(np.clip(held / max(1.0, bytes_per_row), 1, BLOCK_ROWS))


def _files(source: str | PathLike[str]) -> list[str]:
    """The paths or addresses of the files of a source, in the order of their rows."""
    if is_address(source):
        return _remote_files(str(source))
    path = Path(source).expanduser()
    if path.suffix.lower() == LANCE:
        return [str(path)]
    path = existing(path, folders=True)
    if not path.is_dir():
        return [str(path)]
    paths = [existing(each) for each in shard_paths(path)]
    if len({each.suffix.lower() for each in paths}) > 1:
        raise InputError(f"{path} holds .npy and .parquet files; keep only those of one kind in it.")
    return [str(each) for each in paths if each.suffix.lower() == ".parquet" or each.stem not in LABEL_NAMES]


def _remote_files(address: str) -> list[str]:
    system, path = pa.fs.FileSystem.from_uri(address)
    if system.get_file_info(path).type == pa.fs.FileType.File:
        return [address]
    inside = [each.path for each in system.get_file_info(pa.fs.FileSelector(path)) if each.extension == "parquet"]
    if not inside:
        raise InputError(f"{address} has no .parquet files; name a folder that has some, or one of them.")
    return [f"{address.rstrip('/')}/{Path(each).name}" for each in sorted(inside) if Path(each).name[0] not in "._"]


def _bounds(path: str, rows: int) -> tuple[list[int], str]:
    """Where the shards of a file begin and end, and the version of the file."""
    if path.endswith(LANCE):
        dataset = _lance(path)
        return _every(dataset.count_rows(), rows), str(dataset.version)
    if path.endswith(".npy"):
        return _every(len(_stored(Path(path))), rows), _version(Path(path))
    with _open_parquet(path) as file:
        groups = [file.metadata.row_group(i).num_rows for i in range(file.metadata.num_row_groups)]
    bounds = [0]
    for end in np.cumsum(groups, dtype=int).tolist():
        if len(bounds) > 1 and end - bounds[-2] <= rows:
            bounds[-1] = end
        elif end > bounds[-1]:
            bounds.append(end)
    return bounds, f"{bounds[-1]} rows" if is_address(path) else _version(Path(path))


def _every(n: int, rows: int) -> list[int]:
    return [*range(0, n, rows), n] if n else [0]


def _version(path: Path) -> str:
    status = path.stat()
    return f"{status.st_size} {status.st_mtime_ns}"


def _stored(path: Path) -> StoredRows:
    with opened(path) as contents:
        mapped = contents.arrays[""]()
    file = StoredFile.behind(mapped) if isinstance(mapped, np.memmap) else None
    if file is None:
        raise InputError(
            f"{path} must have rows and columns, stored by rows (it has shape {mapped.shape}); save it with "
            "numpy.save(path, numpy.ascontiguousarray(X))."
        )
    return StoredRows([file])


# ---- tables ----------------------------------------------------------------------------------------------------------


def _needed(schema: Any, columns: Sequence[str] | None, exclude: Collection[str]) -> list[str]:
    """The columns of a table that are read."""
    index = (schema.pandas_metadata or {}).get("index_columns", [])  # row names, not features
    names = [name for name in schema.names if name not in index]
    if columns is not None and set(columns) <= set(names):
        return [*columns]
    vectors = [name for name in names if is_vector(schema.field(name).type) and name not in exclude]
    return vectors or names


def _open_parquet(path: str) -> Any:
    if not is_address(path):
        return parquet_file(Path(path))
    system, inside = pa.fs.FileSystem.from_uri(path)
    return pa.parquet.ParquetFile(system.open_input_file(inside), buffer_size=2**20, pre_buffer=False)


def _parquet_blocks(shard: Shard, columns: Sequence[str] | None, exclude: Collection[str]) -> Iterator[Any]:
    with _open_parquet(shard.path) as file:
        sizes = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        ends = np.cumsum([group.num_rows for group in sizes])
        inside = [i for i, end in enumerate(ends) if shard.start < end <= shard.stop]
        width = sum(sizes[i].total_byte_size for i in inside) / max(1, len(shard))
        step, names = _block_rows(width), _needed(file.schema_arrow, columns, exclude)
        batches = file.iter_batches(batch_size=step, row_groups=inside, columns=names)
        yield from _of_size(batches, step, names)


def _lance(path: str) -> Any:
    return require("lance", extra="lance", caller="a Lance data set").dataset(path)


def _lance_blocks(shard: Shard, columns: Sequence[str] | None, exclude: Collection[str]) -> Iterator[Any]:
    dataset = _lance(shard.path)
    names = _needed(dataset.schema, columns, exclude)
    step = _block_rows(sum(_bytes_of(dataset.schema.field(name).type) for name in names))
    for start in range(shard.start, shard.stop, step):  # one scan of all rows would read ahead without a limit
        limit = min(step, shard.stop - start)
        yield dataset.scanner(columns=names, offset=start, limit=limit, batch_readahead=1).to_table()


def _bytes_of(kind: Any) -> int:
    """Bytes that a value of a column takes; 8 where its type does not say."""
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size) * _bytes_of(kind.value_type)
    return int(kind.bit_width) // 8 if pa.types.is_primitive(kind) else 8


def _of_size(batches: Iterator[Any], rows: int, names: list[str]) -> Iterator[Any]:
    """Batches as tables of so many rows: a reader may give smaller ones at the end of a page or row group."""
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        while sum(map(len, held)) >= rows:
            table = pa.Table.from_batches(held)
            yield table.slice(0, rows).select(names)
            held = table.slice(rows).to_batches()
    if sum(map(len, held)):
        yield pa.Table.from_batches(held).select(names)
