"""DSC-Net's way from C to an affinity, against loops and a full SVD."""

import numpy as np
import pytest
import torch

from prodsc.core.self_expression import keep_largest, low_rank_affinity


def matrix(n=12, seed=0):
    return np.random.default_rng(seed).standard_normal((n, n))


def _reference_keep_largest(C, share):
    kept = np.zeros_like(C)
    for j in range(C.shape[1]):
        mass = 0.0
        for i in np.argsort(-np.abs(C[:, j])):
            kept[i, j] = C[i, j]
            mass += abs(C[i, j])
            if mass > share * np.abs(C[:, j]).sum():
                break
    return kept


@pytest.mark.parametrize("share", [0.05, 0.4, 0.9, 1.0])
def test_keep_largest(share):
    C = matrix()
    expected = C if share == 1 else _reference_keep_largest(C, share)
    np.testing.assert_array_equal(keep_largest(torch.from_numpy(C), share), expected)


def _reference_affinity(C, rank, power):
    M = (C + C.T) / 2
    M = M - np.diag(np.diag(M)) + np.eye(len(M))
    U, S, _ = np.linalg.svd(M)
    U = U[:, :rank] * np.sqrt(S[:rank])
    U /= np.linalg.norm(U, axis=1, keepdims=True)
    A = np.abs(np.maximum(U @ U.T, 0)) ** power
    return A / A.max()


@pytest.mark.parametrize(("rank", "power"), [(3, 1.0), (7, 3.5), (50, 2.0)])
def test_low_rank_affinity(rank, power):
    """Random matrices have large negative eigenvalues: singular vectors, not eigenvectors, lead."""
    C = matrix()
    before = C.copy()
    found = low_rank_affinity(torch.from_numpy(C), rank, power)
    np.testing.assert_allclose(found, _reference_affinity(C, min(rank, 11), power), atol=1e-8)
    np.testing.assert_array_equal(C, before)
