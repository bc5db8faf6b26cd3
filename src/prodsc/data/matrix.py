"""Whatever a user has, as rows that can be read a few at a time, checked before anything is trained on them."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from prodsc.data.readers import read
from prodsc.errors import InputError

Scaling = Literal["unit", "standard", "none", "raw"]
SCALINGS: tuple[str, ...] = get_args(Scaling)
CHUNK_BYTES = 8 * 2**20  # of float32: what one look at a memory map may cost


@dataclass(frozen=True)
class Summary:
    """What one pass over the rows found."""

    mean: np.ndarray
    std: np.ndarray
    n_constant: int  # columns
    n_zero: int  # rows
    first_zero: int


class Rows:
    """A read-only view of an array as float32 batches, scaled. Images come out as channels x height x width."""

    def __init__(
        self, array: np.ndarray, scaling: Scaling = "none", centre: Tensor | None = None, spread: Tensor | None = None
    ):
        self.array, self.scaling, self.centre, self.spread = array, scaling, centre, spread

    def __len__(self) -> int:
        return len(self.array)

    def __getitem__(self, rows: np.ndarray | slice) -> Tensor:
        raw = self.array[rows]
        X = torch.from_numpy(np.array(raw, dtype=np.float32))
        if self.array.ndim > 2:
            return as_images(X, bytes_to_unit=self.array.dtype == np.uint8 and self.scaling != "raw")
        if self.scaling == "unit":
            return torch.nn.functional.normalize(X)
        if self.scaling == "standard":
            assert self.centre is not None
            assert self.spread is not None
            return (X - self.centre) / self.spread
        return X

    def chunks(self) -> Iterator[Tensor]:
        for rows in slices(self.array):
            yield self[rows]


def as_images(X: Tensor, bytes_to_unit: bool) -> Tensor:
    """n x channels x height x width: a missing channel is added, trailing channels moved, bytes scaled to [0, 1]."""
    X = X[:, None] if X.ndim == 3 else X
    if X.shape[-1] in (1, 3) and X.shape[1] not in (1, 3):
        X = X.permute(0, 3, 1, 2)
    return X / 255 if bytes_to_unit else X


def as_array(X: Any, *, what: str = "X") -> np.ndarray:
    """An array of numbers from an array, tensor, memory map, pandas or polars frame, nested list, or path.

    Never copies what is already an array of numbers, so a memory map stays on disk.
    """
    if isinstance(X, (str, Path)):
        return read(X).X
    if isinstance(X, Tensor):
        X = X.detach().cpu()
        return (X.float() if X.dtype == torch.bfloat16 else X).numpy()
    if scipy.sparse.issparse(X):
        raise InputError(
            f"{what} is a sparse matrix; prodsc takes dense rows. Use {what}.toarray() or reduce it first."
        )
    array = X.to_numpy() if hasattr(X, "to_numpy") else np.asanyarray(X)
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


def check_shape(array: np.ndarray, images: bool, *, what: str = "X") -> None:
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


def check_values(array: np.ndarray, *, what: str = "X") -> Summary:
    """One pass in chunks: no NaN and no infinity; returns statistics of the columns and what may be wrong."""
    flat = array.reshape(len(array), -1) if array.ndim > 2 else array
    n_bad = n_zero = 0
    first_bad = first_zero = -1
    bad_kind = ""
    count, mean, square = 0, np.zeros(flat.shape[1]), np.zeros(flat.shape[1])
    low, high = np.full(flat.shape[1], np.inf), np.full(flat.shape[1], -np.inf)
    for rows in slices(flat):
        chunk = np.asarray(flat[rows], dtype=np.float64)
        bad = ~np.isfinite(chunk).all(1)
        if bad.any():
            if first_bad < 0:
                first_bad = rows.start + int(bad.argmax())
                bad_kind = "NaN" if np.isnan(chunk[bad.argmax()]).any() else "infinity"
            n_bad += int(bad.sum())
            continue
        zero = ~chunk.any(1)
        if zero.any() and first_zero < 0:
            first_zero = rows.start + int(zero.argmax())
        n_zero += int(zero.sum())
        low, high = np.minimum(low, chunk.min(0)), np.maximum(high, chunk.max(0))
        # Chan's update: sums of squares over millions of rows would lose the small deviations.
        size, here = len(chunk), chunk.mean(0)
        shift = here - mean
        square += ((chunk - here) ** 2).sum(0) + shift**2 * count * size / (count + size)
        mean = mean + shift * size / (count + size)
        count += size
    if n_bad:
        raise InputError(
            f"{what} has {n_bad} {'row' if n_bad == 1 else 'rows'} with NaN or infinity (inf) "
            f"(first: row {first_bad}, {bad_kind}). Drop or impute them first."
        )
    return Summary(mean, np.sqrt(square / max(count, 1)), int((low == high).sum()), n_zero, first_zero)


def slices(array: np.ndarray) -> Iterator[slice]:
    width = max(1, int(np.prod(array.shape[1:])))
    size = max(1, CHUNK_BYTES // (4 * width))
    for start in range(0, len(array), size):
        yield slice(start, min(start + size, len(array)))
