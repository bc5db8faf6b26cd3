"""Labels that keep the most information about one step of a random walk, by merging, moving and voting.

For labels c, the joint distribution J of the clusters at the two ends of a step is k x k, and the information is
I = sum_ab J_ab log(J_ab / (p_a p_b)) with p its marginal.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse
from scipy.optimize import linear_sum_assignment
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from prodsc.core import metrics
from prodsc.core.graph.walk import Walk, walk_eigenvectors, walk_representation
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
    starts: int = 3  # of k-means for each graph and gamma
    spectral_starts: int = 4
    move_rounds: int = 10
    move_steps: int = 3  # length of the walk by which rows move: less noise than one step
    settled: float = 1e-3  # rows stop moving below this share of movers
    # Clusters of very different size: the labels of leading eigenvectors replace the vote where all three hold.
    uneven_entropy: float = 0.85  # of log k (seen: Reuters)
    same_nmi: float = 0.8  # seen: Reuters
    clear_information: float = 0.87  # of the entropy (seen: Reuters, HAPT-561)


WALK_RULES = WalkRules()


@dataclass(frozen=True)
class WalkLabels:
    """Labels of the rows of a walk."""

    labels: np.ndarray
    uneven: bool  # whether clusters differ so much in size that the leading eigenvectors decided
    information: float


def label_walks(walks: Sequence[Walk], k: int, seed: int, rules: WalkRules = WALK_RULES) -> WalkLabels:
    """Labels in k clusters that keep much information about the walks.

    Parameters
    ----------
    walks : sequence of Walk
        On the same rows, with different numbers of neighbours. Rows move on the first one.
    k : int
        Number of clusters.
    seed : int
        Seed of the starts of k-means.
    rules : WalkRules

    Returns
    -------
    WalkLabels
    """
    if k == 1:
        return WalkLabels(np.zeros(walks[0].n_rows, dtype=int), False, 0.0)
    merged: list[np.ndarray] = []
    spectral: list[np.ndarray] = []
    seeds = generator(seed).integers(2**31, size=max(rules.starts, rules.spectral_starts)).tolist()
    for walk in walks:
        values, vectors = walk_eigenvectors(walk, max(2 * k, rules.min_vectors), seed)
        for gamma in rules.gammas:
            Z = walk_representation(values, vectors, gamma)
            merged += [merged_labels(walk, Z, k, start, rules) for start in seeds[: rules.starts]]
        leading = walk_representation(values[:k], vectors[:, :k], 0.0)
        spectral += [_kmeans_labels(leading, k, start) for start in seeds[: rules.spectral_starts]]
    return _choose(walks, merged, spectral, k, rules)


def _choose(
    walks: Sequence[Walk], merged: list[np.ndarray], spectral: list[np.ndarray], k: int, rules: WalkRules
) -> WalkLabels:
    """The vote of the better half of the merged candidates; a spectral one where sizes are very uneven."""
    found = merged + spectral
    joints = [[joint_distribution(walk, labels, k)[0] for walk in walks] for labels in found]
    kept = np.array([np.mean([information(J) for J in each]) for each in joints])
    entropy = np.array([max(-_x_log_x(each[0].sum(1)).sum(), 1e-12) for each in joints])
    better = np.argsort(-kept[: len(merged)], kind="stable")[: (len(merged) + 1) // 2]
    usual, other = int(better[0]), int((kept / entropy).argmax())
    uneven = bool(
        entropy[other] < rules.uneven_entropy * np.log(k)
        and metrics.nmi(found[usual], found[other]) < rules.same_nmi
        and kept[usual] < rules.clear_information * entropy[usual]
    )
    labels = found[other] if uneven else move_rows(walks[0], vote([merged[i] for i in better], k), k, rules)
    return WalkLabels(labels, uneven, information(joint_distribution(walks[0], labels, k)[0]))


def merged_labels(walk: Walk, Z: np.ndarray, k: int, seed: int, rules: WalkRules = WALK_RULES) -> np.ndarray:
    """Labels in k clusters: small clusters of Z, merged, then rows moved.

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
    labels = merge_clusters(joint_distribution(walk, pieces, n_pieces)[0], k)[pieces]
    return move_rows(walk, labels, k, rules)


def _kmeans_labels(Z: np.ndarray, k: int, seed: int) -> np.ndarray:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer different rows than clusters
        return np.asarray(KMeans(k, n_init=1, max_iter=20, random_state=seed).fit_predict(Z))


