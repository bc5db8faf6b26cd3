"""The margin of Theorem 2, and the two estimates of lambda_max it can be computed from."""

import math

import numpy as np
import pytest
import torch

from prodsc.core.self_expression import self_expression
from prodsc.core.theory import gamma_bound, gamma_safe, lambda_max, no_collapse_margin


def random_c(n, seed, scale=1.0):
    return torch.from_numpy(scale * np.random.default_rng(seed).standard_normal((n, n)) / n**0.5)


def softmax_c(n, seed, form):
    Y = np.random.default_rng(seed).standard_normal((n, 4))
    return self_expression(torch.from_numpy(Y / np.linalg.norm(Y, axis=1, keepdims=True)), 0.2, form=form).C


CASES = [
    random_c(5, 0),
    random_c(40, 1),
    random_c(40, 2, 3.0),
    random_c(40, 3, 0.01),
    softmax_c(60, 4, "symmetric"),
    softmax_c(60, 5, "directed"),
    -torch.eye(9, dtype=torch.float64),
    torch.ones(7, 7, dtype=torch.float64),
]


def _reference_lambda_max(C):
    R = np.eye(len(C)) - C.numpy()
    return np.linalg.eigvalsh(R @ R.T)[-1]


@pytest.mark.parametrize("n", [100, 128, 1024, 5000])
def test_the_safe_gamma_has_a_margin_of_one(n):
    """gamma_safe is the margin's edge at lambda_max = 4, whatever the batch; d > n included."""
    d, eps = 128, 0.1
    safe = gamma_safe(n, d, eps)
    assert no_collapse_margin(safe, n, d, eps, lambda_max=4.0) == pytest.approx(1)
    assert no_collapse_margin(safe / 2, n, d, eps, lambda_max=1.0) == pytest.approx(8)
    if d <= n:
        assert no_collapse_margin(300.0, n, d, eps, lambda_max=2.5) == pytest.approx(d / (eps * (1 + eps) * 300 * 2.5))


def test_the_margin_is_the_bound_over_the_undivided_gamma():
    n, d, eps, gamma = 64, 96, 0.05, 200.0
    alpha = d / (n * eps)
    expected = gamma_bound(alpha, n, d, 1.9) / (gamma / n)
    assert no_collapse_margin(gamma, n, d, eps, 1.9) == pytest.approx(expected)
    assert expected == pytest.approx(n / gamma * alpha**2 / (1.9 * (alpha + 1)))


@pytest.mark.parametrize(("gamma", "largest"), [(0.0, 1.0), (3.0, 0.0)])
def test_nothing_to_fear_without_self_expression_or_residual(gamma, largest):
    assert no_collapse_margin(gamma, 10, 4, 0.1, largest) == math.inf


@pytest.mark.parametrize("C", CASES)
def test_lambda_max_comes_from_below_and_arrives(C):
    exact = _reference_lambda_max(C)
    estimates = [float(lambda_max(C, iterations)) for iterations in (0, 1, 4, 8, 3000)]
    assert (np.diff(estimates) >= -1e-12 * exact).all()
    assert max(estimates) <= exact * (1 + 1e-12)
    assert estimates[3] >= 0.8 * exact
    assert estimates[-1] == pytest.approx(exact, rel=1e-6)


def test_no_residual():
    identity = torch.eye(6)
    assert float(lambda_max(identity)) == 0


def test_the_start_is_repeatable_or_the_callers():
    C = random_c(30, 7)
    assert lambda_max(C, 2) == lambda_max(C, 2)
    first, second = (lambda_max(C, 2, torch.Generator().manual_seed(seed)) for seed in (1, 2))
    assert first != second
    assert first == lambda_max(C, 2, torch.Generator().manual_seed(1))


def test_no_global_randomness_and_no_gradient():
    C = random_c(10, 8).requires_grad_()
    state = torch.random.get_rng_state()
    assert not lambda_max(C).requires_grad
    assert torch.equal(torch.random.get_rng_state(), state)
