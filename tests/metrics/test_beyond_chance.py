"""The score of labels that needs no truth."""

import numpy as np
import pytest

from prodsc.metrics import agreement_beyond_chance


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
