from itertools import permutations

import numpy as np
import pytest
import torch

from prodsc.core import metrics
from prodsc.errors import InputError


def _reference_accuracy(true, predicted):
    """Try every matching of clusters to classes."""
    k = max(true.max(), predicted.max()) + 1
    return max(np.mean(np.array(names)[predicted] == true) for names in permutations(range(k)))


def test_accuracy_is_the_best_matching():
    rng = np.random.default_rng(0)
    for _ in range(20):
        true, predicted = rng.integers(4, size=30), rng.integers(5, size=30)
        assert metrics.accuracy(true, predicted) == pytest.approx(_reference_accuracy(true, predicted))


def test_nmi_is_arithmetic():
    true, predicted = np.array([0, 0, 0, 1, 1, 2]), np.array([0, 0, 1, 1, 1, 1])
    p = np.zeros((3, 2))
    np.add.at(p, (true, predicted), 1 / 6)
    rows, columns = p.sum(1), p.sum(0)
    mutual = sum(p[i, j] * np.log(p[i, j] / rows[i] / columns[j]) for i in range(3) for j in range(2) if p[i, j])
    entropy = -(rows * np.log(rows)).sum(), -(columns * np.log(columns)).sum()
    assert metrics.nmi(true, predicted) == pytest.approx(mutual / np.mean(entropy))


def test_sre():
    C = torch.tensor([[0.0, -0.5, 0.0], [1.0, 0.0, 2.0], [3.0, 0.5, 0.0]])
    classes = np.array(["a", "b", "a"])
    # column 0: 3 of 4 inside its class; column 1: alone in its class, 0 of 1; column 2: 0 of 2
    assert metrics.subspace_preserving_error(C, classes) == pytest.approx(100 / 3 * ((1 - 0.75) + 1 + 1))


def test_sre_counts_an_empty_column_as_wrong():
    assert metrics.subspace_preserving_error(torch.zeros(2, 2), np.array([0, 0])) == 100.0


def test_connectivity():
    complete = torch.ones(4, 4) - torch.eye(4)
    apart = torch.block_diag(*[torch.ones(2, 2) - torch.eye(2)] * 2)
    A = torch.block_diag(complete, apart, torch.zeros(1, 1))
    found = metrics.connectivity(A, np.repeat([0, 1, 2], [4, 4, 1]))
    np.testing.assert_allclose(found, [4 / 3, 0.0, 1.0], atol=1e-9)


def test_lengths_must_agree():
    with pytest.raises(InputError, match="same length"):
        metrics.accuracy(np.zeros(3), np.zeros(4))
    with pytest.raises(InputError, match="one entry per row"):
        metrics.subspace_preserving_error(torch.zeros(2, 2), np.zeros(3))
