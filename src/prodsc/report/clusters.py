"""What is known of each cluster: its subspace, its neighbours, the rows that show it best and those at its border.

The rows of a cluster span a subspace through the origin, so everything is read from S = Z'Z / n of its rows, d x d.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from prodsc.core import theory
from prodsc.report import drawing

EXEMPLARS, BORDERS, COMPONENTS, ALIGNED, NEIGHBOURS = 8, 8, 3, 6, 3
STANDING_OUT = 4  # columns named on a card
SAMPLE = 20_000  # rows whose columns are read
AT_A_TIME = 1024  # of them
CONSTANT = 1e-9  # of its mean: a column that varies less only has rounding


@dataclass(frozen=True)
class Component:
    share: float  # of the cluster's energy along this direction
    rows: list[int]  # most aligned first


@dataclass(frozen=True)
class Card:
    cluster: int
    size: int
    share: float  # of all rows
    confidence: float  # mean
    dimension: float  # effective: as many equally strong directions would carry as much
    spectrum: list[float]  # share of energy of each direction, descending
    neighbours: list[tuple[int, float]]  # cluster and angle in degrees, nearest first
    exemplars: list[int]  # rows most like the others of the cluster
    borders: list[tuple[int, float, int]]  # row, confidence, the cluster it nearly went to
    components: list[Component]
    columns: list[tuple[str, float]]  # column and how many standard deviations the cluster is off the mean

    def rows(self) -> list[int]:
        """Every row the card shows."""
        aligned = [row for component in self.components for row in component.rows]
        return [*self.exemplars, *(row for row, _, _ in self.borders), *aligned]


def cards(
    Z: NDArray[np.float32],
    labels: NDArray[np.intp],
    confidence: drawing.Floats,
    second: NDArray[np.intp],
    sizes: Sequence[int],
    columns: Sequence[Sequence[tuple[str, float]]] | None = None,
) -> list[Card]:
    """One card per cluster; rows are numbered as in Z, `sizes` may count rows that are not in it."""
    members = [np.flatnonzero(labels == c) for c in range(len(sizes))]
    moments = [_moment(Z[rows]) for rows in members]
    angles = mean_subspace_angles([(vectors, dimension) for _, vectors, dimension in moments])
    made = []
    for c, (rows, (values, vectors, dimension)) in enumerate(zip(members, moments, strict=True)):
        near = [(int(o), float(angles[c, o])) for o in np.argsort(angles[c]) if o != c and len(members[o])]
        likeness = np.square(Z[rows] @ vectors) @ values  # z'Sz, the mean square of its cosines with the cluster's rows
        unsure = rows[np.argsort(confidence[rows], kind="stable")[:BORDERS]]
        made.append(
            Card(
                c,
                int(sizes[c]),
                sizes[c] / max(1, sum(sizes)),
                float(confidence[rows].mean()) if len(rows) else 0.0,
                dimension,
                values.tolist(),
                near[:NEIGHBOURS],
                rows[np.argsort(-likeness, kind="stable")[:EXEMPLARS]].tolist(),
                [(int(row), float(confidence[row]), int(second[row])) for row in unsure],
                [
                    Component(float(values[i]), _most_along(Z, rows, vectors[:, i]))
                    for i in range(min(COMPONENTS, len(values)) if len(rows) > 1 else 0)
                ],
                list(columns[c]) if columns is not None else [],
            )
        )  # fmt: skip
    return made


def _most_along(Z: NDArray[np.float32], rows: NDArray[np.intp], direction: NDArray[np.float32]) -> list[int]:
    return rows[np.argsort(-np.abs(Z[rows] @ direction), kind="stable")[:ALIGNED]].tolist()


def mean_subspace_angles(subspaces: Sequence[tuple[NDArray[np.floating], float]]) -> drawing.Floats:
    """Degrees between every two subspaces: arccos of the root mean square cosine of their principal angles.

    Given as (orthonormal directions as columns, strongest first; how many of them count). 90: orthogonal.
    """
    bases = [vectors[:, : max(1, round(dimension))] for vectors, dimension in subspaces]
    angles = np.zeros((len(bases), len(bases)))
    for a, U in enumerate(bases):
        for b, V in enumerate(bases[:a]):
            mean_square = np.square(U.T @ V).sum() / min(U.shape[1], V.shape[1])
            angles[a, b] = angles[b, a] = np.degrees(np.arccos(np.sqrt(min(1.0, mean_square))))
    return angles


def standing_out(
    X: np.ndarray, labels: NDArray[np.intp], k: int, names: Sequence[str] | None
) -> list[list[tuple[str, float]]]:
    """Per cluster the columns whose mean is furthest from the mean of all rows, in standard deviations of all rows.

    Rows are read a few at a time: they may be wide, and in a file larger than memory.
    """
    rows = drawing.sample(len(labels), SAMPLE, seed=0)
    near = np.asarray(X[rows[:AT_A_TIME]], dtype=np.float64).mean(axis=0)  # sums of squares about it lose no digits
    sums, squares, sizes = np.zeros((k, len(near))), np.zeros(len(near)), np.bincount(labels[rows], minlength=k)
    for start in range(0, len(rows), AT_A_TIME):
        piece = rows[start : start + AT_A_TIME]
        off = np.asarray(X[piece], dtype=np.float64) - near
        squares += np.square(off).sum(axis=0)
        sums += np.eye(k)[labels[piece]].T @ off
    centre = sums.sum(axis=0) / len(rows)
    spread = np.sqrt(np.maximum(squares / len(rows) - np.square(centre), 0.0))
    spread[spread <= CONSTANT * np.abs(near + centre)] = np.inf
    found = []
    for total, size in zip(sums, sizes, strict=True):
        off = (total / size - centre) / spread if size else np.zeros(len(centre))
        best = np.argsort(-np.abs(off), kind="stable")[:STANDING_OUT]
        found.append([(names[j] if names is not None else f"column {j}", float(off[j])) for j in best if off[j]])
    return found


def _moment(Z: NDArray[np.float32]) -> tuple[drawing.Floats, NDArray[np.float32], float]:
    """Eigenvalues (descending, summing to 1) and vectors of Z'Z / n, and the effective dimension of the rows."""
    if not len(Z):
        return np.zeros(1), np.zeros((Z.shape[1], 1), dtype=np.float32), 0.0
    values, vectors = np.linalg.eigh((Z.T @ Z).astype(np.float64) / len(Z))
    values = np.maximum(values[::-1], 0) / max(values.sum(), np.finfo(float).tiny)
    dimension = float(theory.effective_rank_of_spectrum(torch.from_numpy(np.sqrt(values))))
    return values, vectors[:, ::-1].astype(np.float32), dimension
