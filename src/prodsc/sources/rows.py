"""Whatever a user has, as rows that can be read a few at a time, checked before anything is trained on them."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from prodsc import ranks
from prodsc.errors import InputError
from prodsc.sources.readers import read
from prodsc.sources.stored import StoredRows, ahead, on_disk

Scaling = Literal["unit", "centred", "standard", "none", "raw"]
SCALINGS: tuple[str, ...] = get_args(Scaling)
CHUNK_BYTES = 8 * 2**20  # of float32: what one look at a memory map may cost


class RowReader:
    """A read-only view of an array as float32 batches, scaled. Images come out as channels x height x width, or `flat`,
    as rows of features."""

    def __init__(
        self,
        array: Any,
        scaling: Scaling = "none",
        centre: Tensor | None = None,
        spread: Tensor | None = None,
        flat: bool = False,
    ):
        self.flat = flat
        self.array, self.scaling, self.centre, self.spread = on_disk(array), scaling, centre, spread
        self._pool: ThreadPoolExecutor | None = None
        self._coming: tuple[np.ndarray, Future[Tensor]] | None = None

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: np.ndarray | slice) -> Tensor:
        coming, self._coming = self._coming, None
        if coming is not None and isinstance(rows, np.ndarray) and np.array_equal(rows, coming[0]):
            return coming[1].result()
        return self._read(rows)

    def prefetch(self, rows: np.ndarray) -> None:
        """These will be asked for next. From files they are read meanwhile; what is in memory needs no haste."""
        if isinstance(self.array, StoredRows):
            self._pool = self._pool or ThreadPoolExecutor(1)
            self._coming = rows, self._pool.submit(self._read, rows)

    def chunks(self, part: slice | np.ndarray = slice(None)) -> Iterator[Tensor]:
        """All rows, or those of a part, a few at a time; from files, the next few are read meanwhile."""
        wanted = slices(self.array, part)
        return ahead(self._read, wanted) if isinstance(self.array, StoredRows) else map(self._read, wanted)

    @property
    def shared(self) -> bool:
        """Do ranks share the work on all rows? Only on files: what is in memory is small, and each rank has it all."""
        return isinstance(self.array, StoredRows) and ranks.size() > 1

    def rounds(self, most: int) -> Iterator[tuple[int, slice]]:
        """All rows in rounds of at most `most` for each rank: how many a round has, and which are for this rank."""
        step = most * ranks.size() if self.shared else most
        for start in range(0, len(self), step):
            n = min(step, len(self) - start)
            mine = ranks.share(n) if self.shared else slice(0, n)
            yield n, slice(start + mine.start, start + mine.stop)

    def _read(self, rows: np.ndarray | slice) -> Tensor:
        X = torch.from_numpy(np.array(self.array[rows], dtype=np.float32))
        if self.flat:
            X = X.flatten(1)
        elif self.array.ndim > 2:
            return as_images(X, bytes_to_unit=self.array.dtype == np.uint8 and self.scaling != "raw")
        if self.scaling == "unit":
            return torch.nn.functional.normalize(X)
        if self.scaling == "centred":
            assert self.centre is not None
            return torch.nn.functional.normalize(X - self.centre)
        if self.scaling == "standard":
            assert self.centre is not None
            assert self.spread is not None
            return (X - self.centre) / self.spread
        return X


def as_images(X: Tensor, bytes_to_unit: bool) -> Tensor:
    """n x channels x height x width: a missing channel is added, trailing channels moved, bytes scaled to [0, 1]."""
    X = X[:, None] if X.ndim == 3 else X
    if X.shape[-1] in (1, 3) and X.shape[1] not in (1, 3):
        X = X.permute(0, 3, 1, 2)
    return X / 255 if bytes_to_unit else X


def as_array(X: Any, *, what: str = "X") -> Any:
    """An array of numbers from an array, tensor, memory map, pandas or polars frame, nested list, or path.

    Never copies what is already an array of numbers. A memory map stays on disk, as rows that are read when needed.
    """
    if isinstance(X, (str, Path)):
        return on_disk(read(X).X)
    if isinstance(X, (np.memmap, StoredRows)):
        X = on_disk(X)
    if isinstance(X, Tensor):
        X = X.detach().cpu()
        return (X.float() if X.dtype == torch.bfloat16 else X).numpy()
    if scipy.sparse.issparse(X):
        raise InputError(
            f"{what} is a sparse matrix; prodsc takes dense rows. Use {what}.toarray() or reduce it first."
        )
    stored = isinstance(X, StoredRows)
    array = X if stored else X.to_numpy() if hasattr(X, "to_numpy") else np.asanyarray(X)
    if array.dtype.kind in "OUS":
        array = _numbers(array, what)
    if array.dtype.kind == "c":
        raise InputError(f"Complex data not supported: {what} has type {array.dtype}. Give its real features.")
    if array.dtype.kind not in "fiub":
        raise InputError(f"{what} has type {array.dtype}; prodsc takes numbers. Convert the columns first.")
    return array


def _numbers(array: np.ndarray, what: str) -> np.ndarray:
    try:
        return array.astype(np.float64)
    except ValueError as error:
        raise InputError(f"{what} holds text ({error}); prodsc takes numbers. Encode or drop those columns.") from error


def check_shape(array: Any, images: bool, *, what: str = "X") -> None:
    """2-D for features, 3-D or 4-D for images."""
    if images and array.ndim in (3, 4):
        expected = ""
    elif images:
        expected = (
            f"{what} has shape {array.shape}; the convolutional encoder takes images, n x height x width "
            "(x channels). Reshape it, or use encoder='mlp'."
        )
    elif array.ndim == 2:
        expected = ""
    elif array.ndim == 1:
        expected = (
            f"Expected 2D array, got 1D array instead: {what} has shape {array.shape}. Reshape your data either using "
            "array.reshape(-1, 1) if it has a single feature or array.reshape(1, -1) if it has a single row."
        )
    elif array.ndim == 0:
        expected = f"{what} is a single value; prodsc takes a 2D array of rows x columns. Reshape your data."
    else:
        expected = (
            f"{what} has {array.ndim} dimensions, shape {array.shape}; this encoder takes rows x columns. Reshape it "
            f"to ({len(array)}, {int(np.prod(array.shape[1:]))}), or use encoder='conv' if the rows are images."
        )
    if expected:
        raise InputError(expected)
    if array.shape[0] == 0:
        raise InputError(f"{what} has 0 sample(s) (shape={array.shape}) while a minimum of 1 is required.")
    if 0 in array.shape[1:]:
        raise InputError(f"{what} has 0 feature(s) (shape={array.shape}) while a minimum of 1 is required.")


def slices(array: Any, part: slice | np.ndarray = slice(None)) -> Iterator[slice | np.ndarray]:
    """A part of the rows, as row numbers or from one to another, in pieces of CHUNK_BYTES."""
    size = max(1, CHUNK_BYTES // (4 * max(1, int(np.prod(array.shape[1:])))))
    if isinstance(part, np.ndarray):
        yield from (part[i : i + size] for i in range(0, len(part), size))
        return
    first, last, _ = part.indices(len(array))
    yield from (slice(i, min(i + size, last)) for i in range(first, last, size))
