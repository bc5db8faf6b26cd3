"""Labels of rows from random walks between them: many labellings by merging, a vote, and the likelihood."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from prodsc.core.graph.kmeans import quick_kmeans
from prodsc.core.graph.walk import Walk, walk_eigenvectors, walk_representation
from prodsc.core.graph.walk_information import information, joint_distribution, x_log_x
from prodsc.core.graph.walk_likelihood import Gaussians, climb, log_likelihood, walk_scores
from prodsc.random import generator


@dataclass(frozen=True)
class WalkRules:
    """Constants of the search. docs/notes/walk_information.md has the study; "seen" means chosen with classes in view
    on its study sets."""

    gammas: tuple[float, ...] = (400.0, 1600.0)  # seen
    min_vectors: int = 64  # else 2k: small clusters need finer structure than k
    pieces_per_cluster: int = 6  # seen: 3, 4, 6 and 12 were tried
    max_extra_pieces: int = 100  # seen: 50, 100 and 150 were tried; more cost time and steadiness for many clusters
    min_piece_rows: int = 8  # average rows of a piece, so that its walk can be estimated
    min_starts: int = 5  # of k-means for each walk: more agree better between seeds
    max_starts: int = 15
    start_work: int = 2**21  # rows times pieces of all starts, beyond which no more than the fewest are made: a second
    move_rounds: int = 5  # of the rows of each labelling before the vote
    # Clusters of very different size: the leading eigenvectors replace the vote where all three hold.
    uneven_entropy: float = 0.85  # of log k (seen: Reuters)
    same_nmi: float = 0.8  # seen: Reuters
    clear_information: float = 0.87  # of the entropy (seen: Reuters, HAPT-561)


WALK_RULES = WalkRules()


@dataclass(frozen=True)
class WalkLabels:
    """Labels of the rows of a walk."""

    labels: np.ndarray
    uneven: bool  # whether clusters differ so much in size that the leading eigenvectors decided
    information: float  # that the vote of the merged labellings keeps: comparable whether sizes are uneven or not


def label_walks(
    walks: Sequence[Walk],
    points: np.ndarray,
    k: int,
    seed: int,
    n_neighbors: Sequence[int],
    rules: WalkRules = WALK_RULES,
) -> WalkLabels:
    """Labels in k clusters that make the walks and the rows likely.

    Parameters
    ----------
    walks : sequence of Walk
        On the same rows, with different numbers of neighbours. Rows move by the one in the middle.
    points : ndarray of shape (n, d)
        The rows, of length 1.
    k : int
        Number of clusters.
    seed : int
        Seed of the starts of k-means.
    n_neighbors : sequence of int
        Neighbours of a row in each walk.
    rules : WalkRules

    Returns
    -------
    WalkLabels
    """
    walk = walks[len(walks) // 2]
    if k == 1:
        return WalkLabels(np.zeros(walk.n_rows, dtype=int), False, 0.0)
    merged: list[list[np.ndarray]] = []  # labellings of each walk
    leading: list[np.ndarray] = []  # first eigenvectors of each walk
    n_starts = rules.start_work // (walk.n_rows * _number_of_pieces(walk.n_rows, k, rules))
    n_starts = min(max(n_starts, rules.min_starts), rules.max_starts)
    seeds = generator(seed).integers(2**31, size=(len(walks), n_starts)).tolist()
    for i, one in enumerate(walks):
        values, vectors = walk_eigenvectors(one, max(2 * k, rules.min_vectors), seed)
        Z = [walk_representation(values, vectors, gamma) for gamma in rules.gammas]
        merged.append([merged_labels(one, Z[(i + j) % len(Z)], k, start, rules) for j, start in enumerate(seeds[i])])
        leading.append(walk_representation(values[:k], vectors[:, :k], 0.0))
    starts = [vote([labels for each in merged for labels in each], k), *(vote(each, k) for each in merged)]
    joint = joint_distribution(walk, starts[0], k)[0]
    uneven = None
    if information(joint) < rules.clear_information * _entropy(joint):
        uneven = _uneven_labels(walk, leading, seeds, starts[0], k, rules)
    labels = _most_likely(walks, points, starts if uneven is None else [uneven], k, n_neighbors)
    return WalkLabels(labels, uneven is not None, information(joint))


def _uneven_labels(
    walk: Walk,
    leading: Sequence[np.ndarray],
    seeds: Sequence[Sequence[int]],
    merged: np.ndarray,
    k: int,
    rules: WalkRules,
) -> np.ndarray | None:
    """The vote of clusterings of the leading eigenvectors, if it shows other clusters, of very different size."""
    pairs = zip(leading, seeds, strict=True)
    spectral = vote([quick_kmeans(points, k, start) for points, some in pairs for start in some], k)
    uneven = _entropy(joint_distribution(walk, spectral, k)[0]) < rules.uneven_entropy * np.log(k)
    return spectral if uneven and _likeness(common_rows(merged, spectral, k)) < rules.same_nmi else None


def _entropy(joint: np.ndarray) -> float:
    """Of the sizes of clusters, in nats."""
    return float(max(-x_log_x(joint.sum(1)).sum(), 1e-12))


def _most_likely(
    walks: Sequence[Walk], points: np.ndarray, starts: Sequence[np.ndarray], k: int, n_neighbors: Sequence[int]
) -> np.ndarray:
    """The vote of the starts as they climb, or of what the rows alone make of them first, by the mean likelihood."""

    middle = len(walks) // 2

    gaussians = Gaussians(points)

    def by_rows(labels: np.ndarray) -> np.ndarray:
        return gaussians.scores(labels, k)

    def by_both(labels: np.ndarray) -> np.ndarray:
        return by_rows(labels) + n_neighbors[middle] * walk_scores(walks[middle], labels, k)

    def mean_likelihood(found: Sequence[np.ndarray]) -> float:
        return float(np.mean([log_likelihood(walks, gaussians, labels, k, n_neighbors) for labels in found]))

    at_once = [climb(start, by_both) for start in starts]
    rows_first = [climb(climb(start, by_rows), by_both) for start in starts]
    return climb(vote(max((at_once, rows_first), key=mean_likelihood), k), by_both)


def merged_labels(walk: Walk, Z: np.ndarray, k: int, seed: int, rules: WalkRules = WALK_RULES) -> np.ndarray:
    """Labels in k clusters: small clusters of Z, merged by the information they lose, then rows moved.

    Parameters
    ----------
    walk : Walk
    Z : ndarray of shape (n, d)
        Coordinates of the rows.
    k : int
    seed : int
        Seed of k-means.
    rules : WalkRules

    Returns
    -------
    ndarray of int
    """
    pieces = np.unique(quick_kmeans(Z, _number_of_pieces(len(Z), k, rules), seed), return_inverse=True)[1]
    n_pieces = int(pieces.max()) + 1
    merged = merge_clusters(joint_distribution(walk, pieces, n_pieces)[0], k)[pieces]
    return climb(merged, lambda labels: walk_scores(walk, labels, k), rules.move_rounds)


def _number_of_pieces(n_rows: int, k: int, rules: WalkRules) -> int:
    """Small clusters that are merged into k."""
    wanted = min(rules.pieces_per_cluster * k, k + rules.max_extra_pieces, n_rows // rules.min_piece_rows)
    return min(max(k, wanted), n_rows)


def merge_clusters(joint: np.ndarray, k: int) -> np.ndarray:
    """Merge the two clusters that lose the least information, until k are left.

    Parameters
    ----------
    joint : ndarray of shape (m, m)
    k : int

    Returns
    -------
    ndarray of int, shape (m,)
        The merged cluster, below k, of each cluster.
    """
    joint = joint.copy()
    m = len(joint)
    merged_into, gone = np.arange(m), np.zeros(m, dtype=bool)
    losses = np.stack([_merge_losses(joint, r) for r in range(m)])
    np.fill_diagonal(losses, np.inf)
    for _ in range(m - k):
        r, s = sorted(divmod(int(losses.argmin()), m))
        # A merge changes the other losses only by what they have of columns r and s, and only where both clusters of
        # a pair have walks there: far less than m^3.
        near = np.flatnonzero(joint[:, r] + joint[:, s])
        pairs = np.ix_(near, near)
        losses[pairs] -= _column_losses(joint[near, r]) + _column_losses(joint[near, s])
        joint[r] += joint[s]
        joint[:, r] += joint[:, s]
        joint[s] = joint[:, s] = 0
        gone[s] = True
        merged_into[merged_into == s] = r
        losses[pairs] += _column_losses(joint[near, r])
        row = _merge_losses(joint, r)
        row[gone] = row[r] = np.inf
        losses[r] = losses[:, r] = row
        losses[s] = losses[:, s] = np.inf
    return np.unique(merged_into, return_inverse=True)[1]


def _merge_losses(joint: np.ndarray, r: int) -> np.ndarray:
    """The information that is lost if cluster r is merged with each other cluster."""
    size, diagonal, own = joint.sum(1), np.diag(joint), x_log_x(np.diag(joint))
    near = np.flatnonzero(joint[r])  # walks to other clusters are merged with none and lose nothing
    to_near = joint[:, near]
    separate = x_log_x(to_near)
    apart = separate + x_log_x(joint[r, near]) - x_log_x(joint[r, near] + to_near)
    apart[:, near == r] = 0  # walks between the two and inside them count once, below
    apart[near, np.arange(len(near))] = 0
    inside = own[r] + own + 2 * x_log_x(joint[r]) - x_log_x(joint[r, r] + diagonal + 2 * joint[r])
    return np.asarray(2 * apart.sum(1) + inside - 2 * (x_log_x(size[r]) + x_log_x(size) - x_log_x(size[r] + size)))


def _column_losses(column: np.ndarray) -> np.ndarray:
    """The part of the loss of each pair that comes from walks to and from one other cluster."""
    terms = x_log_x(column)
    return np.asarray(2 * (terms[:, None] + terms[None] - x_log_x(column[:, None] + column[None])))


def vote(labellings: Sequence[np.ndarray], k: int) -> np.ndarray:
    """The label that most labellings give to a row.

    Parameters
    ----------
    labellings : sequence of ndarray of int
        Their clusters are matched to those of the labelling that is most like the others (NMI), then to the result.
    k : int

    Returns
    -------
    ndarray of int
    """
    common = [[common_rows(a, b, k) for b in labellings] for a in labellings]
    reference = labellings[int(np.argmax([sum(map(_likeness, row)) for row in common]))]
    rows = np.arange(len(reference))
    for _ in range(2):
        votes = np.zeros((len(rows), k))
        for labels in labellings:
            matching = linear_sum_assignment(common_rows(labels, reference, k), maximize=True)[1]
            votes[rows, matching[labels]] += 1
        reference = votes.argmax(1)
    return reference


def common_rows(labels: np.ndarray, other: np.ndarray, k: int) -> np.ndarray:
    """How many rows each cluster has in common with each cluster of another labelling, k x k.

    Parameters
    ----------
    labels, other : ndarray of int, shape (n,)
        Below k.
    k : int

    Returns
    -------
    ndarray of int, shape (k, k)
    """
    return np.bincount(labels * k + other, minlength=k * k).reshape(k, k)


def _likeness(common: np.ndarray) -> float:
    """NMI of two labellings, from their common rows."""
    joint = common / common.sum()
    entropies = -x_log_x(joint.sum(0)).sum() - x_log_x(joint.sum(1)).sum()
    return 2 * information(joint) / float(max(entropies, 1e-12))
