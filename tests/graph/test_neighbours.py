"""Nearest neighbours by cosine."""

import numpy as np
import pytest
import torch

from prodsc.graph import nearest_neighbours


@pytest.mark.parametrize("block", [7, 1024])
def test_the_nearest_by_cosine_without_oneself(block, monkeypatch):
    monkeypatch.setattr("prodsc.graph.neighbours.BLOCK", block)
    X = np.random.default_rng(0).standard_normal((40, 5))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2)
    np.testing.assert_array_equal(nearest_neighbours(torch.from_numpy(X), 6), np.argsort(-cosines, axis=1)[:, :6])


def test_no_more_neighbours_than_other_rows():
    assert nearest_neighbours(torch.eye(4), 50).shape == (4, 3)
