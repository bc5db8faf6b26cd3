"""LSR's and LRR's coefficients against regressions point by point and the conditions of optimality."""

import numpy as np
import pytest
import scipy.sparse
import torch

from prodsc.core.graph.affinity import cosines, symmetrised, symmetrised_sparse
from prodsc.core.self_expression.closed_form import least_squares, low_rank


@pytest.fixture(params=[(30, 8), (8, 30)], ids=["more-rows", "more-columns"])
def X(request):
    rows = np.random.default_rng(0).standard_normal(request.param)
    return torch.from_numpy(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@pytest.mark.parametrize("gamma", [0.1, 5.0, 500.0])
def test_least_squares_is_a_ridge_regression_on_the_others(X, gamma):
    C = least_squares(X, gamma).numpy()
    for j in range(len(X)):
        others = np.delete(X.numpy(), j, axis=0)
        c = np.linalg.solve(others @ others.T + np.eye(len(others)) / gamma, others @ X[j].numpy())
        np.testing.assert_allclose(np.delete(C[:, j], j), c, atol=1e-9)
        assert C[j, j] == 0


@pytest.mark.parametrize("gamma", [0.1, 5.0, 500.0])
def test_low_rank_is_optimal(X, gamma):
    """C is optimal where the gradient of the error is a subgradient of ||C||_*: no singular value of it is above 1,
    and its inner product with C is ||C||_*."""
    C = low_rank(X, gamma)
    G = gamma * X @ (X - C.T @ X).T
    assert torch.linalg.matrix_norm(G, 2) <= 1 + 1e-9
    assert (G * C).sum() == pytest.approx(float(torch.linalg.matrix_norm(C, "nuc")), abs=1e-9)


def test_low_rank_tends_to_the_shape_interaction_matrix(X):
    U = torch.linalg.svd(X, full_matrices=False).U
    torch.testing.assert_close(low_rank(X, 1e12), U @ U.T, atol=1e-9, rtol=0)


def test_cosines_are_of_the_rows_of_the_root(X):
    C = low_rank(X, 20.0)
    values, vectors = torch.linalg.eigh(C)
    U = torch.nn.functional.normalize(vectors * values.clamp_min(0.0).sqrt())
    torch.testing.assert_close(cosines(C), (U @ U.T).abs().fill_diagonal_(0.0), atol=1e-6, rtol=0)
    zero = cosines(torch.zeros(3, 3, dtype=torch.float64))
    assert (zero == 0).all(), "rows of zeros are related to none, themselves included"


def test_dense_and_sparse_affinities_agree():
    C = np.random.default_rng(1).standard_normal((9, 9))
    np.fill_diagonal(C, 0.0)
    unit = np.abs(C) / np.linalg.norm(C, axis=0)
    expected = (unit + unit.T) / 2
    np.testing.assert_allclose(symmetrised(torch.from_numpy(C)), expected, atol=1e-12)
    np.testing.assert_allclose(symmetrised_sparse(scipy.sparse.csc_array(C)).toarray(), expected, atol=1e-12)
