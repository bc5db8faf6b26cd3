import numpy as np
import pytest
import torch

from prodsc import linalg


def symmetric(n, seed=0, dtype=torch.float64):
    M = np.random.default_rng(seed).standard_normal((n, n))
    return torch.from_numpy(M + M.T).to(dtype)


@pytest.mark.parametrize(("n", "k"), [(20, 3), (20, 50), (300, 4), (300, 60), (300, 200)])
def test_smallest(n, k):
    """Small and full, Lanczos, LAPACK's subset, and nearly all."""
    M = symmetric(n)
    values, vectors = linalg.smallest_eigenvectors(M, k)
    k = min(n, k)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(M.numpy())[:k], atol=1e-8)
    torch.testing.assert_close(M @ vectors, vectors * values, atol=1e-6, rtol=0)
    torch.testing.assert_close(vectors.T @ vectors, torch.eye(k, dtype=M.dtype), atol=1e-8, rtol=0)


def test_largest_is_descending():
    M = symmetric(50)
    values, _ = linalg.largest_eigenvectors(M, 4)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(M.numpy())[::-1][:4], atol=1e-9)


def test_falls_back_when_lanczos_stalls(monkeypatch):
    monkeypatch.setattr(linalg, "LANCZOS_RESTARTS", 1)
    M = symmetric(400, dtype=torch.float32)
    assert linalg._lanczos(M, 10) is None  # it does stall, so what follows is LAPACK's answer
    values, _ = linalg.smallest_eigenvectors(M, 10)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(M.double().numpy())[:10], atol=1e-3)


def test_multiplicity_is_found():
    """A graph of 5 components has five zero eigenvalues; Lanczos must not miss one."""
    A = torch.block_diag(*[torch.ones(60, 60) - torch.eye(60)] * 5)
    values, _ = linalg.smallest_eigenvectors(A.sum(1).diag() - A, 6)
    assert (values[:5].abs() < 1e-3).all()
    assert values[5] > 1
