"""One pass over all rows: is every number finite, and what are the columns like.

What is in files is looked at once: ranks share the blocks, and the result stays with the rows.
"""

import json
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np

from prodsc import ranks
from prodsc.errors import InputError
from prodsc.sources.fingerprint import block_digest, block_rows, combined
from prodsc.sources.stored import StoredRows, ahead

PIECE = 2**17  # numbers looked at together: as many as stay in the processor's cache


@dataclass(frozen=True)
class Summary:
    """What one pass over the rows found."""

    mean: np.ndarray
    std: np.ndarray
    n_constant: int  # columns
    n_zero: int  # rows
    first_zero: int


@dataclass
class Survey:
    """What is known of the rows seen so far."""

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

    def look(self, start: int, block: np.ndarray, columns: bool) -> None:
        """Rows from number `start` on; `columns` asks for their statistics too."""
        flat = block.reshape(len(block), -1)
        step = max(1, PIECE // flat.shape[1])
        for i in range(0, len(flat), step):
            self._look(start + i, np.asarray(flat[i : i + step], dtype=np.float64), columns)

    def _look(self, start: int, rows: np.ndarray, columns: bool) -> None:
        with np.errstate(over="ignore", invalid="ignore"):
            sums = rows.sum(1)
        if not np.isfinite(sums).all():  # a sum of finite numbers may still overflow
            bad = ~np.isfinite(rows).all(1)
            if bad.any():
                kind = "NaN" if np.isnan(rows[bad.argmax()]).any() else "infinity"
                self.add(Survey(n_bad=int(bad.sum()), first_bad=start + int(bad.argmax()), bad_kind=kind))
                return
        zero = (sums == 0) & ~rows.any(1)
        found = Survey(n_zero=int(zero.sum()), first_zero=start + int(zero.argmax()) if zero.any() else -1)
        if columns:
            mean = rows.mean(0)
            apart = rows - mean
            found.count, found.mean, found.square = len(rows), mean, np.einsum("ij,ij->j", apart, apart)
            found.low, found.high = rows.min(0), rows.max(0)
        self.add(found)

    def add(self, other: Self | "Survey") -> None:
        """What is known of these rows and of others that come after them."""
        self.n_bad, self.n_zero = self.n_bad + other.n_bad, self.n_zero + other.n_zero
        if self.first_bad < 0:
            self.first_bad, self.bad_kind = other.first_bad, other.bad_kind
        if self.first_zero < 0:
            self.first_zero = other.first_zero
        self.digests += other.digests
        if other.count:
            # Chan's update: sums of squares over millions of rows would lose the small deviations.
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


def check_values(array: Any, *, what: str = "X", columns: bool = True) -> Summary:
    """No NaN and no infinity; returns statistics of the columns (unless not asked for) and what may be wrong."""
    if isinstance(array, StoredRows):
        if "survey" not in array.seen or (columns and not array.seen["survey"].count):
            array.seen["survey"] = _survey_of_files(array, columns)
        found = array.seen["survey"]
    else:
        found = Survey()
        step = block_rows(array)
        for start in range(0, len(array), step):
            found.look(start, np.asarray(array[start : start + step]), columns)
    if found.n_bad:
        raise InputError(
            f"{what} has {found.n_bad} {'row' if found.n_bad == 1 else 'rows'} with NaN or infinity (inf) "
            f"(first: row {found.first_bad}, {found.bad_kind}). Drop or impute them first."
        )
    return found.summary()


def _survey_of_files(array: StoredRows, columns: bool) -> Survey:
    """Each rank looks at its share of the blocks; a full look gives the fingerprint too, as it reads every byte."""
    step = block_rows(array)
    starts = range(0, len(array), step)[ranks.share(-(-len(array) // step))]
    mine = Survey()
    for start, block in zip(starts, ahead(lambda start: array[start : start + step], starts), strict=True):
        mine.look(start, block, columns)
        if columns:
            mine.digests.append(block_digest(block).hex())
    found = Survey()
    for text in ranks.texts(mine.to_json()):
        found.add(Survey.from_json(text))
    if columns:
        array.seen["fingerprint"] = combined(array, map(bytes.fromhex, found.digests))
    return found
