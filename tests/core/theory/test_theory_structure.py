"""The meters of Theorem 3 against loops, and on representations whose structure is known."""

import math

import numpy as np
import pytest
import scipy.linalg
import torch

from prodsc.core.theory import (
    block_means,
    csc,
    effective_rank,
    effective_rank_of_spectrum,
    gram_and_residual,
    smallest_subspace_angles,
)

LABELS = torch.tensor([2, 0, 5, 0, 2, 2, 5, 0, 5, 5])  # in no order, not 0..k-1


def random_rows(n=10, d=6, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d)))


def _reference_effective_rank(Z):
    values = np.linalg.eigvalsh(Z.T @ Z)
    p = [value / values.sum() for value in values if value > 1e-12]
    return math.exp(-sum(x * math.log(x) for x in p))


def _reference_csc(M, G, labels):
    return sum(float(M[i, j] * G[i, j]) for i in range(len(G)) for j in range(len(G)) if labels[i] != labels[j])


def _reference_block_means(K, labels):
    pairs = [(i, j) for i in range(len(K)) for j in range(len(K)) if i != j]
    inside = [abs(float(K[i, j])) for i, j in pairs if labels[i] == labels[j]]
    outside = [abs(float(K[i, j])) for i, j in pairs if labels[i] != labels[j]]
    return np.mean(inside), np.mean(outside)


def _reference_basis(rows, energy):
    """Eigenvectors of the scatter matrix, one more at a time until they hold enough."""
    values, vectors = np.linalg.eigh(rows.T @ rows)
    values, vectors = values[::-1], vectors[:, ::-1]
    m = 1
    while values[:m].sum() < energy * values.sum():
        m += 1
    return vectors[:, :m]


@pytest.mark.parametrize(("n", "d"), [(10, 6), (4, 9), (1, 5)])
def test_effective_rank(n, d):
    Z = random_rows(n, d)
    assert float(effective_rank(Z)) == pytest.approx(_reference_effective_rank(Z.numpy()))
    assert float(effective_rank(7 * Z)) == pytest.approx(float(effective_rank(Z)))


@pytest.mark.parametrize("r", [1, 3, 6])
def test_effective_rank_counts_equal_directions(r):
    Q = torch.linalg.qr(random_rows(6, 6)).Q
    assert float(effective_rank(torch.eye(10, 6, dtype=Q.dtype)[:, :r] @ Q[:r])) == pytest.approx(r)


def test_effective_rank_of_nothing():
    assert float(effective_rank(torch.zeros(4, 3))) == 1


def test_effective_rank_of_a_spectrum():
    Z = random_rows()
    expected = _reference_effective_rank(Z.numpy())
    assert float(effective_rank_of_spectrum(torch.linalg.svdvals(Z))) == pytest.approx(expected)


def test_csc():
    G, M = gram_and_residual(random_rows(), random_rows(10, 10, seed=1) / 4)
    assert float(csc(M, G, LABELS)) == pytest.approx(_reference_csc(M, G, LABELS))
    assert float(csc(M, G, torch.zeros(10, dtype=torch.long))) == 0


def test_csc_is_zero_for_orthogonal_subspaces():
    """Theorem 3's goal: G = G*, whatever C is."""
    Z = torch.block_diag(random_rows(4, 2), random_rows(6, 3))
    G, M = gram_and_residual(Z, random_rows(10, 10, seed=1))
    labels = torch.tensor([0] * 4 + [1] * 6)
    assert float(csc(M, G, labels)) == 0
    assert block_means(G, labels)[1] == 0
    assert block_means(G, labels)[0] > 0.1


def test_block_means():
    K = random_rows(10, 10)
    np.testing.assert_allclose(block_means(K, LABELS), _reference_block_means(K, LABELS))
    with_diagonal = K + 100 * torch.eye(10, dtype=K.dtype)
    np.testing.assert_allclose(block_means(with_diagonal, LABELS), _reference_block_means(K, LABELS))


def test_block_means_of_a_part_without_entries():
    K = random_rows(4, 4)
    inside, outside = block_means(K, torch.zeros(4, dtype=torch.long))
    assert torch.isfinite(inside)
    assert torch.isnan(outside)
    inside, outside = block_means(K, torch.arange(4))
    assert torch.isnan(inside)
    assert torch.isfinite(outside)


@pytest.mark.parametrize("energy", [0.3, 0.7, 0.95])
def test_subspace_angles(energy):
    Z = random_rows(10, 20)
    bases = [_reference_basis(Z[label == LABELS].numpy(), energy) for label in (0, 2, 5)]
    angles = smallest_subspace_angles(Z, LABELS, energy)
    assert angles.shape == (3, 3)
    for a in range(3):
        for b in range(3):
            expected = 0 if a == b else np.rad2deg(scipy.linalg.subspace_angles(bases[a], bases[b]).min())
            assert float(angles[a, b]) == pytest.approx(expected, abs=1e-6)


def test_known_angles():
    """A line and a plane at 30 degrees, both orthogonal to a third cluster; all energy kept."""
    line = torch.tensor([[math.cos(math.pi / 6), 0.0, math.sin(math.pi / 6), 0.0]])
    plane = torch.tensor([[1.0, 0, 0, 0], [0, 1.0, 0, 0], [1.0, -1.0, 0, 0]])
    apart = torch.tensor([[0.0, 0, 0, -2.0]])
    angles = smallest_subspace_angles(
        torch.cat([line, -2 * line, plane, apart]), torch.tensor([0, 0, 1, 1, 1, 2]), energy=1.0
    )
    expected = torch.tensor([[0.0, 30, 90], [30, 0, 90], [90, 90, 0]])
    torch.testing.assert_close(angles, expected, atol=0.05, rtol=0)


def test_little_energy_does_not_make_a_shared_direction():
    Z = torch.tensor([[1.0, 0, 0], [0, 0, 0.01], [0, 1.0, 0], [0, 0, 0.01]])
    labels = torch.tensor([0, 0, 1, 1])
    assert float(smallest_subspace_angles(Z, labels)[0, 1]) == pytest.approx(90)
    assert float(smallest_subspace_angles(Z, labels, energy=1.0)[0, 1]) == pytest.approx(0, abs=0.05)
