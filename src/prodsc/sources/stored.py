"""Rows in files, read when they are asked for and not kept: how data may be larger than memory.

Reading is by `pread`, not through a memory map. Pages of a map count as memory of the process until the system takes
them away, and a random row brings its neighbours along; a read brings what was asked for.
"""

import os
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from hashlib import sha256
from itertools import accumulate
from mmap import mmap
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np

from prodsc import files
from prodsc.errors import InputError

Progress: TypeAlias = Callable[[int, int], None]  # rows done, rows in all
Key = TypeVar("Key")
Value = TypeVar("Value")


@dataclass(frozen=True)
class Part:
    """One file of equal rows, one after the other from `offset` on."""

    path: Path
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype

    @classmethod
    def of(cls, mapped: np.memmap) -> "Part | None":
        """The file behind a memory map; None when the map is a view, is not by rows, or may differ from its file."""
        whole = isinstance(mapped.base, mmap) and mapped.flags.c_contiguous and mapped.mode in ("r", "r+")
        if not whole or mapped.ndim < 2 or not isinstance(mapped.filename, (str, Path)):
            return None
        return cls(Path(mapped.filename), mapped.offset, mapped.shape, mapped.dtype)


class StoredRows:
    """Looks like an array of which only rows can be taken; each taking reads the files anew and gives a copy."""

    def __init__(self, parts: Sequence[Part]):
        first = parts[0]
        for part in parts:
            if part.shape[1:] != first.shape[1:] or part.dtype != first.dtype:
                raise InputError(
                    f"{part.path} has rows of shape {part.shape[1:]}, {part.dtype}, and {first.path} of "
                    f"{first.shape[1:]}, {first.dtype}; the files of a folder must be alike: convert one of them."
                )
        self.parts = list(parts)
        self._starts = [0, *accumulate(part.shape[0] for part in parts)]
        self.shape = (self._starts[-1], *first.shape[1:])
        self.ndim = len(self.shape)
        stored = first.dtype  # torch has neither long doubles nor foreign byte orders
        self.dtype = np.dtype(np.float64) if stored.itemsize > 8 else stored.newbyteorder("=")
        self.nbytes = int(np.prod(self.shape)) * self.dtype.itemsize
        self.column_order: np.ndarray | None = None
        self.seen: dict[str, Any] = {}  # what a pass over all rows found: a file is worth looking at only once

    def reordered(self, order: np.ndarray) -> "StoredRows":
        """The same rows with their columns in another order."""
        if self.ndim != 2 or len(order) != self.shape[1]:
            raise InputError(f"rows of shape {self.shape[1:]} cannot be put into an order of {len(order)} columns.")
        copy = StoredRows(self.parts)
        copy.column_order = order if self.column_order is None else self.column_order[order]
        return copy

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
        """The rows of each run [start, stop) below each other."""
        first = self.parts[0]
        found = np.empty((sum(stop - start for start, stop in runs), *self.shape[1:]), first.dtype)
        size = int(np.prod(self.shape[1:])) * first.dtype.itemsize
        buffer = found.reshape(-1).view(np.uint8).data if found.size else memoryview(b"")
        pieces: dict[int, list[tuple[int, int, int]]] = {}  # part -> where in it, how much, where it belongs; in bytes
        done = 0
        for start, stop in runs:
            while start < stop:
                i = bisect_right(self._starts, start) - 1
                end = min(stop, self._starts[i + 1])
                where = self.parts[i].offset + (start - self._starts[i]) * size
                pieces.setdefault(i, []).append((where, (end - start) * size, done))
                done, start = done + (end - start) * size, end
        for i, wanted in pieces.items():
            _read_into(buffer, self.parts[i].path, wanted)
        found = found if self.column_order is None else found[:, self.column_order]
        return found.astype(self.dtype, copy=False)


def _read_into(buffer: memoryview, path: Path, wanted: list[tuple[int, int, int]]) -> None:
    try:
        file = os.open(path, os.O_RDONLY)
    except OSError as error:
        raise InputError(f"{path} cannot be opened any more ({error.strerror}); put it back.") from error
    try:
        if len(wanted) > 1 and hasattr(os, "posix_fadvise"):  # tell all first: the disk can then fetch many at once
            for where, size, _ in wanted:
                os.posix_fadvise(file, where, size, os.POSIX_FADV_WILLNEED)
        for where, size, to in wanted:
            while size:
                read = os.preadv(file, [buffer[to : to + size]], where)
                if not read:
                    raise InputError(f"{path} has become shorter than it was; do not change it while it is in use.")
                where, size, to = where + read, size - read, to + read
    finally:
        os.close(file)


def on_disk(array: Any) -> Any:
    """A whole memory map as rows that are read, not mapped; anything else as it is."""
    part = Part.of(array) if isinstance(array, np.memmap) else None
    return array if part is None else StoredRows([part])


def ahead(read: Callable[[Key], Value], keys: Iterable[Key]) -> Iterator[Value]:
    """read(key) for each key, the next one read in a thread while the caller works on this one."""
    with ThreadPoolExecutor(1) as pool:
        pending = None
        for key in keys:
            now, pending = pending, pool.submit(read, key)
            if now is not None:
                yield now.result()
        if pending is not None:
            yield pending.result()


# ---- other formats, made into such rows once -------------------------------------------------------------------------


def converted(
    path: Path,
    what: str,
    shape: tuple[int, ...],
    dtype: np.dtype,
    blocks: Callable[[], Iterable[np.ndarray]],
    progress: Progress | None = None,
) -> StoredRows:
    """The matrix of a file that cannot be read by rows, from the cache; written there if it is not there yet.

    A batch takes random rows. A parquet file gives only whole row groups, so each batch would decode all of the file.
    `what` says which matrix of the file it is, where several can be asked for.
    """
    status = path.stat()
    key = f"{path.resolve()} {status.st_size} {status.st_mtime_ns} {what} {shape} {dtype.str}"
    place = user_cache() / "rows" / f"{path.stem}-{sha256(key.encode()).hexdigest()[:16]}.npy"
    if not place.exists():
        place.parent.mkdir(parents=True, exist_ok=True)
        with files.atomic(place) as part, part.open("wb") as file:
            header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_2_0(file, header)
            done = 0
            for block in blocks():
                file.write(np.ascontiguousarray(block, dtype).data)
                done += len(block)
                if progress is not None:
                    progress(done, shape[0])
    mapped = np.lib.format.open_memmap(place, mode="r")
    return StoredRows([Part(place, mapped.offset, mapped.shape, mapped.dtype)])


def user_cache() -> Path:
    """$XDG_CACHE_HOME/prodsc, or ~/.cache/prodsc."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "prodsc"
