"""What is unusual about rows that will be clustered: sentences that say what was seen and the way out."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from prodsc.random import sorted_subset
from prodsc.sources.sparse_rows import SparseRows

SOME_ROWS = 4096  # that are looked at
SOME_NUMBERS = 2**19  # of them, 4 MB: fewer of wide rows
MANY_COLUMNS = 256  # beyond, columns are those of an embedding, and none is an id
MIN_ID_ROWS = 20  # fewer rows can have different whole numbers by chance
FEW_ROWS = 4  # to a cluster: below, no half of the rows has two of each
MANY_COPIES = 0.5  # share of rows that are copies of others, from which the copies decide


def remarks_on(array: Any, names: Sequence[str] | None, k: int | None, from_file: bool = False) -> list[str]:
    """Sentences about rows that may not be what they seem.

    Parameters
    ----------
    array : array or stored rows of shape (n, ...)
    names : sequence of str or None
        Names of the columns.
    k : int or None
        Number of clusters, if it is known.
    from_file : bool
        Whether the rows were read from a file, where `tables.id_notes` has looked for ids already.

    Returns
    -------
    list of str
    """
    said = []
    n = len(array)
    if k is not None and n < FEW_ROWS * k:
        said.append(
            f"X has {n} rows for {k} clusters, fewer than {FEW_ROWS} to a cluster: whether the labels hold cannot be "
            "judged. Give more rows, or ask for fewer clusters."
        )
    if array.ndim > 2 or isinstance(array, SparseRows):
        return said
    most = min(SOME_ROWS, max(SOME_NUMBERS // array.shape[1], 2))
    some = np.asarray(array[sorted_subset(n, most)], dtype=np.float64)
    said += [] if from_file else [_id_sentence(column) for column in _ids(some, names)]
    copies = 1 - len(np.unique(some, axis=0)) / len(some)
    if copies > MANY_COPIES:
        said.append(
            f"{copies:.0%} of the rows of X are copies of other rows, and weigh as many rows. Drop copies if they are "
            "no observations of their own."
        )
    return said


def _ids(some: np.ndarray, names: Sequence[str] | None) -> list[str]:
    """Columns that have another whole number in every row."""
    n, d = some.shape
    if n < MIN_ID_ROWS or d < 2 or d > MANY_COLUMNS:
        return []
    whole = [j for j in range(d) if (some[:, j] == np.round(some[:, j])).all()]
    return [
        f"column {j}" if names is None else f"the column '{names[j]}'"
        for j in whole
        if len(np.unique(some[:, j])) == n and _is_counted(some[:, j])
    ]


def _is_counted(values: np.ndarray) -> bool:
    """Whether numbers are in order, as rows are numbered: measurements are not."""
    steps = np.diff(values)
    return bool((steps > 0).all() or (steps < 0).all())


def _id_sentence(column: str) -> str:
    return f"{column} of X counts the rows, as an id does, and is clustered like a measurement. Give X without it."
