"""Labels of rows from random walks between them: many labellings by merging, a vote, and the likelihood."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

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
    max_extra_pieces: int = 150  # bounds the cost of merging, which is cubic
    min_piece_rows: int = 8  # average rows of a piece, so that its walk can be estimated
    starts: int = 5  # of k-means for each walk: more agree better between seeds
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
    leading: list[np.ndarray] = []
    seeds = generator(seed).integers(2**31, size=(len(walks), rules.starts)).tolist()
    for i, one in enumerate(walks):
        values, vectors = walk_eigenvectors(one, max(2 * k, rules.min_vectors), seed)
        Z = [walk_representation(values, vectors, gamma) for gamma in rules.gammas]
        merged.append([merged_labels(one, Z[(i + j) % len(Z)], k, start, rules) for j, start in enumerate(seeds[i])])
        first = walk_representation(values[:k], vectors[:, :k], 0.0)
        leading += [_kmeans_labels(first, k, start) for start in seeds[i]]
    starts = [vote([labels for each in merged for labels in each], k), *(vote(each, k) for each in merged)]
    spectral = vote(leading, k)
    uneven = _is_uneven(walk, starts[0], spectral, k, rules)
    labels = _most_likely(walks, points, [spectral] if uneven else starts, k, n_neighbors)
    return WalkLabels(labels, uneven, information(joint_distribution(walk, starts[0], k)[0]))


def _is_uneven(walk: Walk, merged: np.ndarray, spectral: np.ndarray, k: int, rules: WalkRules) -> bool:
    """Whether the leading eigenvectors show other clusters, of very different size, and merging shows none clearly."""

    def entropy(labels: np.ndarray) -> float:
        return float(max(-x_log_x(joint_distribution(walk, labels, k)[0].sum(1)).sum(), 1e-12))

    kept = information(joint_distribution(walk, merged, k)[0])
    return bool(
        entropy(spectral) < rules.uneven_entropy * np.log(k)
        and _likeness(common_rows(merged, spectral, k)) < rules.same_nmi
        and kept < rules.clear_information * entropy(merged)
    )


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
    wanted = min(rules.pieces_per_cluster * k, k + rules.max_extra_pieces, len(Z) // rules.min_piece_rows)
    pieces = np.unique(_kmeans_labels(Z, min(max(k, wanted), len(Z)), seed), return_inverse=True)[1]
    n_pieces = int(pieces.max()) + 1
    merged = merge_clusters(joint_distribution(walk, pieces, n_pieces)[0], k)[pieces]
    return climb(merged, lambda labels: walk_scores(walk, labels, k), rules.move_rounds)


def _kmeans_labels(Z: np.ndarray, k: int, seed: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than clusters
        return np.asarray(KMeans(k, n_init=1, max_iter=20, random_state=seed).fit_predict(Z))


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
