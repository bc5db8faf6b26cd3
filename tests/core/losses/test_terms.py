"""Every term against a naive re-derivation, in float64."""

import numpy as np
import pytest
import scipy.linalg
import torch

from prodsc.core import losses
from prodsc.core.self_expression import self_expression


def unit_rows(n, d, seed=0):
    Z = np.random.default_rng(seed).standard_normal((n, d))
    return torch.from_numpy(Z / np.linalg.norm(Z, axis=1, keepdims=True))


def coefficients(n, seed=1, **how):
    return self_expression(unit_rows(n, 5, seed), 0.3, **how)


def _reference_coding_rate(Z, alpha):
    """-1/2 log det of the n x n matrix, by the eigenvalues of the Gram matrix of columns."""
    columns = Z.T
    return -0.5 * np.log(np.linalg.eigvalsh(np.eye(columns.shape[1]) + alpha * columns.T @ columns)).sum()


def _reference_self_expression(Z, C):
    """Point by point: z_j minus the combination of the others with column j of C."""
    total = 0.0
    for j in range(len(Z)):
        combined = sum(C[i, j] * Z[i] for i in range(len(Z)))
        total += 0.5 * np.sum((Z[j] - combined) ** 2)
    return total / len(Z)


def _reference_block_diagonal(A, k):
    L = np.diag(A.sum(1)) - A
    return np.sort(scipy.linalg.eigvals(L).real)[:k].sum() / len(A)


@pytest.mark.parametrize(("n", "d"), [(30, 7), (7, 30), (12, 12)])
def test_coding_rate(n, d):
    Z = unit_rows(n, d)
    alpha = losses.scale(n, d, 0.1)
    assert alpha == pytest.approx(d / (n * 0.1))
    assert float(losses.coding_rate(Z, alpha)) == pytest.approx(_reference_coding_rate(Z.numpy(), alpha), abs=1e-9)


@pytest.mark.parametrize("form", ["symmetric", "directed"])
def test_self_expression(form):
    Z, C = unit_rows(17, 6), coefficients(17, form=form).C
    assert float(losses.self_expression(Z, C)) == pytest.approx(
        _reference_self_expression(Z.numpy(), C.numpy()), abs=1e-9
    )


def test_self_expression_uses_columns_of_C():
    """Expressing z_1 by z_0 is C[0, 1]; the transposed reading would give another number."""
    Z = torch.tensor([[1.0, 0.0], [1.0, 0.0]], dtype=torch.float64)
    C = torch.tensor([[0.0, 1.0], [0.0, 0.0]], dtype=torch.float64)  # z_1 = z_0, z_0 = nothing
    Z[0] *= 2
    assert float(losses.self_expression(Z, C)) == pytest.approx((0.5 * 4 + 0.5 * 1) / 2)


@pytest.mark.parametrize("k", [1, 3, 9, 19, 40])
def test_block_diagonal(k):
    A = coefficients(20).A
    assert float(losses.block_diagonal(A, k)) == pytest.approx(_reference_block_diagonal(A.numpy(), k), abs=1e-9)


def test_block_diagonal_with_more_clusters_than_rows_is_the_trace():
    A = coefficients(8).A
    assert float(losses.block_diagonal(A, 50)) == pytest.approx(float(A.sum()) / 8)


@pytest.mark.parametrize(("n", "k"), [(300, 5), (300, 40), (600, 12)])
def test_block_diagonal_is_the_same_by_every_solver(n, k):
    A = coefficients(n).A
    assert float(losses.block_diagonal(A, k)) == pytest.approx(_reference_block_diagonal(A.numpy(), k), abs=1e-6)


def test_norms():
    C = coefficients(15, form="directed").C
    c = C.numpy()
    assert float(losses.l1(C)) == pytest.approx(np.abs(c).sum() / 15)
    assert float(losses.frobenius(C)) == pytest.approx(np.trace(c.T @ c) / 15)
    assert float(losses.nuclear(C)) == pytest.approx(np.sqrt(np.linalg.eigvalsh(c.T @ c).clip(0)).sum() / 15, abs=1e-9)


def test_nuclear_spread():
    Z = unit_rows(9, 4)
    reference = -np.trace(scipy.linalg.sqrtm(Z.numpy().T @ Z.numpy()).real) / 3
    assert float(losses.nuclear_spread(Z)) == pytest.approx(reference, abs=1e-6)


def test_reconstruction():
    X, X_hat = torch.rand(4, 1, 3, 3), torch.rand(4, 1, 3, 3)
    reference = sum(0.5 * float(((X[i] - X_hat[i]) ** 2).sum()) for i in range(4)) / 4
    assert float(losses.reconstruction(X, X_hat)) == pytest.approx(reference, rel=1e-5)
