"""One pass over all rows: whether every number is finite, and statistics of the columns.

Rows in files are read once: ranks share the blocks, and the result is kept with the rows.
"""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from prodsc import ranks
from prodsc.errors import InputError
from prodsc.sources.arrays import listed
from prodsc.sources.fingerprint import block_digest, block_rows, combined
from prodsc.sources.stored import StoredRows, read_ahead

PIECE_SIZE = 2**17  # numbers examined together: they fit in the processor's cache
LARGEST = 1e150  # the squares of larger numbers overflow
TOO_LARGE = "above 1e150"


@dataclass(frozen=True)
class Summary:
    """Result of a pass over all rows.

    Parameters
    ----------
    mean, std : ndarray of shape (d,)
        Of each column.
    n_constant : int
        Number of columns with a single value.
    n_zero : int
        Number of rows of zeros only.
    first_zero : int
        The first such row, or -1.
    """

    mean: np.ndarray
    std: np.ndarray
    n_constant: int
    n_zero: int
    first_zero: int


@dataclass
class RunningStatistics:
    """Statistics of the rows examined so far; those of several parts can be merged."""

    count: int = 0
    mean: np.ndarray | float = 0.0  # of each column
    square: np.ndarray | float = 0.0  # sum of squared deviations from the mean
    low: np.ndarray | float = np.inf
    high: np.ndarray | float = -np.inf
    n_bad: int = 0
    first_bad: int = -1
    bad_kind: str = ""
    n_zero: int = 0
    first_zero: int = -1
    digests: list[str] = field(default_factory=list)  # of each block, in hex

    def update(self, start: int, block: np.ndarray, columns: bool) -> None:
        """Examine further rows, of which `start` is the first number; `columns` asks for column statistics."""
        flat = block.reshape(len(block), -1)
        step = max(1, PIECE_SIZE // flat.shape[1])
        for i in range(0, len(flat), step):
            self._update(start + i, np.asarray(flat[i : i + step], dtype=np.float64), columns)

    def _update(self, start: int, rows: np.ndarray, columns: bool) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            sums = rows.sum(1)
        if not (np.abs(sums) < LARGEST).all() or (columns and max(rows.max(), -rows.min()) > LARGEST):
            bad = ~np.isfinite(rows).all(1)
            finite = not bad.any()
            bad = (np.abs(rows) > LARGEST).any(1) if finite else bad
            if bad.any():
                kind = TOO_LARGE if finite else "NaN" if np.isnan(rows[bad.argmax()]).any() else "infinity"
                self.merge(RunningStatistics(n_bad=int(bad.sum()), first_bad=start + int(bad.argmax()), bad_kind=kind))
                return
        zero = (sums == 0) & ~rows.any(1)
        piece = RunningStatistics(n_zero=int(zero.sum()), first_zero=start + int(zero.argmax()) if zero.any() else -1)
        if columns:
            mean = rows.mean(0)
            deviation = rows - mean
            piece.count, piece.mean, piece.square = len(rows), mean, np.einsum("ij,ij->j", deviation, deviation)
            piece.low, piece.high = rows.min(0), rows.max(0)
        self.merge(piece)

    def merge(self, other: Self | "RunningStatistics") -> None:
        """Add the statistics of rows that come after these."""
        self.n_bad, self.n_zero = self.n_bad + other.n_bad, self.n_zero + other.n_zero
        if self.first_bad < 0:
            self.first_bad, self.bad_kind = other.first_bad, other.bad_kind
        if self.first_zero < 0:
            self.first_zero = other.first_zero
        self.digests += other.digests
        if other.count:
            # Chan's update: plain sums of squares over millions of rows would lose small deviations.
            total = self.count + other.count
            shift = other.mean - self.mean
            self.square = self.square + other.square + shift**2 * (self.count * other.count / total)
            self.mean = self.mean + shift * (other.count / total)
            self.low, self.high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
            self.count = total

    def summary(self) -> Summary:
        std = np.sqrt(np.asarray(self.square) / max(self.count, 1))
        n_constant = int((np.asarray(self.low) == self.high).sum())
        return Summary(np.asarray(self.mean), std, n_constant, self.n_zero, self.first_zero)

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=lambda value: value.tolist())

    @classmethod
    def from_json(cls, text: str) -> Self:
        content: dict[str, Any] = json.loads(text)
        return cls(**(content | {name: np.array(content[name]) for name in ("mean", "square", "low", "high")}))


def check_values(array: Any, *, what: str = "X", columns: bool = True, names: Sequence[str] | None = None) -> Summary:
    """Check that every number is finite.

    Parameters
    ----------
    array : ndarray or StoredRows of shape (n, ...)
    what : str
        How error messages call the array.
    columns : bool
        Whether to compute statistics of the columns as well.
    names : sequence of str or None
        Names of the columns, for error messages.

    Returns
    -------
    Summary

    Raises
    ------
    InputError
        If a row has NaN or infinity.
    """
    if isinstance(array, StoredRows):
        if "statistics" not in array.cache or (columns and not array.cache["statistics"].count):
            array.cache["statistics"] = _statistics_of_files(array, columns)
        statistics = array.cache["statistics"]
    else:
        statistics = RunningStatistics()
        step = block_rows(array)
        for start in range(0, len(array), step):
            statistics.update(start, np.asarray(array[start : start + step]), columns)
    if statistics.n_bad and statistics.bad_kind == TOO_LARGE:
        raise InputError(
            f"{what} has {statistics.n_bad} {'row' if statistics.n_bad == 1 else 'rows'} with a number above 1e150 "
            f"(first: row {statistics.first_bad}), which cannot be squared; divide that column by a constant first."
        )
    if statistics.n_bad:
        raise InputError(
            f"{what} has {statistics.n_bad} {'row' if statistics.n_bad == 1 else 'rows'} with NaN or infinity (inf) "
            f"(first: row {statistics.first_bad}, {statistics.bad_kind}){_bad_columns(array, names)}. Drop or impute "
            "them first: --impute drop, --impute median or, in Python, prodsc.open_source(X, impute='median')."
        )
    return statistics.summary()


def _bad_columns(array: Any, names: Sequence[str] | None) -> str:
    """How many values of each column are not finite, those with the most first."""
    if array.ndim != 2:
        return ""
    counts = np.zeros(array.shape[1], dtype=np.int64)
    step = block_rows(array)
    for start in range(0, len(array), step):
        counts += (~np.isfinite(np.asarray(array[start : start + step], dtype=np.float64))).sum(0)
    worst = [int(j) for j in np.argsort(-counts, kind="stable") if counts[j]]
    shown = [f"{f'column {j}' if names is None else names[j]} {counts[j]}" for j in worst]
    return f": {listed(shown)}"


def _statistics_of_files(array: StoredRows, columns: bool) -> RunningStatistics:
    """Each rank reads its share of the blocks. With `columns` the fingerprint is computed too."""
    step = block_rows(array)
    starts = range(0, len(array), step)[ranks.share(-(-len(array) // step))]
    mine = RunningStatistics()
    for start, block in zip(starts, read_ahead(lambda start: array[start : start + step], starts), strict=True):
        mine.update(start, block, columns)
        if columns:
            mine.digests.append(block_digest(block).hex())
    total = RunningStatistics()
    for text in ranks.texts(mine.to_json()):
        total.merge(RunningStatistics.from_json(text))
    if columns:
        array.cache["fingerprint"] = combined(array, map(bytes.fromhex, total.digests))
    return total