def joint_distribution(walk: Walk, labels: np.ndarray, k: int, n_steps: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """How likely each pair of clusters is at the two ends of a walk.

    Parameters
    ----------
    walk : Walk
    labels : ndarray of int, shape (n,)
    k : int
        Number of clusters.
    n_steps : int
        Length of the walk.

    Returns
    -------
    joint : ndarray of shape (k, k)
        Symmetric, with the sum 1.
    ends : ndarray of shape (n, k)
        Probability of the last cluster, for each first row.
    """
    n = len(labels)
    ends = np.zeros((n, k), dtype=np.float32)
    ends[np.arange(n), labels] = 1
    for _ in range(n_steps):
        ends = walk.step.astype(np.float32) @ ends
    joint = scipy.sparse.csr_array((walk.degrees, (labels, np.arange(n))), (k, n)) @ ends.astype(np.float64)
    joint = (joint + joint.T) / 2
    return joint / joint.sum(), ends


def information(joint: np.ndarray) -> float:
    """Mutual information of a symmetric joint distribution, in nats.

    Parameters
    ----------
    joint : ndarray of shape (k, k)

    Returns
    -------
    float
    """
    return float(_x_log_x(joint).sum() - 2 * _x_log_x(joint.sum(1)).sum())


def _x_log_x(a: np.ndarray | np.floating) -> np.ndarray:
    return np.asarray(a * np.log(np.maximum(a, 1e-300)))


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
        # A merge changes the other losses only by what they have of columns r and s: m^2 instead of m^3.
        losses -= _column_losses(joint[:, r]) + _column_losses(joint[:, s])
        joint[r] += joint[s]
        joint[:, r] += joint[:, s]
        joint[s] = joint[:, s] = 0
        gone[s] = True
        merged_into[merged_into == s] = r
        losses += _column_losses(joint[:, r])
        row = _merge_losses(joint, r)
        row[gone] = row[r] = np.inf
        losses[r] = losses[:, r] = row
        losses[s] = losses[:, s] = np.inf
    return np.unique(merged_into, return_inverse=True)[1]


def _merge_losses(joint: np.ndarray, r: int) -> np.ndarray:
    """The information that is lost if cluster r is merged with each other cluster."""
    size, diagonal = joint.sum(1), np.diag(joint)
    rows, own = _x_log_x(joint).sum(1), _x_log_x(diagonal)
    before = 2 * rows[r] - own[r] + 2 * rows - own - 2 * _x_log_x(joint[r])
    together = _x_log_x(joint[r][None] + joint)
    np.fill_diagonal(together, 0)
    together[:, r] = 0
    after = 2 * together.sum(1) + _x_log_x(joint[r, r] + diagonal + 2 * joint[r])
    return np.asarray(before - after + 2 * (_x_log_x(size[r] + size) - _x_log_x(size[r]) - _x_log_x(size)))


def _column_losses(column: np.ndarray) -> np.ndarray:
    """The part of the loss of each pair that comes from walks to and from one other cluster."""
    terms = _x_log_x(column)
    return np.asarray(2 * (terms[:, None] + terms[None] - _x_log_x(column[:, None] + column[None])))


def move_rows(walk: Walk, labels: np.ndarray, k: int, rules: WalkRules = WALK_RULES) -> np.ndarray:
    """Move rows to the cluster with the largest likelihood of their walk, half of them at a time.

    Parameters
    ----------
    walk : Walk
    labels : ndarray of int
    k : int
    rules : WalkRules

    Returns
    -------
    ndarray of int
        With all k clusters if `labels` has all of them.
    """
    random = generator(0)
    n_clusters = len(np.unique(labels))
    for _ in range(rules.move_rounds):
        joint, ends = joint_distribution(walk, labels, k, rules.move_steps)
        size = joint.sum(1) + 1e-12
        best = (ends @ np.log((joint + 1e-9) / np.outer(size, size))).argmax(1)
        moves = (best != labels) & (random.random(len(labels)) < 0.5)
        moved = np.where(moves, best, labels)
        if len(np.unique(moved)) < n_clusters:
            break
        labels = moved
        if moves.mean() < rules.settled:
            break
    return labels


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
    likeness = [sum(metrics.nmi(a, b) for b in labellings) for a in labellings]
    reference = labellings[int(np.argmax(likeness))]
    rows = np.arange(len(reference))
    for _ in range(2):
        votes = np.zeros((len(rows), k))
        for labels in labellings:
            counts = np.zeros((k, k))
            np.add.at(counts, (labels, reference), 1)
            votes[rows, linear_sum_assignment(counts, maximize=True)[1][labels]] += 1
        reference = votes.argmax(1)
    return reference
