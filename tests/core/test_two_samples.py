"""The test of new rows among old ones: its moments against chance, and what it finds."""

import numpy as np
import pytest
import scipy.sparse
import torch

from prodsc.core.graph.two_samples import compare_samples, groups_of, share_moments


def blob(n, centre, seed, d=8):
    X = np.random.default_rng(seed).normal(size=(n, d)) + 9 * np.eye(d)[centre]
    return torch.tensor(X, dtype=torch.float32)


def test_moments_are_those_of_random_draws():
    random = np.random.default_rng(0)
    n, both = 7, 25
    W = random.random((n, both))
    W[random.random((n, both)) < 0.6] = 0
    W[:, 0] += 0.1
    W /= W.sum(1, keepdims=True)
    mean, deviation = share_moments(scipy.sparse.csr_array(W), n, both)
    for i in range(n):
        draws = []
        for _ in range(20_000):
            others = random.permutation(both - 1)[: n - 1]
            m = np.zeros(both)
            m[i] = 1
            m[np.delete(np.arange(both), i)[others]] = 1
            draws.append(W[i] @ m)
        assert mean[i] == pytest.approx(np.mean(draws), abs=0.005)
        assert deviation[i] == pytest.approx(np.std(draws), rel=0.03)


def test_rows_of_the_same_kind_are_no_surprise():
    found = compare_samples(blob(300, 0, 1), blob(900, 0, 2))
    assert abs(found.share - found.expected) < 4 * found.deviation
    assert np.abs(found.z).max() < 6
    assert abs(found.z.mean()) < 0.5
    assert 0.7 < found.z.std() < 1.3


def test_rows_of_another_kind_are_found_and_form_a_group():
    new = torch.cat([blob(200, 0, 1), blob(40, 3, 2)])
    found = compare_samples(new, blob(900, 0, 3))
    assert found.z[200:].min() > 5 > found.z[:200].mean() + 2
    groups = groups_of(np.flatnonzero(found.z > 5), new)
    assert len(groups) == 1
    np.testing.assert_array_equal(groups[0], np.arange(200, 240))


def test_two_kinds_are_two_groups_and_few_rows_are_none():
    X = torch.cat([blob(30, 1, 1), blob(40, 5, 2), blob(5, 7, 3)])
    groups = groups_of(np.arange(75), X)
    assert len(groups) == 2
    assert set(groups[0]) <= set(range(30, 70))
    assert set(groups[1]) <= set(range(30))
    assert groups_of(np.arange(5), X) == []
