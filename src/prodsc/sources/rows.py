"""Any input as an array, and its rows as scaled batches of float32."""

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from os import PathLike
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from prodsc import ranks
from prodsc.choices import Scaling
from prodsc.errors import InputError
from prodsc.sources.arrays import array_of, frame_columns, matched_columns
from prodsc.sources.checks import Summary
from prodsc.sources.door import open_source
from prodsc.sources.frames import is_cells, is_plain_frame
from prodsc.sources.named import dataset_info
from prodsc.sources.readers import read_column_names
from prodsc.sources.source import Source
from prodsc.sources.stored import StoredRows, on_disk, read_ahead

LONGEST = 1e6  # typical lengths: longer rows count as so long, since squares of larger numbers lose the others
CHUNK_BYTES = 8 * 2**20  # of float32: memory for the rows that are read together


class RowReader:
    """A read-only view of an array as scaled float32 batches.

    Parameters
    ----------
    array : ndarray or StoredRows of shape (n, ...)
    scaling : {"unit", "centred", "standard", "global", "none", "raw"}
        How rows are scaled.
    centre, spread : Tensor of shape (d,) or None
        Mean and standard deviation of the columns, for the scalings that need them; see `column_scale`.
    flat : bool
        Give images as vectors. Otherwise they are channels x height x width.
    """

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
        self._prefetched: tuple[np.ndarray, Future[Tensor]] | None = None

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: np.ndarray | slice) -> Tensor:
        prefetched, self._prefetched = self._prefetched, None
        if prefetched is not None and isinstance(rows, np.ndarray) and np.array_equal(rows, prefetched[0]):
            return prefetched[1].result()
        return self._read(rows)

    def prefetch(self, rows: np.ndarray) -> None:
        """Announce the rows that will be needed next. If they are in files, a thread begins to read them."""
        if isinstance(self.array, StoredRows):
            self._pool = self._pool or ThreadPoolExecutor(1)
            self._prefetched = rows, self._pool.submit(self._read, rows)

    def chunks(self, part: slice | np.ndarray = slice(None)) -> Iterator[Tensor]:
        """All rows, or some of them, in chunks. If they are in files, a thread reads the next chunk meanwhile."""
        wanted = slices(self.array, part)
        return read_ahead(self._read, wanted) if isinstance(self.array, StoredRows) else map(self._read, wanted)

    def chunks_with_length(self, part: slice | np.ndarray = slice(None)) -> Iterator[tuple[Tensor, Tensor]]:
        """Chunks as `chunks` gives them, each with the same rows as vectors that keep the lengths of the input."""
        wanted = slices(self.array, part)
        read = self._read_with_length
        return read_ahead(read, wanted) if isinstance(self.array, StoredRows) else map(read, wanted)

    @property
    def shared(self) -> bool:
        """Whether ranks share the work on all rows. Rows in memory are few, and each rank has them all."""
        return isinstance(self.array, StoredRows) and ranks.size() > 1

    def rounds(self, max_rows: int) -> Iterator[tuple[int, slice]]:
        """All rows in rounds of at most `max_rows` per rank.

        Yields
        ------
        n : int
            Number of rows in the round.
        mine : slice
            Those of this rank.
        """
        step = max_rows * ranks.size() if self.shared else max_rows
        for start in range(0, len(self), step):
            n = min(step, len(self) - start)
            mine = ranks.share(n) if self.shared else slice(0, n)
            yield n, slice(start + mine.start, start + mine.stop)

    def _read_with_length(self, rows: np.ndarray | slice) -> tuple[Tensor, Tensor]:
        raw = self.array[rows]
        scaled = self._checked(raw)
        vectors = scaled.flatten(1)
        if self.scaling not in ("unit", "centred") or scaled.ndim > 2:
            return scaled, vectors
        assert self.centre is not None
        assert self.spread is not None
        flat = np.asarray(raw).reshape(len(vectors), -1)
        if self.scaling == "centred":
            flat = flat - self.centre.double().numpy()
        typical = np.sqrt(np.square(self.spread.double().numpy()).sum())
        length = np.sqrt(np.einsum("ij,ij->i", flat, flat, dtype=np.float64)) / typical  # without a copy in float64
        return scaled, vectors * torch.from_numpy(np.minimum(length, LONGEST)).to(vectors)[:, None]

    def _read(self, rows: np.ndarray | slice) -> Tensor:
        return self._checked(self.array[rows])

    def _checked(self, raw: np.ndarray) -> Tensor:
        """Scaled rows, all of them finite."""
        scaled = self._scaled(raw).float()
        # A sum is one quick pass and finite only if all entries are; large finite ones may still overflow it.
        if not scaled.sum().isfinite() and not scaled.isfinite().all():
            raise InputError(
                f"X has values that are too large for scaling='{self.scaling}': float32 ends at 3e38. "
                "Divide those columns by a constant, or use scaling='standard'."
            )
        if self.array.ndim > 2 and not self.flat:
            return as_images(scaled, bytes_to_unit=self.array.dtype == np.uint8 and self.scaling != "raw")
        return scaled

    def _scaled(self, raw: np.ndarray) -> Tensor:
        wide = self.centre is not None and self.centre.dtype == torch.float64
        X = torch.from_numpy(_cast(raw, np.float64 if wide else np.float32))
        if self.array.ndim > 2:
            if not self.flat:
                return X
            X = X.flatten(1)
        scaled = self.scale(X)
        if self.scaling == "unit":
            return _mend_extreme_rows(scaled, X, raw)
        if self.scaling == "centred":
            assert self.centre is not None
            centred = X - self.centre
            return _mend_extreme_rows(scaled, centred, centred.numpy())
        return scaled

    @cached_property
    def scale(self) -> "Scale":
        """The formula of the scaling."""
        return Scale(self.scaling, self.centre, self.spread)


