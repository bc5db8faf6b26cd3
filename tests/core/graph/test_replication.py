"""Labels that come back from other rows, and neighbours that share them, against loops."""

import numpy as np
import pytest
import torch

from prodsc.core.graph import cluster_halves, compact_pieces, kept_share, nearest_neighbours, replication
from prodsc.core.graph.replication import CARRIERS, carry, random_halves, spectral_halves


def blobs(k=3, n=40, noise=0.2, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(k), n)
    return torch.from_numpy(np.eye(6)[y] + noise * rng.standard_normal((len(y), 6))), y


def test_halves_are_disjoint_and_complete():
    for half, other in random_halves(11, 2, 0):
        assert sorted([*half, *other]) == list(range(11))
        assert abs(len(half) - len(other)) == 1


def test_carried_labels_are_the_vote_of_the_nearest_that_have_one():
    rng = np.random.default_rng(0)
    neighbours = np.stack([rng.permutation(30)[:12] for _ in range(30)])
    rows, labels = np.sort(rng.permutation(30)[:10]), rng.integers(0, 3, 10)
    label_of = dict(zip(rows.tolist(), labels.tolist(), strict=True))
    for near, found in zip(neighbours, carry(neighbours, rows, labels), strict=True):
        votes = [label_of[j] for j in near.tolist() if j in label_of][:CARRIERS]
        assert found == (int(np.bincount(votes).argmax()) if votes else -1)


def test_kept_share_against_its_definition():
    rng = np.random.default_rng(1)
    neighbours = np.stack([rng.permutation(50)[:5] for _ in range(50)])
    labels = rng.integers(0, 3, 50)
    pairs = [(labels[i], labels[j]) for i in range(50) for j in neighbours[i]]
    pairs += [(b, a) for a, b in pairs]
    information = entropy = 0.0
    for a in range(3):
        p = np.mean([x == a for x, _ in pairs])
        entropy -= p * np.log(p)
        for b in range(3):
            both, q = np.mean([x == a and y == b for x, y in pairs]), np.mean([y == b for _, y in pairs])
            information += both * np.log(both / (p * q))
    assert kept_share(neighbours, labels) == pytest.approx(information / entropy)
    assert kept_share(neighbours, np.zeros(50, int)) == 0


def test_clear_groups_come_back_and_are_kept():
    X, y = blobs()
    neighbours = nearest_neighbours(X, 24).numpy()
    found = replication(y, cluster_halves(neighbours, spectral_halves(neighbours, 3), 2, 0))
    assert len(found.shares) == 4
    assert found.shares.min() == found.ari.min() == 1.0
    assert kept_share(neighbours[:, :10], y) == pytest.approx(1.0)


def test_random_labels_do_not_come_back():
    X, y = blobs()
    neighbours = nearest_neighbours(X, 24).numpy()
    shuffled = np.random.default_rng(0).permutation(y)
    assert replication(shuffled, cluster_halves(neighbours, spectral_halves(neighbours, 3), 2, 0)).ari.mean() < 0.1


def test_pieces_follow_the_graph():
    """A path of 20 rows: pieces are intervals."""
    path = np.stack([np.clip(np.arange(20) - 1, 0, 19), np.clip(np.arange(20) + 1, 0, 19)], 1)
    pieces = compact_pieces(path, 3, 0)
    assert set(pieces) == {0, 1, 2}
    assert (np.diff(pieces) != 0).sum() == 2
