"""Columns that set a cluster of a table apart."""

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from prodsc.random import sorted_subset

NUMBERED = re.compile(r"(\D*?)\d+")  # emb_0, f12, V1, 267


def are_words(names: Sequence[str] | None) -> bool:
    """Do column names mean something to a reader? Those of embeddings are numbers, with one word before them.

    Parameters
    ----------
    names : sequence of str or None
        Names of columns.
    """
    if names is None or not len(names):
        return False
    found = [NUMBERED.fullmatch(name) for name in names]
    return not (all(found) and len({match[1] for match in found if match}) == 1) or len(names) == 1


def column_shifts(
    X: Any, labels: np.ndarray, k: int, *, max_rows: int = 20_000, chunk: int = 1024
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """How far the mean of each column in each cluster is from its mean over all rows, in standard deviations.

    Parameters
    ----------
    X : array of shape (n, d)
        Rows, which may be in a file larger than memory.
    labels : ndarray of int, shape (n,)
        The cluster of each row.
    k : int
        Number of clusters.
    max_rows : int
        Rows that are read; a random sample of more.
    chunk : int
        Rows read at a time.

    Returns
    -------
    shifts : ndarray of shape (k, d)
        0 for a constant column.
    means : ndarray of shape (k, d)
        The mean of each column in each cluster.
    overall : ndarray of shape (d,)
        The mean of each column.
    """
    rows = sorted_subset(len(labels), max_rows)
    near = np.asarray(X[rows[:chunk]], dtype=np.float64).mean(axis=0)  # sums of squares about it lose no digits
    sums, squares, sizes = np.zeros((k, len(near))), np.zeros(len(near)), np.bincount(labels[rows], minlength=k)
    for start in range(0, len(rows), chunk):
        piece = rows[start : start + chunk]
        off = np.asarray(X[piece], dtype=np.float64) - near
        squares += np.square(off).sum(axis=0)
        sums += np.eye(k)[labels[piece]].T @ off
    centre = sums.sum(axis=0) / len(rows)
    spread = np.sqrt(np.maximum(squares / len(rows) - np.square(centre), 0.0))
    spread[spread <= 1e-9 * np.abs(near + centre)] = np.inf  # a constant column, up to rounding
    means = sums / np.maximum(sizes, 1)[:, None]
    shifts = np.where(sizes[:, None] > 0, (means - centre) / spread, 0.0)
    return shifts, means + near, near + centre


def unusual_columns(
    X: Any, labels: np.ndarray, k: int, names: Sequence[str] | None, *, n_columns: int = 4, **limits: int
) -> list[list[tuple[str, float]]]:
    """The columns whose mean in a cluster is furthest from the mean of all rows.

    Parameters
    ----------
    X, labels, k, **limits
        As for `column_shifts`.
    names : sequence of str or None
        Names of the columns.
    n_columns : int
        Columns per cluster.

    Returns
    -------
    list of list of (str, float)
        For each cluster, names and distances in standard deviations of all rows.
    """
    unusual = []
    for off in column_shifts(X, labels, k, **limits)[0]:
        best = np.argsort(-np.abs(off), kind="stable")[:n_columns]
        unusual.append([(names[j] if names is not None else f"column {j}", float(off[j])) for j in best if off[j]])
    return unusual
