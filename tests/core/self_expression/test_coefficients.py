"""C and A against a loop over entries."""

import numpy as np
import pytest
import torch

from prodsc.core.self_expression import gram, perplexity, potentials, row_softmax, self_expression, sinkhorn


def unit_rows(n, d, seed=0):
    Y = np.random.default_rng(seed).standard_normal((n, d))
    return torch.from_numpy(Y / np.linalg.norm(Y, axis=1, keepdims=True))


def _reference_sinkhorn(K, half_steps):
    """Scale exp(K) to row sums 1/n, then column sums 1/n, and so on; n times the result."""
    n = len(K)
    P = np.exp(K)
    for t in range(half_steps):
        axis = 1 if t % 2 == 0 else 0
        P = P / P.sum(axis, keepdims=True) / n
    return n * P


def _reference_coefficients(Y, eta, half_steps, form):
    n = len(Y)
    S = np.array([[Y[i] @ Y[j] for j in range(n)] for i in range(n)])
    P = _reference_sinkhorn(np.abs(S) / eta, half_steps)
    for i in range(n):
        P[i, i] = 0
    A = np.array([[(P[i, j] + P[j, i]) / 2 for j in range(n)] for i in range(n)])
    C = np.array([[np.sign(S[i, j]) * (A if form == "symmetric" else P)[i, j] for j in range(n)] for i in range(n)])
    return S, A, C


@pytest.mark.parametrize("form", ["symmetric", "directed"])
@pytest.mark.parametrize(
    ("normaliser", "half_steps"), [("softmax", 1), ("sinkhorn", 1), ("sinkhorn", 2), ("sinkhorn", 5)]
)
def test_coefficients(normaliser, half_steps, form):
    Y = unit_rows(14, 4)
    found = self_expression(Y, 0.2, normaliser, half_steps, form)
    for ours, theirs in zip(
        (found.S, found.A, found.C), _reference_coefficients(Y.numpy(), 0.2, half_steps, form), strict=True
    ):
        np.testing.assert_allclose(ours.numpy(), theirs, atol=1e-12)


def test_one_half_step_is_the_row_softmax():
    K = gram(unit_rows(10, 3)).abs() / 0.1
    torch.testing.assert_close(sinkhorn(K, 1), row_softmax(K))


def test_half_steps_end_on_rows_or_columns():
    K = gram(unit_rows(10, 3)).abs() / 0.1
    ones = torch.ones(10, dtype=torch.float64)
    torch.testing.assert_close(sinkhorn(K, 3).sum(1), ones)
    torch.testing.assert_close(sinkhorn(K, 4).sum(0), ones)
    assert not torch.allclose(sinkhorn(K, 1).sum(0), ones, atol=1e-3)


def test_many_half_steps_are_doubly_stochastic():
    P = sinkhorn(gram(unit_rows(10, 3)).abs() / 0.3, 400)
    ones = torch.ones(10, dtype=torch.float64)
    torch.testing.assert_close(P.sum(0), ones)
    torch.testing.assert_close(P.sum(1), ones)


def test_small_eta_does_not_overflow():
    Y = unit_rows(10, 3).float()
    for normaliser in ("softmax", "sinkhorn"):
        assert torch.isfinite(self_expression(Y, 1e-3, normaliser).C).all()


def test_potentials_count():
    assert len(potentials(torch.zeros(4, 4), 3)) == 4


def test_perplexity_is_the_share_of_rows_that_express_a_row():
    Y = torch.nn.functional.normalize(torch.randn(12, 4, generator=torch.Generator().manual_seed(0)).double())
    logs = []
    for i in range(12):
        weights = np.array([np.exp(abs(float(Y[i] @ Y[j])) / 0.2) for j in range(12) if j != i])
        p = weights / weights.sum()
        logs.append(-(p * np.log(p)).sum())
    assert perplexity(Y, 0.2) == pytest.approx(np.exp(np.mean(logs)) / 11)
    assert perplexity(Y, 1e6) == pytest.approx(1)
    assert perplexity(torch.eye(2).repeat_interleave(5, 0).double(), 0.01) == pytest.approx(4 / 9)  # two groups of five
