"""Water-filling against an optimiser that knows nothing of eigenvalues: L-BFGS on the entries of Z."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from optimum import optimal_Z
from prodsc.core.losses import coding_rate, self_expression
from prodsc.core.theory import gamma_bound, water_filling
from prodsc.errors import ParameterError

SHAPES = [(6, 3), (8, 8), (9, 5), (10, 12), (12, 4), (14, 7)]  # d <= N and d > N
PER_SHAPE = 40  # 240 problems


class Problem(NamedTuple):
    C: np.ndarray
    alpha: float
    gamma: float
    d: int
    below: bool  # the bound of Theorem 2
    eigenvalues: np.ndarray
    Z: np.ndarray  # the optimiser's
    squared: np.ndarray  # its singular values, squared, descending


def _minimise(C, alpha, gamma, d, rng):
    """argmin over Z = sqrt(N) W / ||W||, by quasi-Newton steps on W, in the paper's letters with rows."""
    n = len(C)
    R = np.eye(n) - C.T  # Z - C'Z

    def loss(w):
        W = w.reshape(n, d)
        length = np.linalg.norm(W)
        Z = np.sqrt(n) * W / length
        inner = np.eye(d) + alpha * Z.T @ Z
        RZ = R @ Z
        value = -0.5 * np.linalg.slogdet(inner)[1] + gamma / 2 * np.sum(RZ**2)
        slope = -alpha * np.linalg.solve(inner, Z.T).T + gamma * R.T @ RZ
        slope = np.sqrt(n) / length * slope
        return value, (slope - np.sum(slope * W) * W / length**2).ravel()

    w = np.sqrt(1 / d) * rng.standard_normal(n * d)
    for _ in range(3):  # a restart forgets old curvature and gains digits
        w = minimize(
            loss, w, jac=True, method="L-BFGS-B", options={"maxiter": 3000, "maxcor": 20, "ftol": 0, "gtol": 1e-10}
        ).x
    W = w.reshape(n, d)
    return np.sqrt(n) * W / np.linalg.norm(W)


@cache
def problems(n, d):
    rng = np.random.default_rng([n, d])
    found = []
    for index in range(PER_SHAPE):
        C = rng.standard_normal((n, n)) * rng.uniform(0.1, 1) / np.sqrt(n)
        np.fill_diagonal(C, 0)
        M = (np.eye(n) - C) @ (np.eye(n) - C).T
        eigenvalues = np.linalg.eigvalsh(M)
        alpha = d / (n * rng.uniform(0.05, 1))
        below = index % 2 == 0
        times = rng.uniform(0.1, 0.999) if below else 10 ** rng.uniform(0.02, 2)
        gamma = times * gamma_bound(alpha, n, d, eigenvalues[-1])
        Z = _minimise(C, alpha, gamma, d, rng)
        squared = np.linalg.svd(Z, compute_uv=False) ** 2
        found.append(Problem(C, alpha, gamma, d, below, eigenvalues, Z, squared))
    return found


def solve(problem, **how):
    return water_filling(torch.from_numpy(problem.eigenvalues), problem.alpha, problem.gamma, problem.d, **how)


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_the_optimiser_finds_the_same_spectrum_and_rank(n, d):
    lost = 0
    for problem in problems(n, d):
        filled = solve(problem)
        np.testing.assert_allclose(problem.squared, filled.spectrum, atol=1e-5, rtol=1e-5)
        assert filled.rank == np.sum(problem.squared > 1e-6)
        lost += filled.rank < min(d, n)
    assert lost >= PER_SHAPE // 6  # the comparison has seen both sides


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_no_rank_is_lost_below_the_bound(n, d):
    """Theorem 2a."""
    below = [problem for problem in problems(n, d) if problem.below]
    assert len(below) == PER_SHAPE // 2
    for problem in below:
        assert solve(problem).rank == np.sum(problem.squared > 1e-6) == min(d, n)


def _reference_nu(eigenvalues, alpha, gamma, d, total):
    """The paper's equation as it stands, solved by halving the interval of nu."""
    smallest = sorted(eigenvalues)[:d]
    low, high = -gamma * smallest[0], alpha - gamma * smallest[0]
    for _ in range(120):
        nu = (low + high) / 2
        held = sum(
            max(0.0, 1 / (nu + gamma * value) - 1 / alpha) if nu + gamma * value > 0 else np.inf for value in smallest
        )
        low, high = (nu, high) if held > total else (low, nu)
    return nu


@pytest.mark.parametrize("total", [None, 1.0, 250.0])
@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_the_multiplier_and_the_formula(n, d, total):
    for problem in problems(n, d):
        filled = solve(problem, total=total)
        expected = _reference_nu(problem.eigenvalues, problem.alpha, problem.gamma, d, total or n)
        assert filled.nu == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert filled.nu > -problem.gamma * problem.eigenvalues[0]
        formula = 1 / (filled.nu + problem.gamma * problem.eigenvalues[: min(d, n)]) - 1 / problem.alpha
        np.testing.assert_allclose(filled.spectrum, np.maximum(0, formula), atol=1e-9)
        assert filled.rank == np.sum(formula > 0)