class Scale(nn.Module):
    """How rows are scaled, as a function of tensors, so that it can be part of a network.

    Parameters
    ----------
    scaling : {"unit", "centred", "standard", "global", "none", "raw"}
    centre, spread : Tensor of shape (d,) or None
        Mean and standard deviation of the columns, for the scalings that need them.
    """

    centre: Tensor
    divisor: Tensor

    def __init__(self, scaling: Scaling, centre: Tensor | None, spread: Tensor | None):
        super().__init__()
        self.unit, self.shifted = scaling in ("unit", "centred"), scaling in ("centred", "standard", "global")
        divisor = {"standard": lambda: spread, "global": lambda: _one_scale(spread)}.get(scaling, lambda: None)()
        self.divided = divisor is not None
        self.register_buffer("centre", centre if self.shifted else None)
        self.register_buffer("divisor", divisor)

    def forward(self, X: Tensor) -> Tensor:
        """Scaled rows, in the precision of X."""
        X = X - self.centre if self.shifted else X
        X = X / self.divisor if self.divided else X
        return torch.nn.functional.normalize(X) if self.unit else X


def _one_scale(spread: Tensor | None) -> Tensor:
    """The root of the mean variance of the columns that vary; constant columns have a spread of 1 exactly."""
    assert spread is not None
    varying = spread[spread != 1.0].double()
    return varying.square().mean().sqrt().to(spread.dtype) if len(varying) else spread.new_ones(())


def _cast(raw: np.ndarray, dtype: type[np.floating]) -> np.ndarray:
    with np.errstate(over="ignore"):  # what becomes infinite is dealt with below
        return np.array(raw, dtype=dtype)


def _mend_extreme_rows(
    unit: Tensor, X: Tensor, raw: np.ndarray, smallest: float = 1e-12, largest: float = 1e18
) -> Tensor:
    """Rows X at length 1. Those whose squares float32 cannot hold are scaled again from the original numbers."""
    length = torch.linalg.vector_norm(X, dim=1)
    extreme = ~((length >= smallest) & (length <= largest))
    if extreme.any():
        rows = torch.from_numpy(np.array(raw[extreme.numpy()], dtype=np.float64)).flatten(1)
        rows = rows / rows.abs().amax(1, keepdim=True).clamp_min(torch.finfo(torch.float64).tiny)
        unit[extreme] = torch.nn.functional.normalize(rows).to(unit.dtype)
    return unit


