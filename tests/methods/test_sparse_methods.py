"""SSC-OMP and EnSC on subspaces where theory says what they find, and their solvers against naive ones."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import ElasticNet

from conftest import union_of_subspaces
from prodsc import load, make, metrics
from prodsc.selfexpression.elastic_net import elastic_net, point_gammas, violation
from prodsc.selfexpression.omp import omp
from prodsc.selfexpression.sparse import blocks, sparse_coefficients


@pytest.fixture(scope="module")
def clean():
    """Four independent 3-dimensional subspaces without noise, rows of length 1."""
    X, y = union_of_subspaces(n_per_class=40, n_classes=4, dimension=3, ambient=30, noise=0.0)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


SOLVERS = {
    "ssc-omp": lambda X, b: omp(X, b, 10, 1e-6),
    "ensc": lambda X, b: elastic_net(X, b, point_gammas(X, b, 50.0, 0.95), 0.95)[0],
}


@pytest.mark.parametrize("name", ["ssc-omp", "ensc"])
def test_independent_subspaces_are_found_exactly(name, clean, tmp_path):
    X, y = clean
    model = make(name, n_clusters=4).fit(X)
    assert metrics.accuracy(y, model.labels_) == 1
    assert not hasattr(model, "predict"), "it labels the rows it is given"
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).labels_, model.labels_)
    points = torch.from_numpy(X)
    C = sparse_coefficients(lambda b: SOLVERS[name](points, b), blocks(len(X), 50)).toarray()  # several blocks
    assert metrics.subspace_preserving_error(torch.from_numpy(C), y) < 1e-4
    assert (np.diag(C) == 0).all()


def _reference_omp(X, i, k_max, tolerance):
    residual, support = X[i].copy(), []
    while len(support) < k_max and np.linalg.norm(residual) > tolerance * np.linalg.norm(X[i]):
        scores = np.abs(X @ residual)
        scores[[i, *support]] = -1
        support.append(int(scores.argmax()))
        c = np.linalg.lstsq(X[support].T, X[i], rcond=None)[0]
        residual = X[i] - X[support].T @ c
    found = np.zeros(len(X))
    found[support] = c
    return found


@pytest.mark.parametrize("k_max", [1, 3, 8])
def test_omp_is_the_loop_over_points(k_max):
    X = np.random.default_rng(0).standard_normal((60, 12))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    C = omp(torch.from_numpy(X), slice(0, 60), k_max, 1e-6).numpy()
    for i in range(60):
        np.testing.assert_allclose(C[i], _reference_omp(X, i, k_max, 1e-6), atol=1e-9)


@pytest.mark.parametrize("tau", [0.5, 0.9, 1.0])
def test_elastic_net_is_optimal_and_scikit_learns(tau):
    """KKT conditions to 1e-6 on 40 points of each kind, and the objective of scikit-learn's solver on some."""
    X = np.random.default_rng(1).standard_normal((40, 15))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    points, everything = torch.from_numpy(X), slice(0, 40)
    gammas = point_gammas(points, everything, 50.0, tau)
    C, error = elastic_net(points, everything, gammas, tau)
    delta = gammas[:, None] * (points - C @ points)
    inner = (delta @ points.T - (1 - tau) * C).fill_diagonal_(0.0)
    assert violation(inner, C, tau).max() < 1e-6
    assert error.max() < 1e-6
    for i in range(0, 40, 8):
        others = np.delete(X, i, axis=0)
        g = float(gammas[i])
        model = ElasticNet(alpha=1 / (g * 15), l1_ratio=tau, fit_intercept=False, tol=1e-12, max_iter=100_000).fit(
            others.T, X[i]
        )

        def objective(c, g=g, i=i, others=others):
            return tau * abs(c).sum() + (1 - tau) / 2 * c @ c + g / 2 * ((X[i] - c @ others) ** 2).sum()

        ours = np.delete(C[i].numpy(), i)
        assert objective(ours) <= objective(model.coef_) + 1e-8
