"""The start of a fit of features: a random walk between nearest rows, and the labels that it suggests.

The walk takes the place of the coefficients C while Y is not trained yet. The labels are learned by the label head of
the network. docs/methods/pro-dsc.md describes the steps; docs/notes/walk_information.md has the measurements.
"""

from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from prodsc import ranks
from prodsc.core.graph import Walk, WalkLabels, WalkSampler, label_walks, make_walk, neighbours_and_distances
from prodsc.core.graph.walk_labels import WALK_RULES, WalkRules
from prodsc.memory import affordable
from prodsc.nn import Moments, PrincipalCoordinates
from prodsc.random import Stream, sorted_subset
from prodsc.sources.rows import RowReader


@dataclass(frozen=True)
class WalkStartRules:
    """Constants of the start (docs/notes/walk_information.md)."""

    n_neighbors: int = 15  # as UMAP; at most half of a cluster of average size, so that walks stay in clusters
    min_neighbors: int = 3
    factors: tuple[float, ...] = (0.5, 1, 2)  # of the neighbours, a graph for each
    max_spreads: tuple[float, ...] = (2.0, 1.0)  # widest column, in medians: the more informative one is taken
    spread_rows: int = 3000  # rows on which it is chosen
    graph_rows: int = 2**15  # of more rows a random part is clustered; the network labels the others
    graph_numbers: int = 2**27  # of these rows, 512 MB


WALK_START_RULES = WalkStartRules()
FEW_LABELLINGS = replace(WALK_RULES, max_starts=WALK_RULES.min_starts)  # with fewer, the choice of a spread is noisy


@dataclass(frozen=True)
class WalkStart:
    """Coordinates of rows, the labels that the network learns, and draws from the walk between the rows."""

    points: Tensor  # outputs of the first layer of the network, which is fixed
    labels: Tensor
    sampler: WalkSampler
    uneven: bool


def start_walk(
    rows: RowReader,
    coordinates: PrincipalCoordinates,
    k: int,
    seed: int,
    device: torch.device,
    rules: WalkStartRules = WALK_START_RULES,
) -> WalkStart:
    """Fit the coordinates, walk between nearest rows and label them.

    Parameters
    ----------
    rows : RowReader
        The training rows.
    coordinates : PrincipalCoordinates
        Is fitted.
    k : int
        Number of clusters.
    seed : int
    device : torch.device
    rules : WalkStartRules

    Returns
    -------
    WalkStart
    """
    X = _read_in_order_of_content(rows, seed, rules).to(device)
    rules = replace(rules, n_neighbors=neighbours_within(len(X), k, rules))
    moments = Moments.of(X)
    coordinates.fit(moments, _choose_max_spread(X, moments, coordinates, k, rules))
    ranks.broadcast(*coordinates.state_dict().values())
    points = coordinates(X)
    walks, found = _label(points, k, seed, rules.factors, rules)
    labels = torch.from_numpy(found.labels).long().to(device)
    ranks.broadcast(labels)
    return WalkStart(points, labels, WalkSampler(walks[len(walks) // 2]), found.uneven)


def label_points(points: Tensor, k: int, rules: WalkStartRules = WALK_START_RULES) -> np.ndarray:
    """Labels of a few points by one walk between them: a first look.

    Parameters
    ----------
    points : Tensor of shape (n, d)
    k : int
        Number of clusters.
    rules : WalkStartRules

    Returns
    -------
    ndarray of int, shape (n,)
    """
    rules = replace(rules, n_neighbors=neighbours_within(len(points), k, rules))
    return _label(points, k, 0, (1,), rules, FEW_LABELLINGS)[1].labels


def neighbours_within(n_rows: int, k: int, rules: WalkStartRules = WALK_START_RULES) -> int:
    """Neighbours of a row: at most half of a cluster of average size, so that walks stay in clusters."""
    return min(rules.n_neighbors, max(rules.min_neighbors, n_rows // (2 * k)))


def _read_in_order_of_content(rows: RowReader, seed: int, rules: WalkStartRules) -> Tensor:
    """Some or all rows, sorted by their bytes, so that the order in which a user has them does not matter."""
    width = int(np.prod(rows.array.shape[1:]))
    n = min(rules.graph_rows, max(affordable(rules.graph_numbers) // width, 2))
    chosen = np.arange(len(rows)) if len(rows) <= n else sorted_subset(len(rows), n, seed, Stream.NEIGHBOUR_POOL)
    X = torch.cat([*rows.chunks(chosen)])
    content = np.ascontiguousarray(X.numpy()).view(f"S{X.shape[1] * X.element_size()}").ravel()
    return X[torch.from_numpy(np.argsort(content, kind="stable"))]


def _choose_max_spread(
    X: Tensor, moments: Moments, coordinates: PrincipalCoordinates, k: int, rules: WalkStartRules
) -> float:
    """The limit of the columns' spread under which the walk on some rows keeps the most information."""
    some = X[:: -(-len(X) // rules.spread_rows)]

    def kept(max_spread: float) -> float:
        coordinates.fit(moments, max_spread)
        return _label(coordinates(some), k, 0, (1,), rules, FEW_LABELLINGS)[1].information

    return max(rules.max_spreads, key=kept)


def _label(
    points: Tensor,
    k: int,
    seed: int,
    factors: tuple[float, ...],
    rules: WalkStartRules,
    walk_rules: WalkRules = WALK_RULES,
) -> tuple[list[Walk], WalkLabels]:
    """Labels of points by the walks on graphs of so many times as many neighbours."""
    sizes = [max(1, int(factor * rules.n_neighbors)) for factor in factors]
    near, distances = (part.cpu().numpy() for part in neighbours_and_distances(points, max(sizes)))
    walks = [make_walk(near[:, :m], distances[:, :m]) for m in sizes]
    unit = normalize(points).double().cpu().numpy()
    return walks, label_walks(walks, unit, k, seed, sizes, walk_rules)
