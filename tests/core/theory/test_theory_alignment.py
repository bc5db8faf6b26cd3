"""The meters of Theorem 1: naive formulas, the closed-form optimum in Z, and a numerical optimum in (Z, C)."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize

from optimum import optimal_Z
from prodsc.core.losses import coding_rate, self_expression
from prodsc.core.theory import commutator, eigenspace_correlation, gamma_bound, gram_and_residual, spectra


def random_pair(n, d, seed=0):
    rng = np.random.default_rng(seed)
    C = 0.7 * rng.standard_normal((n, n)) / n**0.5
    np.fill_diagonal(C, 0)
    return torch.from_numpy(rng.standard_normal((n, d))), torch.from_numpy(C)


def _reference_gram_and_residual(Z, C):
    """Entry by entry, in the paper's columns: G_ij = <z_i, z_j>, M_ij = <row i, row j> of I - C."""
    n = len(Z)
    rows = [[float(i == j) - float(C[i, j]) for j in range(n)] for i in range(n)]
    G = [[sum(float(a) * float(b) for a, b in zip(Z[i], Z[j], strict=True)) for j in range(n)] for i in range(n)]
    M = [[sum(a * b for a, b in zip(rows[i], rows[j], strict=True)) for j in range(n)] for i in range(n)]
    return np.array(G), np.array(M)


def _reference_correlation(G, M):
    values, vectors = np.linalg.eig(M)
    result = []
    for j in np.argsort(values):
        image = G @ vectors[:, j]
        result.append(vectors[:, j] @ image / np.linalg.norm(image))
    return np.array(result)


@pytest.mark.parametrize("d", [3, 12])
def test_formulas(d):
    Z, C = random_pair(9, d)
    G, M = gram_and_residual(Z, C)
    for ours, naive in zip((G, M), _reference_gram_and_residual(Z, C), strict=True):
        np.testing.assert_allclose(ours, naive, atol=1e-12)
    assert float((G * M).sum()) == pytest.approx(2 * 9 * float(self_expression(Z, C)))  # tr(GM) = ||Z - C'Z||^2
    assert float(commutator(G, M)) == pytest.approx(np.sqrt(np.sum((G @ M - M @ G).numpy() ** 2)))
    np.testing.assert_allclose(eigenspace_correlation(G, M), _reference_correlation(G.numpy(), M.numpy()), atol=1e-9)
    of_G, of_M = spectra(G, M)
    np.testing.assert_allclose(of_G, np.sort(np.linalg.eigvals(G.numpy()).real)[::-1], atol=1e-9)
    np.testing.assert_allclose(of_M, np.sort(np.linalg.eigvals(M.numpy()).real), atol=1e-9)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(("n", "d"), [(10, 4), (10, 10), (8, 13), (40, 25)])
def test_the_optimum_for_a_fixed_c_is_aligned(n, d, dtype):
    """1 for the first min(d, n) eigenvectors of M, 0 for the rest; any rotation of Z, since only G enters."""
    _, C = random_pair(n, d, seed=n + d)
    lambda_max = float(torch.linalg.matrix_norm(torch.eye(n, dtype=C.dtype) - C, ord=2)) ** 2
    alpha = d / (0.1 * n)
    Z = optimal_Z(C, alpha, 0.9 * gamma_bound(alpha, n, d, lambda_max), d)
    Q = np.linalg.qr(np.random.default_rng(1).standard_normal((d, d)))[0]
    G, M = gram_and_residual((Z @ torch.from_numpy(Q)).to(dtype), C.to(dtype))
    small = 1e-10 if dtype == torch.float64 else 1e-3
    assert commutator(G, M) < small
    expected = torch.cat([torch.ones(min(d, n)), torch.zeros(max(0, n - d))]).to(dtype)
    torch.testing.assert_close(eigenspace_correlation(G, M), expected, atol=small, rtol=0)


def test_chance_is_not_aligned():
    G, M = gram_and_residual(*random_pair(10, 4))
    assert commutator(G, M) > 1
    assert eigenspace_correlation(G, M).max() < 0.99


def test_no_direction_no_correlation():
    _, M = gram_and_residual(*random_pair(6, 2))
    assert torch.equal(eigenspace_correlation(torch.zeros(6, 6, dtype=M.dtype), M), torch.zeros(6, dtype=M.dtype))


def joint_optimum(n, d, alpha, gamma, beta, T, seed):
    """(Z, C) minimising L1 + gamma/2 ||Z - ZC||^2 + beta ||C - T||_F^2 on ||Z||_F^2 = n, by L-BFGS on both."""

    def split(x):
        W, C = x[: n * d].reshape(n, d), x[n * d :].reshape(n, n)
        return W * (n**0.5 / torch.linalg.matrix_norm(W)), C

    def loss(array):
        x = torch.from_numpy(array).requires_grad_()
        Z, C = split(x)
        value = coding_rate(Z, alpha) + gamma * n * self_expression(Z, C) + beta * (C - T).square().sum()
        value.backward()
        return value.item(), x.grad.numpy()

    x = 0.3 * np.random.default_rng(seed).standard_normal(n * d + n * n)
    start = split(torch.from_numpy(x))
    for _ in range(4):
        options = {"maxiter": 1500, "maxcor": 20, "ftol": 0, "gtol": 1e-9}
        x = minimize(loss, x, jac=True, method="L-BFGS-B", options=options).x
    return start, split(torch.from_numpy(x))


@pytest.mark.parametrize("pulled", [False, True])
@pytest.mark.parametrize(("n", "d"), [(7, 3), (6, 8)])
def test_the_joint_optimum_is_aligned(n, d, pulled):
    """Theorem 1, with r(C) = ||C||_F^2 and with r(C) = ||C - T||_F^2 for an arbitrary T.

    For ||C||_F^2 the best C is a function of G, (gamma G + 2 beta I)^-1 gamma G, and commutes with it at any Z.
    The pull of T breaks that, so only the optimality of Z is left to align M with G.
    """
    T = torch.from_numpy(0.5 * pulled * np.random.default_rng(n).standard_normal((n, n)))
    start, (Z, C) = joint_optimum(n, d, alpha=d / (0.5 * n), gamma=1.0, beta=0.3, T=T, seed=d)
    assert commutator(*gram_and_residual(*start)) > 0.1
    G, M = gram_and_residual(Z, C)
    assert commutator(G, M) < 1e-6
    assert torch.linalg.matrix_norm(C) > 0.1  # not the trivial M = I, which commutes with everything
    if pulled:
        assert torch.linalg.matrix_norm(G @ C - C @ G) > 0.1
