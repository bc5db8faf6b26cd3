"""Nearest neighbours by cosine."""

import numpy as np
import pytest
import torch

from prodsc.core.graph import leading_directions, nearest_among, nearest_neighbours


@pytest.mark.parametrize("block", [7, 1024])
def test_the_nearest_by_cosine_without_oneself(block):
    X = np.random.default_rng(0).standard_normal((40, 5))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2)
    found = nearest_neighbours(torch.from_numpy(X), 6, block_size=block)
    np.testing.assert_array_equal(found, np.argsort(-cosines, axis=1)[:, :6])


def test_no_more_neighbours_than_other_rows():
    assert nearest_neighbours(torch.eye(4), 50).shape == (4, 3)


def test_neighbours_of_rows_that_are_not_among_them():
    unit = torch.nn.functional.normalize(torch.randn(30, 4, generator=torch.Generator().manual_seed(0)))
    other = nearest_among(unit[:3], unit[3:], 5, torch.full((3,), -1))
    own = nearest_among(unit[:3], unit, 5, torch.arange(3))
    for i in range(3):
        others = sorted(range(3, 30), key=lambda j: -float(unit[i] @ unit[j]))
        assert other[i].tolist() == [j - 3 for j in others[:5]]
        assert i not in own[i]


def test_leading_directions_are_those_of_the_rows():
    generator = torch.Generator().manual_seed(0)
    X = torch.randn(200, 3, generator=generator) @ torch.randn(3, 50, generator=generator)
    V = leading_directions(X, 3)
    assert V.shape == (50, 3)
    torch.testing.assert_close(V.T @ V, torch.eye(3), atol=1e-4, rtol=0)
    torch.testing.assert_close(X @ V @ V.T, X, atol=1e-3, rtol=0)
    assert torch.equal(leading_directions(X[:, :2], 3), torch.eye(2))  # nothing to leave out
