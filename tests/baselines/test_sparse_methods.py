"""The classical subspace methods on subspaces where theory says what they find; their solvers against naive ones."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import ElasticNet

from conftest import union_of_subspaces
from prodsc import load, make
from prodsc.baselines.self_expressive import DenseSelfExpressive, SelfExpressive
from prodsc.core import metrics
from prodsc.core.self_expression import elastic_net as solver
from prodsc.core.self_expression.elastic_net import ElasticNets, SolverOptions, point_gammas
from prodsc.core.self_expression.omp import omp
from prodsc.errors import InputError


@pytest.fixture(scope="module")
def clean():
    """Four independent 3-dimensional subspaces without noise, rows of length 1."""
    X, y = union_of_subspaces(n_per_class=40, n_classes=4, dimension=3, ambient=30, noise=0.0)
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


SPARSE, DENSE = ("ssc-omp", "ensc", "ssc"), ("lsr", "lrr")


@pytest.mark.parametrize("name", [*SPARSE, *DENSE])
def test_independent_subspaces_are_found_exactly(name, clean, tmp_path, monkeypatch):
    X, y = clean
    monkeypatch.setattr(SelfExpressive, "_block_bytes", 8 * 160 * 50)  # several blocks
    model = make(name, n_clusters=4).fit(X)
    assert metrics.accuracy(y, model.labels_) == 1
    assert not hasattr(model, "predict"), "it labels the rows it is given"
    model.save(tmp_path)
    again = load(tmp_path)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    C, A = (M.toarray() if name in SPARSE else M for M in (again.coefficients(X), again.affinity(X)))
    assert C.shape == A.shape == (len(X), len(X))
    np.testing.assert_allclose(A, A.T, atol=1e-12)
    if name in SPARSE:
        assert metrics.subspace_preserving_error(torch.from_numpy(C), y) < 1e-4
    if name != "lrr":  # its problem lets a point express itself
        assert (np.diag(C) == 0).all()


def test_lrr_preserves_subspaces_as_gamma_grows(clean):
    X, y = clean
    found = [make("lrr", n_clusters=4, gamma=gamma).fit(X).coefficients(X) for gamma in (1.0, 1e2, 1e4)]
    errors = [metrics.subspace_preserving_error(torch.from_numpy(C), y) for C in found]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.1


@pytest.mark.parametrize("name", ["lsr", "lrr"])
def test_matrices_of_all_pairs_have_a_limit(name, clean, monkeypatch):
    monkeypatch.setattr(DenseSelfExpressive, "_max_bytes", 40 * 100**2)
    with pytest.raises(InputError, match=r"X has 160 rows, and L.R makes matrices of all pairs .* at most 100 rows"):
        make(name, n_clusters=4).fit(clean[0])


@pytest.mark.parametrize("name", ["ensc", "ssc"])
def test_points_that_did_not_converge_are_told_of(name, monkeypatch):
    X = np.random.default_rng(0).standard_normal((60, 10))
    monkeypatch.setattr(solver, "SOLVER_OPTIONS", SolverOptions(max_rough_rounds=1, max_rounds=1))
    with pytest.warns(UserWarning, match=r"the solver did not converge for \d+ of 60 points \(the worst is .* from"):
        make(name, n_clusters=2, gamma=400.0).fit(X)


def test_progress_is_shown_when_asked_for(clean, capsys):
    make("ssc-omp", n_clusters=4).fit(clean[0])
    assert capsys.readouterr().err == ""
    make("ssc-omp", n_clusters=4, verbose=1).fit(clean[0])
    assert "SSCOMP" in capsys.readouterr().err


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


def _problem(number):
    """A dictionary whose first row is to be expressed: sizes, tau and gamma (1 to 3200, as in the paper) vary."""
    rng = np.random.default_rng(number)
    n, d = int(rng.integers(10, 80)), int(rng.integers(3, 40))
    X = rng.standard_normal((n, d))
    tau = float(rng.choice([0.5, 0.9, 0.95, 1.0]))
    return X / np.linalg.norm(X, axis=1, keepdims=True), tau, float(10 ** rng.uniform(0, np.log10(3200)))


@pytest.mark.parametrize("tens", range(10))
def test_elastic_net_is_optimal_and_scikit_learns(tens):
    """The KKT conditions to 1e-6 on ten random problems, and the objective that scikit-learn reaches; with and without
    a Gram matrix."""
    options = SolverOptions(max_gram_points=0 if tens % 2 else 1000)
    for number in range(10 * tens, 10 * tens + 10):
        X, tau, gamma = _problem(number)
        points, first = torch.from_numpy(X), slice(0, 1)
        gammas = point_gammas(points, first, gamma, tau)
        found, error = ElasticNets(points, tau, options)(first, gammas)
        others, c, g = X[1:], found[0, 1:].numpy(), float(gammas[0])
        assert g == pytest.approx(gamma * tau / np.abs(others @ X[0]).max())
        inner = g * others @ (X[0] - c @ others) - (1 - tau) * c
        wrong = np.where(c != 0, np.abs(inner - tau * np.sign(c)), np.maximum(np.abs(inner) - tau, 0))
        assert wrong.max() < 1e-6
        assert float(error) == pytest.approx(wrong.max(), abs=1e-9)
        assert found[0, 0] == 0

        def objective(c, others=others, x=X[0], g=g, tau=tau):
            return tau * abs(c).sum() + (1 - tau) / 2 * c @ c + g / 2 * ((x - c @ others) ** 2).sum()

        if gamma > 400:
            continue  # scikit-learn needs a million rounds there
        d, gap = X.shape[1], 1e-6  # by which scikit-learn may miss the lowest value
        peer = ElasticNet(alpha=1 / (g * d), l1_ratio=tau, fit_intercept=False, tol=gap / g, max_iter=1_000_000)
        theirs = objective(peer.fit(others.T, X[0]).coef_)
        assert theirs - gap <= objective(c) <= theirs + 1e-9


def test_ensc_clusters_its_coefficients_when_asked_to(clean):
    X, y = clean
    model = make("ensc", n_clusters=4, code_graph="coefficients").fit(X)
    C = abs(model.coefficients(X)).toarray()
    unit = C / np.linalg.norm(C, axis=0)
    np.testing.assert_allclose(model.affinity(X).toarray(), (unit + unit.T) / 2, atol=1e-12)
    assert metrics.accuracy(y, model.labels_) == 1


def test_an_affinity_is_made_once_for_all_seeds(clean, tmp_path, monkeypatch):
    X, checkpoint = clean[0], tmp_path / "affinity.safetensors"
    first = make("ensc", n_clusters=4, random_state=0).fit(X, checkpoint=checkpoint)
    written = checkpoint.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(type(first), "_coefficients", None)  # cannot be called
        again = make("ensc", n_clusters=4, random_state=1).fit(X, checkpoint=checkpoint)
    assert metrics.accuracy(first.labels_, again.labels_) == 1
    make("ensc", n_clusters=4, gamma=20.0).fit(X, checkpoint=checkpoint)
    other = checkpoint.read_bytes()
    assert other != written, "other parameters: made anew"
    make("ensc", n_clusters=4, gamma=20.0).fit(X[::-1], checkpoint=checkpoint)
    assert checkpoint.read_bytes() != other, "other rows: made anew"
