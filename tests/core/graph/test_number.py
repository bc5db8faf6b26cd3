"""The number of clusters: every piece against its naive form, right where it is plain, silent where there is none."""

from itertools import pairwise

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
import torch
from sklearn.metrics import adjusted_mutual_info_score

from prodsc.core.graph import cluster_qr, leading_eigenvectors
from prodsc.core.graph.number import (
    K_OPTIONS,
    KCurve,
    candidates,
    graph_within,
    information,
    k_curve,
    one_gaussian,
)


def blobs(k: int, n: int = 600, spread: float = 0.3, seed: int = 0) -> torch.Tensor:
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((k, 12))
    return torch.from_numpy(centres[np.arange(n) % k] + spread * rng.standard_normal((n, 12))).float()


@pytest.mark.parametrize("k", [3, 9, 30])
def test_plain_clusters_are_counted(k: int) -> None:
    curve = k_curve(blobs(k, 20 * k + 100))
    assert curve.clear
    assert curve.k == k
    assert f"k = {k}" in curve.summary()


@pytest.mark.parametrize("width", [2, 8])
@pytest.mark.parametrize("kind", ["gaussian", "uniform"])
def test_one_cloud_has_no_clear_k(kind: str, width: int) -> None:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, width)) if kind == "gaussian" else rng.uniform(0, 1, (300, width))
    curve = k_curve(torch.from_numpy(X).float())
    assert not curve.clear
    assert "no clear k" in curve.summary()


def test_the_same_rows_give_the_same_curve() -> None:
    X = blobs(4, 160)
    curve = k_curve(X)
    assert k_curve(X) == curve
    assert KCurve(**curve.to_dict()) == curve


def test_information_is_adjusted_mutual_information() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(0, 5, 300)
    b = np.where(rng.random(300) < 0.7, a, rng.integers(0, 5, 300))
    said, shared = information(a, b)
    assert shared / said == pytest.approx(adjusted_mutual_info_score(a, b))
    same = information(a, a)
    assert same[0] == pytest.approx(same[1])
    shares = np.bincount(a) / 300
    assert 0 < same[0] < -(shares * np.log2(shares)).sum(), "less than the entropy: chance is taken off"


def _reference_graph(neighbours: np.ndarray, rows: np.ndarray) -> np.ndarray:
    W = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        for j in [j for j in neighbours[row] if j in rows][: K_OPTIONS.n_neighbors]:
            W[i, list(rows).index(j)] += 1
    return (W + W.T) / 2


def test_graph_within_some_rows() -> None:
    rng = np.random.default_rng(0)
    neighbours = np.stack([rng.permutation(np.delete(np.arange(40), i))[:24] for i in range(40)])
    rows = np.sort(rng.choice(40, 30, replace=False))
    np.testing.assert_array_equal(graph_within(neighbours, rows).toarray(), _reference_graph(neighbours, rows))


def test_vectors_of_a_graph_in_equal_components() -> None:
    block = np.ones((6, 6)) - np.eye(6)
    W = scipy.sparse.csr_array(scipy.linalg.block_diag(*[block] * 7))
    U = leading_eigenvectors(W, 9, K_OPTIONS.tolerance)[2].numpy()
    L = W.toarray() / 5
    np.testing.assert_allclose(U.T @ U, np.eye(9), atol=1e-8)
    np.testing.assert_allclose(np.diag(U.T @ L @ U), [1] * 7 + [-0.2] * 2, atol=1e-8)


def test_cluster_qr_finds_blocks_whatever_the_rotation() -> None:
    labels = np.repeat([0, 1, 2, 3], [5, 9, 20, 6])
    U = np.eye(4)[labels] / np.sqrt(np.bincount(labels))[labels][:, None]
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((4, 4)))[0]
    found = cluster_qr(U @ rotation)
    assert len(set(zip(labels, found, strict=True))) == 4
    assert len(set(found)) == 4


def test_cluster_qr_is_that_of_scikit_learn() -> None:
    reference = pytest.importorskip("sklearn.cluster._spectral").cluster_qr
    for k in (2, 5, 9):
        U = np.linalg.qr(np.random.default_rng(k).standard_normal((60, k)))[0]
        np.testing.assert_array_equal(cluster_qr(U), reference(U))


def test_one_gaussian_keeps_mean_and_covariance() -> None:
    X = blobs(3, 1000) * torch.linspace(0.2, 3, 12) + 1
    G = one_gaussian(X, seed=0)
    torch.testing.assert_close(G.mean(0), X.mean(0), atol=0.25, rtol=0)
    torch.testing.assert_close(torch.cov(G.T), torch.cov(X.T), atol=0.9, rtol=0.2)


def test_candidates() -> None:
    assert candidates(2, 6) == [2, 3, 4, 5, 6]
    many = candidates(2, 300)
    assert many[:15] == list(range(2, 17))
    assert many[-1] == 300
    assert max(b / a for a, b in pairwise(many[14:])) < 1.12


def test_what_is_nearly_as_good_and_what_is_not_clear() -> None:
    curve = KCurve([2, 3, 4], [1.0, 1.96, 2.0], [0.9, 0.95, 0.97], [0.5, 1.0, 1.5], 100)
    assert (curve.k, curve.near, curve.clear) == (4, [4, 3], True)
    assert "Nearly as good: 3" in curve.summary()
    assert not KCurve([2, 3], [1.0, 0.5], [0.9, 0.8], [0.5, 0.9], 100).clear, "one cloud reaches nearly as much near k"
    assert KCurve([2, 9], [1.0, 0.5], [0.9, 0.8], [0.5, 0.9], 100).clear, "what it reaches elsewhere says nothing"
    assert not KCurve([2, 3], [-1.0, -2.0], [0.5, 0.4], [-3.0, -3.0], 100).clear