@pytest.mark.parametrize("gamma", [0.0, 1e-6, 1.0, 1e3, 1e9])
@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1e9])
def test_the_sum_is_kept_at_every_scale(alpha, gamma):
    eigenvalues = torch.from_numpy(np.random.default_rng(0).uniform(0, 4, 300))
    for d in (1, 20, 500):
        filled = water_filling(eigenvalues, alpha, gamma, d)
        assert float(filled.spectrum.sum()) == pytest.approx(300, rel=1e-12)
        assert len(filled.spectrum) == min(d, 300)
        assert (filled.spectrum.diff() <= 0).all()  # the largest lambda empties first
        assert (filled.spectrum[: filled.rank] > 0).all()
        assert (filled.spectrum[filled.rank :] == 0).all()


def test_without_self_expression_the_energy_is_spread_evenly():
    filled = water_filling(torch.tensor([3.0, 1.0, 2.0, 5.0]), alpha=2.0, gamma=0.0, d=3)
    torch.testing.assert_close(filled.spectrum, torch.full((3,), 4 / 3, dtype=torch.float64))
    assert filled.rank == 3


@pytest.mark.parametrize("total", [0.3, 1.0, 7.7, 10.0])
def test_equal_eigenvalues_share_any_energy(total):
    """n times total/n rounds to more than the total for some n, which leaves a root finder without a change of sign."""
    for n in range(1, 60):
        filled = water_filling(torch.full((n,), 0.3), alpha=2.0, gamma=50.0, d=n, total=total)
        np.testing.assert_allclose(filled.spectrum, total / n)


def test_equal_eigenvalues_share_the_energy():
    filled = water_filling(torch.full((7,), 0.3), alpha=2.0, gamma=50.0, d=9)
    torch.testing.assert_close(filled.spectrum, torch.ones(7, dtype=torch.float64))
    assert filled.nu < 0  # 1 / (1 + 1/2) - 50 * 0.3


@pytest.mark.parametrize("n", [5, 50, 500])
def test_how_sharp_the_bound_is(n):
    """One eigenvalue at 1, the rest at 0: the last direction goes exactly at gamma = alpha^2 / (alpha + (n - 1)/n).

    Theorem 2 has n/n in place of (n - 1)/n, so nothing that depends on lambda_max alone can be much better.
    """
    alpha = 1.7
    threshold = alpha**2 / (alpha + (n - 1) / n)
    eigenvalues = torch.zeros(n, dtype=torch.float64)
    eigenvalues[-1] = 1
    assert water_filling(eigenvalues, alpha, threshold * (1 - 1e-6), d=n).rank == n
    assert water_filling(eigenvalues, alpha, threshold * (1 + 1e-6), d=n).rank == n - 1
    assert (1 - 1 / n) * threshold < gamma_bound(alpha, n, n, 1.0) < threshold


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_optimal_z_attains_the_optimum(n, d):
    for problem in problems(n, d):
        C = torch.from_numpy(problem.C)
        Z = optimal_Z(C, problem.alpha, problem.gamma, d)
        assert Z.shape == (n, d)
        assert float(Z.square().sum()) == pytest.approx(n)

        def loss(Z, C=C, problem=problem):
            return float(coding_rate(Z, problem.alpha) + problem.gamma * n * self_expression(Z, C))

        assert loss(Z) == pytest.approx(loss(torch.from_numpy(problem.Z)), rel=1e-9, abs=1e-9)
        if problem.below:  # G is unique when every kept eigenvalue is
            np.testing.assert_allclose((Z @ Z.T).numpy(), problem.Z @ problem.Z.T, atol=1e-4)


@pytest.mark.parametrize("multiplicity", [1, 3])
def test_haeffele(multiplicity):
    """Self-expression alone puts all energy on the eigenvectors of the smallest eigenvalue of M."""
    rng = np.random.default_rng(3)
    U = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    roots = np.r_[np.full(multiplicity, 0.2), np.linspace(0.4, 1.5, 12 - multiplicity)]
    C = torch.from_numpy(np.eye(12) - U @ np.diag(roots) @ U.T)
    ranks = []
    for gamma in (1e-3, 10.0, 1e6):
        Z = optimal_Z(C, alpha=5.0, gamma=gamma, d=8)
        ranks.append(int((torch.linalg.svdvals(Z) > 1e-4).sum()))
    assert ranks[0] == 8 > ranks[1] > ranks[2] == multiplicity
    smallest = torch.from_numpy(U[:, :multiplicity])
    torch.testing.assert_close(smallest @ (smallest.T @ Z), Z, atol=1e-6, rtol=0)


@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"gamma": -1.0}, {"d": 0}, {"total": 0.0}])
def test_rules_are_stated(wrong):
    (name,) = wrong
    with pytest.raises(ParameterError, match=f"{name}="):
        water_filling(torch.ones(4), **{"alpha": 1.0, "gamma": 1.0, "d": 2, **wrong})
