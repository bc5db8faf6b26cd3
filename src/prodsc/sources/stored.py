"""Rows that stay in files and are read when they are needed, so that data may be larger than memory.

Rows are read with `pread` and not through a memory map. Pages of a map count as memory of the process until the system
reclaims them, and each access reads the pages around a row as well.
"""

import os
import shutil
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from mmap import mmap
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from prodsc import files
from prodsc.errors import InputError
from prodsc.progress import ProgressFunction

Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True)
class StoredFile:
    """One file of rows of equal size, one after the other, which begin at byte `offset`."""

    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def behind(cls, mapped: np.memmap) -> "StoredFile | None":
        """The file of a memory map; None if the map is a view, is not stored by rows, or may differ from its file."""
        whole = isinstance(mapped.base, mmap) and mapped.flags.c_contiguous and mapped.mode in ("r", "r+")
        if not whole or mapped.ndim < 2 or not isinstance(mapped.filename, (str, Path)):
            return None
        return cls(Path(mapped.filename), mapped.offset, mapped.shape, mapped.dtype)


class StoredRows:
    """Rows of one or more files, indexed like an array. Every access reads the files and returns a copy.

    Parameters
    ----------
    files : sequence of StoredFile
        Their rows, one file after the other, are the rows. All must have the same row shape and data type.
    column_order : ndarray or None
        The order in which the stored columns appear in a row.
    """

    def __init__(self, files: Sequence[StoredFile], column_order: np.ndarray | None = None):
        first = files[0]
        for file in files:
            if file.shape[1:] != first.shape[1:] or file.dtype != first.dtype:
                raise InputError(
                    f"{file.path} has rows of shape {file.shape[1:]}, {file.dtype}, and {first.path} of "
                    f"{first.shape[1:]}, {first.dtype}; the files of a folder must be alike: convert one of them."
                )
        self.files = list(files)
        self.column_order = column_order
        self._starts = [0, *accumulate(file.shape[0] for file in files)]
        self.shape = (self._starts[-1], *first.shape[1:])
        self.ndim = len(self.shape)
        stored = first.dtype  # torch has neither long doubles nor foreign byte orders
        self.dtype = np.dtype(np.float64) if stored.itemsize > 8 else stored.newbyteorder("=")
        self.nbytes = int(np.prod(self.shape)) * self.dtype.itemsize
        self.cache: dict[str, Any] = {}  # results of a pass over all rows, which is worth making only once

    def reordered(self, order: np.ndarray) -> "StoredRows":
        """The same rows with their columns in another order."""
        if self.ndim != 2 or len(order) != self.shape[1]:
            raise InputError(f"rows of shape {self.shape[1:]} cannot be put into an order of {len(order)} columns.")
        return StoredRows(self.files, order if self.column_order is None else self.column_order[order])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> np.ndarray:
        if isinstance(rows, tuple):  # columns of all or some rows
            return self[rows[0]][(slice(None), *rows[1:])]
        if isinstance(rows, slice) and rows.step in (None, 1):
            start, stop, _ = rows.indices(len(self))
            return self._read([(start, max(start, stop))])
        if isinstance(rows, slice):
            rows = np.arange(*rows.indices(len(self)))
        rows = np.asarray(rows)
        if rows.dtype == bool:
            rows = np.flatnonzero(rows)
        if rows.size and not -len(self) <= rows.min() <= rows.max() < len(self):
            raise IndexError(f"row {rows.max() if rows.max() >= len(self) else rows.min()} of {len(self)}")
        flat = np.where(rows < 0, rows + len(self), rows).ravel()
        ends = np.flatnonzero(np.diff(flat) != 1) + 1  # rows that follow each other are one read
        runs = [(int(run[0]), int(run[-1]) + 1) for run in np.split(flat, ends) if len(run)]
        return self._read(runs).reshape(*rows.shape, *self.shape[1:])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All rows, in memory: for what cannot work on a few at a time."""
        return self[:].astype(dtype or self.dtype, copy=False)

    def _read(self, runs: list[tuple[int, int]]) -> np.ndarray:
        """The rows of each run [start, stop), one run after the other."""
        first = self.files[0]
        rows = np.empty((sum(stop - start for start, stop in runs), *self.shape[1:]), first.dtype)
        size = int(np.prod(self.shape[1:])) * first.dtype.itemsize
        buffer = rows.reshape(-1).view(np.uint8).data if rows.size else memoryview(b"")
        pieces: dict[int, list[_Piece]] = {}  # of each file
        done = 0
        for start, stop in runs:
            while start < stop:
                i = bisect_right(self._starts, start) - 1
                end = min(stop, self._starts[i + 1])
                where = self.files[i].offset + (start - self._starts[i]) * size
                pieces.setdefault(i, []).append(_Piece(where, (end - start) * size, done))
                done, start = done + (end - start) * size, end
        for i, wanted in pieces.items():
            _read_into(buffer, self.files[i].path, wanted)
        rows = rows if self.column_order is None else rows[:, self.column_order]
        return rows.astype(self.dtype, copy=False)


@dataclass(frozen=True)
class _Piece:
    """Bytes of a file, and where in the buffer they belong."""

    offset: int
    size: int
    target: int


def _read_into(buffer: memoryview, path: Path, pieces: list[_Piece]) -> None:
    try:
        file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))  # Windows would translate line ends
    except OSError as error:
        raise InputError(f"{path} cannot be opened any more ({error.strerror}); put it back.") from error
    try:
        if len(pieces) > 1 and hasattr(os, "posix_fadvise"):  # announced together, the disk can fetch many at once
            for piece in pieces:
                os.posix_fadvise(file, piece.offset, piece.size, os.POSIX_FADV_WILLNEED)
        for piece in pieces:
            done = 0
            while done < piece.size:
                target = buffer[piece.target + done : piece.target + piece.size]
                n_read = _read_at(file, target, piece.offset + done)
                if not n_read:
                    raise InputError(f"{path} has become shorter than it was; do not change it while it is in use.")
                done += n_read
    finally:
        os.close(file)


def _seek_and_read(file: int, target: memoryview, offset: int) -> int:
    """Read at an offset where `os.preadv` does not exist; the file was opened by this call's thread alone."""
    os.lseek(file, offset, os.SEEK_SET)
    content = os.read(file, len(target))
    target[: len(content)] = content
    return len(content)


