"""Random walks on neighbour graphs, and labels that keep their information, against naive forms."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from prodsc.core import losses
from prodsc.core.graph import Walk, WalkSampler, label_walks, make_walk, neighbours_and_distances, walk_eigenvectors
from prodsc.core.graph.kmeans import quick_kmeans
from prodsc.core.graph.walk_information import information, joint_distribution
from prodsc.core.graph.walk_labels import _likeness, common_rows, merge_clusters, vote
from prodsc.core.graph.walk_likelihood import PRECISION, Gaussians, climb, log_likelihood, walk_scores
from prodsc.core.metrics import accuracy, nmi


def blobs(n=40, k=3, seed=0):
    """Rows around k orthogonal directions."""
    random = np.random.default_rng(seed)
    y = np.repeat(np.arange(k), n)
    return np.eye(8)[y] + 0.15 * random.standard_normal((n * k, 8)), y


def unit(X):
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def walk_of(X, m=8) -> Walk:
    return make_walk(*(part.numpy() for part in neighbours_and_distances(torch.from_numpy(X), m)))


def _reference_information(joint):
    p = joint.sum(1)
    cells = [(a, b) for a in range(len(p)) for b in range(len(p)) if joint[a, b] > 0]
    return sum(joint[a, b] * np.log(joint[a, b] / (p[a] * p[b])) for a, b in cells)


def _reference_merge(joint, k):
    """Try every pair at every merge."""
    groups = [[i] for i in range(len(joint))]

    def value(groups):
        return _reference_information(np.array([[joint[np.ix_(a, b)].sum() for b in groups] for a in groups]))

    while len(groups) > k:
        options = []
        for i in range(len(groups)):
            for j in range(i + 1, len(groups)):
                rest = [group for t, group in enumerate(groups) if t not in (i, j)]
                options.append([*rest, groups[i] + groups[j]])
        groups = max(options, key=value)
    labels = np.zeros(len(joint), dtype=int)
    for number, group in enumerate(groups):
        labels[group] = number
    return labels


def test_neighbours_are_the_nearest_unit_rows():
    X = np.random.default_rng(0).standard_normal((30, 5))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    D = np.linalg.norm(unit[:, None] - unit[None], axis=2) + np.diag(np.full(30, np.inf))
    near, distances = neighbours_and_distances(torch.from_numpy(X), 4, block_size=7)
    np.testing.assert_array_equal(near.numpy(), np.argsort(D, axis=1)[:, :4])
    np.testing.assert_allclose(distances.numpy(), np.sort(D, axis=1)[:, :4], atol=1e-7)


def test_weights_of_a_row_add_up_before_both_directions_are_united():
    near = np.array([[1, 2, 3], [0, 2, 3], [0, 1, 3], [0, 1, 2]])
    distances = np.array([[1.0, 2, 4], [1, 1.5, 3], [2, 1.5, 3], [4, 3, 3]])
    distances = np.sort(distances, axis=1)
    W = make_walk(near, distances).weights.toarray()
    np.testing.assert_allclose(W, W.T)
    directed = np.zeros((4, 4))
    for i in range(4):
        beyond = distances[i] - distances[i, 0]
        widths = np.geomspace(1e-3, 1e3, 200_001)
        totals = sum(np.exp(-b / widths) for b in beyond)
        directed[i, near[i]] = np.exp(-beyond / widths[np.abs(totals - 2).argmin()])  # log2(3 + 1) = 2
    np.testing.assert_allclose(W, directed + directed.T - directed * directed.T, atol=1e-3)


def test_steps_are_probabilities_also_of_equal_rows():
    walk = walk_of(np.ones((12, 3)), 3)
    np.testing.assert_allclose(walk.step.sum(axis=1), 1, rtol=1e-6)


@pytest.mark.parametrize("n", [20, 200])  # dense and by subspace iteration
def test_eigenvectors_are_those_of_the_normalised_weights(n):
    walk = walk_of(np.random.default_rng(1).standard_normal((n, 4)), 6)
    scale = 1 / np.sqrt(walk.degrees)
    values = np.linalg.eigvalsh(scale[:, None] * walk.weights.toarray() * scale)[::-1]
    found, vectors = walk_eigenvectors(walk, 8, 0)
    np.testing.assert_allclose(found, values[:8], atol=1e-3)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(8), atol=1e-5)


def test_quick_kmeans_finds_clear_clusters_and_stays_within_bounds():
    X, y = blobs()
    points = unit(X).astype(np.float32)
    assert accuracy(y, quick_kmeans(points, 3, 0)) == 1
    np.testing.assert_array_equal(quick_kmeans(points, 3, 1), quick_kmeans(points, 3, 1))
    assert quick_kmeans(np.ones((5, 1), np.float32), 4, 0).max() < 4  # fewer different rows than clusters


def test_the_vote_compares_labellings_by_nmi():
    a, b = np.random.default_rng(0).integers(0, 4, (2, 50))
    assert _likeness(common_rows(a, b, 4)) == pytest.approx(nmi(a, b))
    np.testing.assert_array_equal(
        common_rows(a, b, 4), [[((a == i) & (b == j)).sum() for j in range(4)] for i in range(4)]
    )


def test_joint_distribution_counts_edges():
    X, y = blobs()
    walk = walk_of(X)
    W = walk.weights.toarray()
    expected = np.array([[W[np.ix_(y == a, y == b)].sum() for b in range(3)] for a in range(3)]) / W.sum()
    joint, ends = joint_distribution(walk, y, 3)
    np.testing.assert_allclose(joint, expected, atol=1e-6)
    np.testing.assert_allclose(ends.sum(1), 1, atol=1e-5)
    assert information(joint) == pytest.approx(_reference_information(expected), abs=1e-5)


@given(st.integers(0, 10_000), st.integers(1, 5))
@settings(max_examples=20, deadline=None)
def test_merging_is_greedy_in_information(seed, k):
    random = np.random.default_rng(seed)
    J = random.random((7, 7)) ** 3 * (random.random((7, 7)) < 0.6) + np.eye(7)  # some pairs have no walks between them
    J = (J + J.T) / (2 * J.sum())
    found, expected = merge_clusters(J, k), _reference_merge(J, k)
    assert accuracy(expected, found) == 1


def test_rows_move_to_the_cluster_of_their_walks():
    X, y = blobs()
    wrong = y.copy()
    wrong[::10] = (wrong[::10] + 1) % 3
    walk = walk_of(X)
    assert accuracy(y, climb(wrong, lambda labels: walk_scores(walk, labels, 3))) == 1


def test_the_vote_is_the_majority_up_to_names():
    y = np.repeat([0, 1, 2], 5)
    odd = y.copy()
    odd[0] = 1
    assert accuracy(y, vote([y, (y + 1) % 3, odd], 3)) == 1


def test_labels_of_clear_clusters():
    X, y = blobs()
    found = label_walks([walk_of(X), walk_of(X, 16)], unit(X), 3, 0, [8, 16])
    assert accuracy(y, found.labels) == 1
    assert not found.uneven
    assert found.information == pytest.approx(np.log(3), rel=0.05)


def test_uneven_clusters_are_not_cut_into_equal_ones():
    random = np.random.default_rng(0)
    y = np.repeat([0, 1, 2, 3], [900, 30, 30, 30])
    X = np.eye(10)[y] + 0.1 * random.standard_normal((len(y), 10))
    assert accuracy(y, label_walks([walk_of(X, 10), walk_of(X, 20)], unit(X), 4, 0, [10, 20]).labels) > 0.95


def test_walks_end_near_where_they_began():
    X, y = blobs()
    walk = walk_of(X)
    rows = np.arange(len(y))
    ends = WalkSampler(walk).ends(rows, np.random.default_rng(0), max_steps=1)
    assert (np.asarray(walk.weights[rows, ends]).ravel() > 0).all()
    many = np.array([WalkSampler(walk).ends(rows[:1], np.random.default_rng(s), 1)[0] for s in range(2000)])
    share = np.bincount(many, minlength=len(y)) / len(many)
    np.testing.assert_allclose(share, walk.step[[0]].toarray().ravel(), atol=0.05)


def test_soft_information_is_that_of_certain_labels():
    X, y = blobs()
    walk = walk_of(X)
    edges = walk.weights.tocoo()
    both = edges.data > 0.999  # edges of weight 1 only, so that each counts once
    P, other = (torch.eye(3, dtype=torch.float64)[torch.from_numpy(y[side][both])] for side in (edges.row, edges.col))
    joint = (P.T @ other).numpy() / len(P)
    assert -losses.negative_information(P, other).item() == pytest.approx(_reference_information((joint + joint.T) / 2))


def _reference_gaussian(points, labels, k):
    """log p_c + log N(x_i; m_c, S) of each row and cluster, without d log 2 pi / 2."""
    d = points.shape[1]
    means = np.array([points[labels == c].mean(0) for c in range(k)])
    S = sum(np.outer(x - means[c], x - means[c]) for x, c in zip(points, labels, strict=True)) / len(points)
    S = S + PRECISION / d * np.eye(d)
    share = np.bincount(labels, minlength=k) / len(labels)
    distance = np.array([[(x - m) @ np.linalg.inv(S) @ (x - m) for m in means] for x in points])
    return np.log(share) - np.linalg.slogdet(S)[1] / 2 - distance / 2


def test_scores_of_rows_are_the_posterior_of_gaussians_with_one_covariance():
    X, y = blobs(n=12, k=3)
    labels = np.where(np.random.default_rng(1).random(len(y)) < 0.2, 0, y)
    naive = _reference_gaussian(unit(X), labels, 3)
    found = Gaussians(unit(X)).scores(labels, 3)
    for scores in (naive, found):
        scores -= np.log(np.exp(scores).sum(1, keepdims=True))  # they differ by a constant of the row
    np.testing.assert_allclose(found, naive, atol=1e-9)


def test_the_likelihood_counts_the_walk_once_for_each_neighbour_and_each_row_once():
    X, y = blobs(n=12, k=3)
    walk = walk_of(X)
    of_rows = _reference_gaussian(unit(X), y, 3)[np.arange(len(y)), y].mean()
    wide = walk_of(X, 16)
    of_walks = sum(m * _reference_information(joint_distribution(w, y, 3)[0]) for w, m in ((walk, 8), (wide, 16)))
    gaussians = Gaussians(unit(X))
    assert log_likelihood([walk, wide], gaussians, y, 3, [8, 16]) == pytest.approx(of_rows + of_walks)
    shuffled = np.random.default_rng(0).permutation(y)
    assert log_likelihood([walk], gaussians, shuffled, 3, [8]) < log_likelihood([walk], gaussians, y, 3, [8])


def test_climbing_keeps_every_cluster():
    labels = np.array([0, 0, 0, 1, 2])
    one_for_all = np.tile([1.0, 0.0, 0.0], (5, 1))
    np.testing.assert_array_equal(climb(labels, lambda _: one_for_all), labels)
