"""What a page shows of each cluster: its subspace, nearest clusters, typical rows and border rows.

The rows of a cluster span a subspace through the origin, so everything is computed from S = Z'Z / n, d x d.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from prodsc.core import theory
from prodsc.core.naming import likeness
from prodsc.report import drawing


@dataclass(frozen=True)
class CardSize:
    """How much a card shows; all that fits on one card without scrolling."""

    exemplars: int = 8
    borders: int = 8
    components: int = 3
    rows_per_component: int = 6
    neighbours: int = 3


SIZE = CardSize()


@dataclass(frozen=True)
class Component:
    """A principal direction of a cluster."""

    share: float  # of the cluster's energy along this direction
    rows: list[int]  # most aligned first


@dataclass(frozen=True)
class ClusterCard:
    """What a page shows of one cluster."""

    cluster: int
    size: int
    share: float  # of all rows
    confidence: float  # mean
    dimension: float  # effective: the number of equally strong directions with the same entropy
    spectrum: list[float]  # share of the energy of each direction, descending
    neighbours: list[tuple[int, float]]  # cluster and angle in degrees, nearest first
    exemplars: list[int]  # typical rows: those most like the others of the cluster
    borders: list[tuple[int, float, int]]  # row, confidence, its second most probable cluster
    components: list[Component]
    columns: list[tuple[str, float]]  # column, and the distance of the cluster from the mean in standard deviations

    def rows(self) -> list[int]:
        """Every row the card shows."""
        aligned = [row for component in self.components for row in component.rows]
        return [*self.exemplars, *(row for row, _, _ in self.borders), *aligned]


def cluster_cards(
    Z: NDArray[np.float32],
    labels: NDArray[np.intp],
    confidence: drawing.Floats,
    second: NDArray[np.intp],
    sizes: Sequence[int],
    columns: Sequence[Sequence[tuple[str, float]]] | None = None,
) -> list[ClusterCard]:
    """One card per cluster.

    Parameters
    ----------
    Z : array of shape (n, d)
        Representation of the rows on the page.
    labels : array of shape (n,)
        Their clusters.
    confidence : array of shape (n,)
        Confidence of each label.
    second : array of shape (n,)
        The second most probable cluster of each row.
    sizes : sequence of int
        Size of each cluster, over all rows of X.
    columns : optional
        `unusual_columns` of each cluster.

    Returns
    -------
    list of ClusterCard
        Row numbers are those of Z.
    """
    members = [np.flatnonzero(labels == c) for c in range(len(sizes))]
    moments = [_moment(Z[rows]) for rows in members]
    angles = mean_subspace_angles([(vectors, dimension) for _, vectors, dimension in moments])
    cards = []
    for c, (rows, (values, vectors, dimension)) in enumerate(zip(members, moments, strict=True)):
        near = [(int(o), float(angles[c, o])) for o in np.argsort(angles[c]) if o != c and len(members[o])]
        alike = likeness(Z[rows], values, vectors)
        unsure = rows[np.argsort(confidence[rows], kind="stable")[: SIZE.borders]]
        cards.append(
            ClusterCard(
                c,
                int(sizes[c]),
                sizes[c] / max(1, sum(sizes)),
                float(confidence[rows].mean()) if len(rows) else 0.0,
                dimension,
                values.tolist(),
                near[: SIZE.neighbours],
                rows[np.argsort(-alike, kind="stable")[: SIZE.exemplars]].tolist(),
                [(int(row), float(confidence[row]), int(second[row])) for row in unsure],
                [
                    Component(float(values[i]), _most_aligned(Z, rows, vectors[:, i]))
                    for i in range(min(SIZE.components, len(values)) if len(rows) > 1 else 0)
                ],
                list(columns[c]) if columns is not None else [],
            )
        )  # fmt: skip
    return cards


def _most_aligned(Z: NDArray[np.float32], rows: NDArray[np.intp], direction: NDArray[np.float32]) -> list[int]:
    return rows[np.argsort(-np.abs(Z[rows] @ direction), kind="stable")[: SIZE.rows_per_component]].tolist()


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


def _moment(Z: NDArray[np.float32]) -> tuple[drawing.Floats, NDArray[np.float32], float]:
    """Eigenvalues (descending, summing to 1) and vectors of Z'Z / n, and the effective dimension of the rows."""
    if not len(Z):
        return np.zeros(1), np.zeros((Z.shape[1], 1), dtype=np.float32), 0.0
    values, vectors = np.linalg.eigh((Z.T @ Z).astype(np.float64) / len(Z))
    values = np.maximum(values[::-1], 0) / max(values.sum(), np.finfo(float).tiny)
    dimension = float(theory.effective_rank_of_spectrum(torch.from_numpy(np.sqrt(values))))
    return values, vectors[:, ::-1].astype(np.float32), dimension