def _read_at(file: int, target: memoryview, offset: int) -> int:
    """Fill the target, or a part of it, from a file; returns the number of bytes."""
    return os.preadv(file, [target], offset) if hasattr(os, "preadv") else _seek_and_read(file, target, offset)


def on_disk(array: Any) -> Any:
    """A memory map of a whole file as StoredRows; anything else as it is."""
    file = StoredFile.behind(array) if isinstance(array, np.memmap) else None
    return array if file is None else StoredRows([file])


def read_ahead(read: Callable[[Key], Value], keys: Iterable[Key]) -> Iterator[Value]:
    """Yield read(key) for each key. While the caller works on one, a thread reads the next."""
    with ThreadPoolExecutor(1) as pool:
        pending = None
        for key in keys:
            now, pending = pending, pool.submit(read, key)
            if now is not None:
                yield now.result()
        if pending is not None:
            yield pending.result()


# ---- other formats, converted to such rows once ----------------------------------------------------------------------


def converted(
    path: Path,
    what: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
    blocks: Callable[[], Iterable[np.ndarray]],
    progress: ProgressFunction | None = None,
) -> StoredRows:
    """Rows of a file that cannot be read by rows: from the cache, after they were written there once.

    A batch needs random rows. A Parquet file is read by whole row groups, so that each batch would decode all of it.

    Parameters
    ----------
    path : Path
        The file. Its size and time of change identify the version in the cache.
    what : str
        Which matrix of the file it is.
    shape, dtype
        Of that matrix.
    blocks : callable
        Returns its rows, some at a time.
    progress : callable or None
        Called with the rows done and the rows in total.

    Returns
    -------
    StoredRows
    """
    status = path.stat()
    key = f"{path.resolve()} {status.st_size} {status.st_mtime_ns} {what} {shape} {dtype.str}"
    target = user_cache() / "rows" / f"{path.stem}-{sha256(key.encode()).hexdigest()[:16]}.npy"
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        if (need := int(np.prod(shape)) * dtype.itemsize) > (free := shutil.disk_usage(target.parent).free):
            raise InputError(
                f"{path} would take {need / 2**30:,.1f} GB in {target.parent}, and {free / 2**30:,.1f} GB are free; "
                "free space, or set XDG_CACHE_HOME to a folder on a larger disk."
            )
        with files.atomic(target) as partial_file, partial_file.open("wb") as file:
            header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_2_0(file, header)
            done = 0
            for block in blocks():
                file.write(np.ascontiguousarray(block, dtype).data)
                done += len(block)
                if progress is not None:
                    progress(done, shape[0])
            if done != shape[0]:
                raise InputError(f"{path} declares {shape[0]:,} rows and has {done:,}; it is damaged: write it again.")
    mapped = np.lib.format.open_memmap(target, mode="r")
    return StoredRows([StoredFile(target, mapped.offset, mapped.shape, mapped.dtype)])


def user_cache() -> Path:
    """The folder for files that can be made again: $XDG_CACHE_HOME/prodsc, or ~/.cache/prodsc."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "prodsc"
