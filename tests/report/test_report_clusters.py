"""Cluster cards and agreement of two labellings, against their naive forms."""

import numpy as np
import pytest
import scipy.linalg

from prodsc.core import metrics
from prodsc.core.naming import unusual_columns
from prodsc.report.agreement import agreement, bootstrap_std, worst_disagreements
from prodsc.report.clusters import cluster_cards, mean_subspace_angles
from prodsc.report.movement import bands


@pytest.fixture(scope="module")
def fitted():
    """Rows on two planes at 90 degrees and one in between, six dimensions."""
    rng = np.random.default_rng(0)
    planes = [np.eye(6)[:, :2], np.eye(6)[:, 2:4], (np.eye(6)[:, :2] + np.eye(6)[:, 4:6]) / np.sqrt(2)]
    Z = np.concatenate([rng.standard_normal((40, 2)) @ plane.T for plane in planes])
    Z /= np.linalg.norm(Z, axis=1, keepdims=True)
    labels = np.repeat(np.arange(3), 40)
    return Z.astype(np.float32), labels, rng.random(120), rng.integers(0, 3, 120)


def test_cards(fitted):
    Z, labels, confidence, second = fitted
    first, middle, _ = made = cluster_cards(Z, labels, confidence, second, [40, 40, 120])
    assert [card.size for card in made] == [40, 40, 120]
    assert made[2].share == 120 / 200
    assert first.confidence == pytest.approx(confidence[:40].mean())
    sigma = np.linalg.svd(Z[:40], compute_uv=False) ** 2
    p = sigma[sigma > 1e-9] / sigma.sum()
    assert first.dimension == pytest.approx(np.exp(-(p * np.log(p)).sum()), rel=1e-4)
    np.testing.assert_allclose(first.spectrum[:2], p[:2], rtol=1e-4)
    assert [c for c, _ in first.neighbours] == [2, 1]
    assert first.neighbours[0][1] == pytest.approx(45, abs=0.1)
    assert first.neighbours[1][1] == pytest.approx(90, abs=0.1)
    # exemplars: the largest mean square cosine with the rows of the cluster
    likeness = np.square(Z[:40] @ Z[:40].T).mean(axis=1)
    assert first.exemplars == np.argsort(-likeness, kind="stable")[:8].tolist()
    assert [row for row, _, _ in middle.borders] == (40 + np.argsort(confidence[40:80])[:8]).tolist()
    assert middle.borders[0][2] == second[middle.borders[0][0]]
    direction = np.linalg.svd(Z[:40], full_matrices=False)[2][0]
    assert first.components[0].rows == np.argsort(-np.abs(Z[:40] @ direction))[:6].tolist()
    assert set(first.exemplars) <= set(first.rows())


def test_an_empty_cluster_and_one_of_one_row_have_cards(fitted):
    Z, _, confidence, second = fitted
    labels = np.array([0] * 119 + [2])
    *_, empty, single = cluster_cards(Z, labels, confidence, second, [119, 0, 1])
    assert empty.exemplars == empty.borders == empty.components == []
    assert single.exemplars == [119]
    assert [c for c, _ in single.neighbours] == [0]


def test_angles_against_principal_angles():
    rng = np.random.default_rng(1)
    U, V = (np.linalg.qr(rng.standard_normal((8, 3)))[0] for _ in range(2))
    principal = scipy.linalg.subspace_angles(U, V)
    wanted = np.degrees(np.arccos(np.sqrt(np.mean(np.cos(principal) ** 2))))
    assert mean_subspace_angles([(U, 3.2), (V, 2.9)])[0, 1] == pytest.approx(wanted)


def test_columns_that_stand_out():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    labels = np.repeat([0, 1, 2], 100)
    X[labels == 1, 3] -= 6
    found = unusual_columns(X, labels, 4, ["a", "b", "c", "d", "e"])
    name, off = found[1][0]
    assert name == "d"
    assert off == pytest.approx((X[100:200, 3].mean() - X[:, 3].mean()) / X[:, 3].std())
    assert unusual_columns(X, labels, 4, None)[1][0][0] == "column 3"
    assert found[3] == []  # a cluster without rows


@pytest.mark.parametrize("many", [7, 1024])
def test_columns_that_stand_out_do_not_depend_on_how_rows_are_read(many):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, 200)
    X = rng.standard_normal((200, 4)) * [1, 1e-3, 50, 0] + [0, 10, -3, 0.1] + 0.3 * labels[:, None] * [1, 1e-3, 0, 0]
    for c, found in enumerate(unusual_columns(X.astype(np.float32), labels, 3, None, chunk=many)):
        off = (X[labels == c].mean(0) - X.mean(0))[:3] / X.std(0)[:3]
        order = np.argsort(-np.abs(off))
        assert [name for name, _ in found] == [f"column {j}" for j in order], "and none that is constant"
        np.testing.assert_allclose([value for _, value in found], off[order], rtol=1e-2)


def test_agreement_is_accuracy():
    rng = np.random.default_rng(2)
    labels, other = rng.integers(0, 5, 400), rng.integers(0, 3, 400)
    found = agreement(labels, other, 6)
    assert found.share == pytest.approx(metrics.accuracy(other, labels))
    assert found.counts.shape == (6, 3)
    assert found.counts[2, 1] == ((labels == 2) & (other == 1)).sum()
    assert sorted(found.partner[found.partner >= 0]) == [0, 1, 2]


def test_worst_pairs_are_the_most_frequent_and_show_the_surest():
    labels = np.repeat([0, 1, 2], [10, 10, 10])
    other = np.array([0] * 7 + [1] * 3 + [1] * 9 + [2] + [2] * 10)
    confidence = np.linspace(0, 1, 30)
    first, second = worst_disagreements(agreement(labels, other), labels, other, confidence)
    assert (first.cluster, first.other, first.count, first.rows) == (0, 1, 3, [9, 8, 7])
    assert (second.cluster, second.other, second.count) == (1, 2, 1)
    assert worst_disagreements(agreement(labels, labels), labels, labels, confidence) == []


def test_resampled_std_is_that_of_a_binomial_for_accuracy():
    counts = np.array([[900, 100], [100, 900]])
    assert bootstrap_std(counts)["ACC"] == pytest.approx(np.sqrt(0.9 * 0.1 / 2000), rel=0.25)
    assert set(bootstrap_std(counts)) == {"ACC", "NMI", "ARI"}


def test_bands_carry_every_row():
    labels, other = np.repeat([0, 1], [30, 20]), np.array([1] * 25 + [0] * 5 + [0] * 20)
    made, left, right, height = bands(agreement(labels, other))
    assert [name for name, _ in left] == ["cluster 0", "cluster 1"]
    assert [name for name, _ in right] == ["other 1", "other 0"]  # beside their partners
    assert [(band.group, band.words.split(" rows")[0]) for band in made] == [(0, "25"), (0, "5"), (1, "20")]
    assert height > max(y for _, y in left)
