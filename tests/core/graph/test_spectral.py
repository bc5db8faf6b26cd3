"""Labels of landmarks and of other rows against dense spectral clustering."""

import functools

import numpy as np
import pytest
import scipy.sparse
import torch
from scipy.optimize import brentq
from scipy.special import entr, softmax
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from prodsc.core.graph import (
    CoefficientKernel,
    GramKernel,
    NeighbourKernel,
    PowerKernel,
    eigengap,
    kmeans,
    leading_eigenvectors,
    spectral_labels,
    spectral_partition,
)
from prodsc.core.graph.nystroem import nystroem_directions
from prodsc.core.metrics import accuracy
from prodsc.core.self_expression import self_expression


def lines(n_per_class=40, k=3, d=8, noise=0.15, seed=0):
    """Unit rows near k orthogonal lines, with either sign."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(k), n_per_class)
    Y = np.eye(d)[y] * rng.choice([-1, 1], len(y))[:, None] + noise * rng.standard_normal((len(y), d))
    return torch.from_numpy(Y / np.linalg.norm(Y, axis=1, keepdims=True)).float(), y


N_EFFECTIVE, N_NEAREST = 8, 64
KERNELS = {
    "gram": GramKernel,
    "power": lambda Y: PowerKernel(GramKernel(Y), 4.0),
    "softmax": lambda Y: CoefficientKernel(Y, 0.2, 1),
    "sinkhorn": lambda Y: CoefficientKernel(Y, 0.2, 4),
    "neighbours": NeighbourKernel,
}


def _reference_affinity(name, Y):
    if name == "power":
        return (Y @ Y.T) ** 4
    if name == "gram":
        return (Y @ Y.T).abs()
    if name == "neighbours":
        return _neighbours(Y)
    return self_expression(Y, 0.2, "sinkhorn", 1 if name == "softmax" else 4).A


def _neighbours(Y):
    """Row by row in float64: the eta at which the entropy over the nearest is log(N_EFFECTIVE)."""
    S = (Y.double() @ Y.double().T).abs().numpy()
    P = np.zeros_like(S)
    for i in range(len(S)):
        near = [j for j in np.argsort(-S[i], kind="stable") if j != i][:N_NEAREST]

        def count_beyond(eta, K=S[i, near]):
            return entr(softmax(K / eta)).sum() - np.log(N_EFFECTIVE)

        low, high = 1e-3, 1.0
        eta = low if count_beyond(low) > 0 else high if count_beyond(high) < 0 else brentq(count_beyond, low, high)
        P[i, near] = softmax(S[i, near] / eta)
    return torch.from_numpy((P + P.T) / 2).float()


def _normalised(W):
    W = W.double().numpy()
    scale = 1 / np.sqrt(W.sum(1))
    return scale[:, None] * W * scale


def _reference_labels(W, k):
    """Normalised Laplacian, k eigenvectors, rows normalised, k-means: all dense, in float64."""
    _, vectors = np.linalg.eigh(np.eye(len(W)) - _normalised(W))
    U = vectors[:, :k]
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    return KMeans(k, n_init=10, random_state=0).fit(U).labels_


@pytest.mark.parametrize("name", KERNELS)
def test_a_kernel_gives_landmarks_their_row_of_the_affinity(name):
    Y, _ = lines()
    torch.testing.assert_close(KERNELS[name](Y).rows(Y), _reference_affinity(name, Y), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(KERNELS[name](Y).matrix(), _reference_affinity(name, Y), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", KERNELS)
def test_coincident_rows_still_count_for_each_other(name):
    """A row leaves out itself once; which of its copies that is cannot matter to any sum."""
    Y, _ = lines(n_per_class=10)
    Y = torch.cat([Y, Y[:5]])
    expected = _reference_affinity(name, Y)
    torch.testing.assert_close(KERNELS[name](Y).rows(Y).sum(1), expected.sum(1), atol=1e-5, rtol=1e-4)
    torch.testing.assert_close(KERNELS[name](Y).matrix(), expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("name", KERNELS)
def test_labels_are_those_of_dense_spectral_clustering(name):
    Y, _ = lines(noise=0.35)
    found = spectral_partition(KERNELS[name](Y), 3, n_init=10, seed=0).labels(Y)
    assert adjusted_rand_score(_reference_labels(_reference_affinity(name, Y), 3), found) > 0.99


@pytest.mark.parametrize("name", KERNELS)
def test_a_row_is_labelled_on_its_own(name):
    Y, y = lines(noise=0.25)
    new, _ = lines(noise=0.25, seed=1)
    partition = spectral_partition(KERNELS[name](Y), 3, n_init=10, seed=0)
    together = partition.labels(new)
    alone = np.concatenate([partition.labels(row[None]) for row in new])
    np.testing.assert_array_equal(together, alone)
    assert adjusted_rand_score(y, together) > 0.9


def test_a_new_row_counts_as_one_more_landmark():
    """It has an eta of its own; landmarks keep theirs, and have one more to share their weight among."""
    Y, _ = lines(n_per_class=60, noise=0.3)
    kernel = NeighbourKernel(Y[:-1])
    own, S = [], (Y[:-1] @ Y[:-1].T).abs().fill_diagonal_(-1)
    new, K, found = _neighbours(Y)[-1, :-1], (Y[:-1] @ Y[-1]).abs(), kernel.rows(Y[-1:])[0]
    for j in range(len(K)):
        near = S[j].topk(N_NEAREST).values
        weights = torch.cat([near, K[j : j + 1]]).div(kernel.etas[j]).softmax(0)
        of_landmark = weights[-1] if K[j] >= near[-1] else 0.0
        own.append(float(2 * found[j] - of_landmark))
    assert min(own) > -1e-6
    assert sum(own) == pytest.approx(1, abs=1e-4), "what is not a landmark's part is the row's own, and sums to 1"
    torch.testing.assert_close(found, new, atol=2e-3, rtol=0.05)  # nearly that of one more landmark


def test_as_many_rows_count_for_a_lonely_row_as_in_a_crowd():
    Y, _ = lines(n_per_class=100, noise=0.05)
    far = torch.nn.functional.normalize(torch.cat([Y, torch.ones(1, 8)]))
    kernel = NeighbourKernel(far)
    of_row = {name: K.matrix() for name, K in (("own", kernel), ("one", CoefficientKernel(far, 0.01, 1)))}
    degrees = {name: A.sum(1)[-1] / A.sum(1).mean() for name, A in of_row.items()}
    assert degrees["own"] > 0.4
    assert kernel.etas[-1] > 3 * kernel.etas[:-1].median()
    assert (of_row["own"] > 0).float().sum(1).min() >= N_NEAREST


def test_landmarks_stand_for_the_rest():
    Y, y = lines(n_per_class=300, noise=0.25)
    some = torch.from_numpy(np.random.default_rng(0).choice(len(Y), 90, replace=False))
    partition = spectral_partition(GramKernel(Y[some]), 3, n_init=10, seed=0)
    assert adjusted_rand_score(y, partition.labels(Y)) > 0.97


def _reference_nystroem(K, W, k):
    """The N x N matrix, made: leading eigenvectors of D^-1/2 K W^-1 K' D^-1/2, W^-1 without what is weak."""
    values, vectors = np.linalg.eigh(W)
    strong = values > min(0.01 * values[-1], np.sort(values)[-2 * k - 1])
    A = K @ (vectors[:, strong] / values[strong]) @ vectors[:, strong].T @ K.T
    scale = 1 / np.sqrt(A.sum(1))
    return np.linalg.eigh(scale[:, None] * A * scale)[1][:, -k:]


