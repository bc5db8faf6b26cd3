"""Whatever a user has, as rows that can be read a few at a time, checked before anything is trained on them."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch
from torch import Tensor

from prodsc import ranks
from prodsc.errors import InputError
from prodsc.sources.arrays import array_of, frame_columns, matched_columns
from prodsc.sources.readers import read, read_column_names
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


def as_array(X: Any, *, columns: Sequence[str] | None = None, what: str = "X") -> Any:
    """
    Convert any input to an array of numbers, without a copy where it already is one.

    Parameters
    ----------
    X : array, tensor, memory map, data frame, nested list, or path of a file
    columns : sequence of str or None
        Names of the columns that are expected. When X has column names too, its columns are put into this order.
    what : str
        How error messages call X.

    Returns
    -------
    ndarray or StoredRows
        StoredRows for a file or a memory map of one: its rows are read when needed.

    Raises
    ------
    InputError
        If X does not hold numbers, or its column names are not those of `columns`.
    """
    if isinstance(X, (str, Path)):
        data = read(X)
        array, names = on_disk(data.X), data.columns
    else:
        array, names = array_of(X, what=what), None if columns is None else frame_columns(X, what=what)
    if columns is None or names is None or array.ndim != 2:
        return array
    return matched_columns(array, names, columns, what=what)


def column_names(X: Any) -> list[str] | None:
    """
    Names of the columns of any input, before it is converted by `as_array`.

    Parameters
    ----------
    X : whatever `as_array` takes

    Returns
    -------
    list of str or None
        None when the columns have no names, or names that are not text.
    """
    return read_column_names(X) if isinstance(X, (str, Path)) else frame_columns(X)


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
