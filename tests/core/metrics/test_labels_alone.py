"""The scores of labels that need no truth."""

import numpy as np
import pytest

from prodsc.core.metrics import agreement_beyond_chance, evenness


def _ring(n, k):
    """Neighbours of n rows in k groups: the next two of the same group."""
    size = n // k
    group, place = np.divmod(np.arange(n), size)
    return group, np.stack([group * size + (place + step) % size for step in (1, 2)], axis=1)


def test_perfect_labels_score_one_and_shuffled_ones_zero():
    labels, near = _ring(3000, 3)
    assert agreement_beyond_chance(labels, near) == 1
    shuffled = np.random.default_rng(0).permutation(labels)
    assert abs(agreement_beyond_chance(shuffled, near)) < 0.05


def test_it_is_the_corrected_share_of_pairs():
    labels, near = _ring(12, 3)
    labels[0] = 2
    pairs = [(i, j) for i in range(12) for j in near[i]]
    share = np.mean([labels[i] == labels[j] for i, j in pairs])
    chance = np.mean([labels[i] == labels[j] for i in range(12) for j in range(12)])
    assert agreement_beyond_chance(labels, near) == pytest.approx((share - chance) / (1 - chance))


def test_one_cluster_of_all_rows_wins_nothing():
    labels, near = _ring(12, 3)
    assert agreement_beyond_chance(np.zeros_like(labels), near) == 0


def test_evenness_of_sizes():
    assert evenness(np.array([0, 1, 2, 2, 1, 0])) == pytest.approx(1)
    p = np.array([5, 3, 2]) / 10
    assert evenness(np.repeat([7, 8, 9], [5, 3, 2])) == pytest.approx(-(p @ np.log(p)) / np.log(3))
    assert evenness(np.zeros(5)) == 0