@pytest.mark.parametrize("name", ["gram", "power"])
def test_nystroem_against_the_matrix_that_it_does_not_make(name, monkeypatch):
    monkeypatch.setattr("prodsc.core.graph.nystroem.chunks.__defaults__", (64,))  # several chunks
    Y, _ = lines(n_per_class=80, k=4, noise=0.2)
    kernel = KERNELS[name](Y[::5])
    K, W = kernel.rows(Y).double().numpy(), kernel.matrix().double().numpy()
    found = torch.nn.functional.normalize(kernel.rows(Y) @ nystroem_directions(kernel, Y, 4)).numpy()
    naive = _reference_nystroem(K, W, 4)
    naive /= np.linalg.norm(naive, axis=1, keepdims=True)
    signs = np.sign((found * naive).sum(0))  # of an eigenvector nothing says
    np.testing.assert_allclose(found * signs, naive, atol=2e-3)


def test_nystroem_by_all_rows_is_exact_where_the_affinity_has_no_negative_eigenvalue(monkeypatch):
    whole = functools.partial(nystroem_directions, weak=0.0)
    monkeypatch.setattr("prodsc.core.graph.spectral.nystroem_directions", whole)
    Y, y = lines(n_per_class=60, k=3)
    kernel = PowerKernel(GramKernel(Y), 2.0)
    exact, found = spectral_partition(kernel, 3, 10, 0), spectral_partition(kernel, 3, 10, 0, rows=Y)
    assert found.inertia == pytest.approx(exact.inertia, rel=1e-2)
    few = spectral_partition(PowerKernel(GramKernel(Y[::9]), 2.0), 3, 10, 0, rows=Y)
    assert few.inertia == pytest.approx(float(few.distances(Y).amin(1).mean()), rel=1e-3), "all rows are clustered"
    assert adjusted_rand_score(exact.labels(Y), found.labels(Y)) == 1
    assert accuracy(y, found.labels(Y)) > 0.98


