"""Outlier scores: how sparsely the training rows lie around a row, beside how they lie around its neighbours.

Two views of the rows are used, since a row can be strange in either: the rows of the input with their lengths, and the
points that labels are made from. In the first, distances are those along principal directions plus what lies outside
them, which costs little for wide rows. docs/notes/outliers.md has the study.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from prodsc.core.graph.nystroem import chunks
from prodsc.random import Stream, sorted_subset
from prodsc.types import Embedding, Rows

GRID = np.linspace(0, 1, 1001)
N_REFERENCES = 2048  # training rows that others are compared with; more of them did not find more outliers
N_DIRECTIONS = 128  # principal directions of the input, as many as the network sees
N_NEIGHBOURS = 10  # half of the 20 of the local outlier factor, as the references are a sample
SAME_ROW = 0.01  # share of a usual distance below which a reference is the row itself


@dataclass(frozen=True)
class References:
    """Training rows in one view, and how densely they lie.

    Parameters
    ----------
    points : Tensor of shape (m, c)
    outside : Tensor of shape (m,)
        Squared length of each row outside the directions of `points`; zeros if there is none.
    reach : Tensor of shape (m,)
        Distance to the last of the nearest references.
    sparsity : Tensor of shape (m,)
        Log of the mean reachability distance to the nearest references, which is small where rows lie densely.
    """

    points: Rows
    outside: Tensor
    reach: Tensor
    sparsity: Tensor

    def measure(self, points: Rows, outside: Tensor) -> tuple[Tensor, Tensor]:
        """Sparsity around rows beside that around their neighbours (the local outlier factor), and their distance.

        Both are logarithms, one number for each row.
        """
        pairs = zip(chunks(points), chunks(outside[:, None]), strict=True)
        parts = [self._measure(part, off[:, 0]) for part, off in pairs]
        factor, distance = map(torch.cat, zip(*parts, strict=True))
        return factor, distance

    def _measure(self, points: Rows, outside: Tensor) -> tuple[Tensor, Tensor]:
        inside = torch.cdist(points, self.points)
        squares = inside.square() + outside[:, None] + self.outside
        # Two rows share nothing outside the directions, unless they are the same row.
        squares[inside < SAME_ROW * self.reach.median()] = 0
        near, distances = _nearest_others(squares)
        distances = distances.clamp_min(SAME_ROW * self.reach.median())
        reachability = torch.maximum(distances, self.reach[near]).mean(1).log()
        return reachability - self.sparsity[near].mean(1), distances.mean(1).log()


def make_references(points: Rows, outside: Tensor) -> References:
    """References from training rows.

    Parameters
    ----------
    points : Tensor of shape (m, c)
    outside : Tensor of shape (m,)
        Squared length outside the directions of `points`.
    """
    squares = torch.cdist(points, points).square() + outside[:, None] + outside
    near, distances = _nearest_others(squares.fill_diagonal_(0))
    usual = distances[distances > 0].median() if (distances > 0).any() else 1.0
    distances = distances.clamp_min(SAME_ROW * usual)  # of rows that are there several times
    reach = distances.amax(1)
    return References(points, outside, reach, torch.maximum(distances, reach[near]).mean(1).log())


def _nearest_others(squares: Tensor) -> tuple[Tensor, Tensor]:
    """The nearest references of each row and their distances; one at distance 0 is the row itself."""
    smallest = squares.topk(min(N_NEIGHBOURS + 1, squares.shape[1]), dim=1, largest=False, sorted=True)
    itself = smallest.values[:, :1] == 0
    near = torch.where(itself, smallest.indices[:, 1:], smallest.indices[:, :-1])
    return near, torch.where(itself, smallest.values[:, 1:], smallest.values[:, :-1]).sqrt()


@dataclass(frozen=True)
class OutlierModel:
    """What outlier scores need of the training rows.

    Parameters
    ----------
    mean : Tensor of shape (d,)
        Of the rows of the input.
    directions : Tensor of shape (d, c)
        Their principal directions.
    of_input, of_points : References
        The two views.
    centre, spread : Tensor of shape (3,)
        Median of each measure among training rows, and the way from there to the upper quartile.
    quantiles : ndarray of shape (1001,)
        Quantiles of the strangeness of training rows.
    """

    mean: Tensor
    directions: Tensor
    of_input: References
    of_points: References
    centre: Tensor
    spread: Tensor
    quantiles: np.ndarray

    def strangeness(self, rows: Rows, points: Embedding) -> Tensor:
        """One number for each row: log sum exp of the three measures, each in units of its own spread."""
        measures = self._measures(rows, points)
        return ((measures - self.centre) / self.spread).double().logsumexp(1)

    def _measures(self, rows: Rows, points: Embedding) -> Tensor:
        centred = rows - self.mean
        inside = centred @ self.directions
        outside = (torch.linalg.vector_norm(centred, dim=1).square() - inside.square().sum(1)).clamp_min(0)
        local, distance = self.of_input.measure(inside, outside)
        among_points, _ = self.of_points.measure(points, points.new_zeros(len(points)))
        return torch.stack([local, distance, among_points], 1)

    def scores(self, strangeness: np.ndarray) -> np.ndarray:
        """The share of training rows that are less strange, from 0 to 1."""
        return np.interp(strangeness, self.quantiles, GRID)


def fit_outlier_model(rows: Rows, points: Embedding) -> OutlierModel:
    """An outlier model from training rows, without its quantiles.

    Parameters
    ----------
    rows : Tensor of shape (m, d)
        Some training rows of the input.
    points : Tensor of shape (m, c)
        The same rows as labels are made from them.
    """
    mean = rows.mean(0)
    n_directions = min(N_DIRECTIONS, *rows.shape)
    directions = _principal_directions(rows - mean, n_directions)
    inside = (rows - mean) @ directions
    outside = ((rows - mean).square().sum(1) - inside.square().sum(1)).clamp_min(0)
    blank = torch.zeros(3).to(rows)
    model = OutlierModel(
        mean,
        directions,
        make_references(inside, outside),
        make_references(points, points.new_zeros(len(points))),
        blank,
        blank + 1,
        np.zeros(0),
    )
    measures = model._measures(rows, points)
    centre, upper = measures.quantile(0.5, 0), measures.quantile(0.75, 0)
    return replace(model, centre=centre, spread=(upper - centre).clamp_min(1e-6))


def _principal_directions(centred: Rows, n_directions: int) -> Tensor:
    """Leading right singular vectors, from the smaller of the two products: a full decomposition copies the rows."""
    if len(centred) >= centred.shape[1]:
        return torch.linalg.eigh(centred.T @ centred)[1][:, -n_directions:].contiguous()
    values, vectors = torch.linalg.eigh(centred @ centred.T)
    kept = values[-n_directions:] > 1e-6 * values[-1].clamp_min(1e-30)
    vectors = vectors[:, -n_directions:][:, kept]
    return torch.nn.functional.normalize(centred.T @ vectors, dim=0)


def noise_threshold(
    strangeness: np.ndarray, noise: float | str | None, body: tuple[float, float] = (0.5, 0.9), left: float = 0.005
) -> float:
    """The strangeness from which a row is noise.

    Parameters
    ----------
    strangeness : ndarray of shape (n,)
        Of the training rows.
    noise : float, "auto" or None
        The share of training rows that are noise; or rows beyond an exponential tail through the median and the 90th
        percentile of the strangeness; or none.
    body : tuple of float
        Quantiles that the tail goes through: up to a tenth of the rows may be noise.
    left : float
        Share of rows that such a tail would still leave beyond the threshold. docs/notes/outliers.md has the study.

    Returns
    -------
    float
    """
    if noise is None:
        return np.inf
    if not isinstance(noise, str):
        return float(np.quantile(strangeness, 1 - noise))
    low, high = np.quantile(strangeness, body)
    slope = (high - low) / np.log((1 - body[0]) / (1 - body[1]))
    return float(high + slope * np.log((1 - body[1]) / left))


def sample_references(n: int, seed: int, size: int = N_REFERENCES) -> np.ndarray:
    """Numbers of the training rows that others are compared with, ascending.

    Parameters
    ----------
    n : int
        Number of training rows.
    seed : int
    size : int
        Number of rows to draw; if there are fewer, all are taken.
    """
    return sorted_subset(n, size, seed, Stream.OUTLIER_DICTIONARY)


def strangeness_quantiles(strangeness: np.ndarray) -> np.ndarray:
    """Quantiles of the strangeness of training rows, as `OutlierModel` needs them."""
    return np.quantile(strangeness, GRID)