def column_scale(summary: Summary) -> tuple[Tensor, Tensor]:
    """Mean and spread of the columns, for a RowReader.

    They are float32, as the scaled rows are, unless float32 would lose the differences between rows: then they are
    float64, and the RowReader subtracts and divides in float64 before it rounds. So columns of mean 1e8 and spread 1
    keep their spread.

    Parameters
    ----------
    summary : Summary
        Statistics of the columns.

    Returns
    -------
    centre, spread : Tensor of shape (d,)
        The spread of a constant column is 1.
    """
    mean, std = summary.mean, summary.std
    varies = std > 1e-13 * np.abs(mean)  # less is rounding of float64
    spread = np.where(varies, std, 1.0)
    lost = bool((varies & (np.abs(mean) > 2**12 * spread)).any())  # half of the 24 bits of float32
    sizes = std[varies]
    far = sizes.size > 0 and not (1e-9 < sizes.max() < 1e12 and sizes.min() > 1e-30)
    dtype = torch.float64 if lost or far else torch.float32
    return torch.from_numpy(mean).to(dtype), torch.from_numpy(spread).to(dtype)


def as_images(X: Tensor, bytes_to_unit: bool) -> Tensor:
    """Images as n x channels x height x width.

    Parameters
    ----------
    X : Tensor
        n x height x width, with channels last, or with channels first.
    bytes_to_unit : bool
        Divide by 255.

    Returns
    -------
    Tensor
    """
    X = X[:, None] if X.ndim == 3 else X
    if X.shape[-1] in (1, 3) and X.shape[1] not in (1, 3):
        X = X.permute(0, 3, 1, 2)
    return X / 255 if bytes_to_unit else X


def as_array(X: Any, *, columns: Sequence[str] | None = None, what: str = "X") -> Any:
    """Convert any input to an array of numbers, without a copy where it already is one.

    Parameters
    ----------
    X : array, tensor, memory map, data frame, nested list, path, name of a data set, or Source
        Whatever `prodsc.sources.door.open_source` takes.
    columns : sequence of str or None
        Names of the columns that are expected. If X has column names too, its columns are put into this order.
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
    X = opened_unless_plain(X)
    names = None if columns is None else column_names(X)
    array = array_of(X.X if isinstance(X, Source) else X, what=what)
    if columns is None or names is None or array.ndim != 2:
        return array
    return matched_columns(array, names, columns, what=what)


def opened_unless_plain(X: Any) -> Any:
    """X as a Source if it is a path, a table that is no plain frame, or single cells; else as it is.

    Parameters
    ----------
    X : whatever `as_array` takes

    Returns
    -------
    Source, or X
    """
    if isinstance(X, Source):
        return X
    return open_source(X) if isinstance(X, (str, PathLike)) or is_cells(X) or not is_plain_frame(X) else X


def column_names(X: Any) -> list[str] | None:
    """Names of the columns of any input, before `as_array` converts it.

    Parameters
    ----------
    X : whatever `as_array` takes

    Returns
    -------
    list of str or None
        None if the columns have no names, or names that are not text.
    """
    if not isinstance(X, (str, PathLike)):
        return frame_columns(opened_unless_plain(X))
    return None if dataset_info(X) is not None else read_column_names(X)  # no named data set has column names


def check_shape(array: Any, images: bool, *, what: str = "X") -> None:
    """Raise an InputError unless an array has the right number of dimensions.

    Parameters
    ----------
    array : ndarray or StoredRows
    images : bool
        Whether 3 or 4 dimensions are expected (images), or 2 (features).
    what : str
        How error messages call the array.
    """
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
    """Rows of an array, given as a slice or as row numbers, in chunks of CHUNK_BYTES."""
    size = max(1, CHUNK_BYTES // (4 * max(1, int(np.prod(array.shape[1:])))))
    if isinstance(part, np.ndarray):
        yield from (part[i : i + size] for i in range(0, len(part), size))
        return
    first, last, _ = part.indices(len(array))
    yield from (slice(i, min(i + size, last)) for i in range(first, last, size))