def test_many_rows_by_few_landmarks_are_clustered_as_by_all():
    """A sample of the landmarks' size, clustered alone, is further from the clusters of all rows."""
    Y, _ = lines(n_per_class=300, k=5, d=24, noise=0.19)
    exact = spectral_partition(GramKernel(Y), 5, 10, 0).labels(Y)
    by_all, alone = [], []
    for seed in range(3):
        some = torch.from_numpy(np.random.default_rng(seed).choice(len(Y), 150, replace=False))
        by_all.append(accuracy(exact, spectral_partition(GramKernel(Y[some]), 5, 10, 0, rows=Y).labels(Y)))
        alone.append(accuracy(exact, spectral_partition(GramKernel(Y[some]), 5, 10, 0).labels(Y)))
    assert min(by_all) > 0.98
    assert np.mean(by_all) > np.mean(alone)


def test_a_row_that_is_like_no_landmark_spoils_nothing():
    Y, y = lines(noise=0.0)
    strange = torch.eye(8)[-1:]
    partition = spectral_partition(GramKernel(Y[::4]), 3, 10, 0, rows=torch.cat([Y, strange]))
    assert torch.isfinite(partition.directions).all()
    assert accuracy(y, partition.labels(Y)) == 1


def test_many_clusters_are_many_weak_directions():
    """Thirty clusters about one common direction: each has less than a hundredth of its eigenvalue."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(30), 40)
    rows = np.full((1200, 30), 2 / 30**0.5) + np.eye(30)[y] + 0.03 * random.standard_normal((1200, 30))
    Y = torch.nn.functional.normalize(torch.from_numpy(rows).float())
    kernel = GramKernel(Y[::3])
    values = torch.linalg.eigvalsh(kernel.matrix())
    assert values[-30] < 0.01 * values[-1]
    assert accuracy(y, spectral_partition(kernel, 30, 10, 0, rows=Y).labels(Y)) > 0.99


def test_nystroem_of_fewer_directions_than_clusters():
    """Two directions cannot have three leading eigenvectors: what is missing is zero, nothing fails."""
    Y, _ = lines(n_per_class=40, k=2, d=2, noise=0.0)
    kernel = GramKernel(Y[::4])
    found = nystroem_directions(kernel, Y, 3)
    assert found.shape == (20, 3)
    assert torch.isfinite(found).all()
    np.testing.assert_allclose(found.abs().sum(0)[2], 0)


def test_probabilities_are_largest_at_the_label():
    Y, _ = lines(noise=0.4)
    partition = spectral_partition(GramKernel(Y), 3, n_init=10, seed=0)
    p = partition.probabilities(Y)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_array_equal(p.argmax(1), partition.labels(Y))


def test_swaps_mend_what_k_means_leaves():
    """Any few runs on many clear clusters split some and merge as many."""
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(100), 20)
    points = random.uniform(0, 100, (100, 3))[y] + 2 * random.standard_normal((len(y), 3))
    gains = []
    for seed in range(3):
        alone = KMeans(100, n_init=3, random_state=seed).fit(points)
        centres, inertia = kmeans(points, 100, 3, seed, 6)
        distances = ((points[:, None] - centres) ** 2).sum(2)
        assert distances.min(1).sum() == pytest.approx(inertia)
        np.testing.assert_array_equal(centres, kmeans(points, 100, 3, seed, 6)[0], "the same seed, the same centres")
        assert kmeans(points, 100, 3, seed)[1] == pytest.approx(alone.inertia_), "without swaps it is plain k-means"
        gains.append((inertia / alone.inertia_, accuracy(y, distances.argmin(1)) - accuracy(y, alone.labels_)))
    assert max(ratio for ratio, _ in gains) <= 1
    assert np.mean([ratio for ratio, _ in gains]) < 0.97
    assert np.mean([gain for _, gain in gains]) > 0.005


def test_embeddings_are_clustered_with_swaps(monkeypatch):
    misses = []

    def kmeans_seen(points, k, n_init, seed, given=0):
        misses.append(given)
        return kmeans(points, k, n_init, seed, given)

    monkeypatch.setattr("prodsc.core.graph.spectral.kmeans", kmeans_seen)
    Y, _ = lines()
    spectral_partition(GramKernel(Y), 3, n_init=5, seed=0)
    spectral_labels((Y @ Y.T).abs(), 3, n_init=3, seed=0)
    assert misses == [10, 6]


def test_k_means_of_points_that_coincide():
    with pytest.warns(UserWarning, match="only 3 of n_clusters=5"):
        assert kmeans(np.repeat(np.eye(3), 4, 0), 5, 3, 0, 6)[1] == pytest.approx(0)


def test_canonical_order_is_by_size_then_first_seen():
    Y, _ = lines()
    partition = spectral_partition(GramKernel(Y), 3, n_init=10, seed=0)
    labels = np.array([2, 0, 0, 1, 1, 2, 1])
    ordered, renamed = partition.ordered(labels)
    np.testing.assert_array_equal(renamed, [1, 2, 2, 0, 0, 1, 0])
    torch.testing.assert_close(ordered.centres, partition.centres[[1, 2, 0]])


def test_fewer_distinct_points_than_clusters_is_said():
    Y = torch.eye(4)[[0, 0, 0, 1, 1, 1]]
    with pytest.warns(UserWarning, match=r"only 2 of n_clusters=4 .* Lower n_clusters"):
        spectral_partition(GramKernel(Y), 4, n_init=2, seed=0)


def test_isolated_rows_do_not_break_it():
    Y = torch.eye(6)[[0, 0, 1, 1, 2, 3]]
    labels = spectral_partition(GramKernel(Y), 2, n_init=2, seed=0).labels(Y)
    assert set(labels) <= {0, 1}


@pytest.mark.parametrize("form", [lambda W: W, lambda W: scipy.sparse.csr_array(W.numpy())])
def test_labels_of_a_given_affinity_are_its_components(form):
    """Three components, the largest named 0, dense and sparse alike; a tiny affinity takes the dense way."""
    for sizes in ([4, 9, 6], [1, 2]):
        W = torch.block_diag(*(torch.rand(n, n, dtype=torch.float64) + 0.5 for n in sizes))
        order = np.argsort(np.argsort([-n for n in sizes]))
        labels = spectral_labels(form((W + W.T) / 2), len(sizes), n_init=5, seed=0)
        np.testing.assert_array_equal(labels, np.repeat(order, sizes))


def test_a_dense_affinity_of_zeros_is_solved_as_a_sparse_one():
    draw = np.random.default_rng(0)
    W = torch.block_diag(*(torch.from_numpy(draw.random((30, 30)) + 0.5).float() for _ in range(12)))
    W = (W + W.T) / 2
    W[0, 30] = W[30, 0] = 0.1
    sparse = leading_eigenvectors(W, 13)
    dense = leading_eigenvectors(W, 13, sparse_below=0.0)
    torch.testing.assert_close(sparse[0], dense[0])
    torch.testing.assert_close(sparse[1], dense[1], atol=1e-5, rtol=0)
    assert sparse[2].dtype == torch.float32
    spans = [found[2][:, :12] for found in (sparse, dense)]
    torch.testing.assert_close(spans[0] @ spans[0].T, spans[1] @ spans[1].T, atol=1e-3, rtol=0)


@pytest.mark.parametrize("k", [3, 20])
def test_the_eigengap_is_widest_at_the_number_of_clusters(k):
    Y, _ = lines(n_per_class=30, k=k, d=k, noise=0.1 / np.sqrt(k))
    values = np.linalg.eigvalsh(_normalised(_neighbours(Y)))[::-1]
    tenth = max(1, k // 10)
    naive = 1 - (1 - values[k - tenth : k]).mean() / (1 - values[k : k + tenth]).mean()
    kernel = NeighbourKernel(Y)
    assert eigengap(kernel, k) == pytest.approx(naive, abs=1e-3)
    noisy = (Y + 0.3 * torch.randn(Y.shape, generator=torch.Generator().manual_seed(0))).abs()
    values = np.linalg.eigvalsh(_normalised(noisy @ noisy.T))[::-1]
    naive = 1 - (1 - values[k - tenth : k]).mean() / (1 - values[k : k + tenth]).mean()
    assert eigengap(GramKernel(noisy), k) == pytest.approx(naive, abs=1e-3)
    assert eigengap(kernel, k) > 0.5 > max(eigengap(kernel, k - 1), eigengap(kernel, k + 3 + k // 10))


def test_more_parts_than_clusters_have_no_eigengap():
    """Nothing says which of them belong together."""
    apart = GramKernel(torch.eye(8).repeat(5, 1))
    assert [eigengap(apart, k) for k in (4, 8)] == [0, pytest.approx(1, abs=1e-5)]


def test_more_components_than_clusters_are_warned_of():
    W = scipy.sparse.csr_array(scipy.sparse.block_diag([np.ones((5, 5))] * 4))
    assert len(set(spectral_labels(W, 4, 5, 0))) == 4
    with pytest.warns(UserWarning, match="has 4 connected components, more than n_clusters=3"):
        spectral_labels(W, 3, 5, 0)


def test_an_eigensolver_that_stalls_is_replaced(monkeypatch):
    Y, y = lines(n_per_class=100)
    W = scipy.sparse.csr_array((Y @ Y.T).abs().double().numpy() > 0.7).astype(float)
    expected = spectral_labels(W, 3, 5, 0)

    def stall(*_, **__):
        raise scipy.sparse.linalg.ArpackNoConvergence("no", np.zeros(0), np.zeros((0, 0)))

    monkeypatch.setattr(scipy.sparse.linalg, "eigsh", stall)
    np.testing.assert_array_equal(spectral_labels(W, 3, 5, 0), expected)
    assert adjusted_rand_score(y, expected) > 0.9


def test_a_sharper_affinity_lets_clusters_differ_in_size() -> None:
    """A large broad cluster and two small ones close to each other: by |YY'| the large one is cut instead."""
    draw = torch.Generator().manual_seed(0)
    angles = torch.cat([torch.linspace(-0.5, 0.5, 400), torch.full((20,), 1.0), torch.full((20,), 1.4)])
    angles = angles + 0.02 * torch.randn(440, generator=draw)
    Y = torch.stack([angles.cos(), angles.sin()], 1)
    truth = np.repeat([0, 1, 2], [400, 20, 20])
    found = {power: spectral_partition(PowerKernel(GramKernel(Y), power), 3, 10, 0).labels(Y) for power in (1.0, 60.0)}
    assert accuracy(truth, found[60.0]) == 1.0
    assert accuracy(truth, found[1.0]) < 0.8
