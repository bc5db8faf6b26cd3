"""The self-expressive residual of a row against the matrices of training, and its scale."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from prodsc import PRODSC
from prodsc.cli import main
from prodsc.core.graph import CoefficientKernel, OutlierModel, residual_quantiles, sample_dictionary
from prodsc.core.self_expression import self_expression
from prodsc.errors import ModelFileError

FIT = {"hidden_size": 32, "n_components": 16, "warmup_steps": 10, "epochs": 20, "n_init": 3}


def unit(n, d, seed):
    return torch.nn.functional.normalize(torch.from_numpy(np.random.default_rng(seed).standard_normal((n, d))))


@pytest.mark.parametrize("half_steps", [1, 2, 3])
@pytest.mark.parametrize("form", ["symmetric", "directed"])
def test_a_row_is_expressed_as_one_more_landmark(form, half_steps):
    """For a landmark its column of C among them, exactly; for a new row nearly its column with it at the end."""
    Y, Z = unit(30, 5, 0), unit(30, 5, 1)
    found = OutlierModel(CoefficientKernel(Y, 0.2, half_steps), Z, form, np.zeros(0))
    C = self_expression(Y, 0.2, "sinkhorn", half_steps, form).C
    torch.testing.assert_close(found.residuals(Y, Z), (Z - C.T @ Z).norm(dim=1))
    y, z = unit(1, 5, 2), unit(1, 5, 3)
    C = self_expression(torch.cat([Y, y]), 0.2, "sinkhorn", half_steps, form).C
    expected = z - C[:-1, -1] @ Z
    # The landmarks' own scaling does not know of the new row: it differs by one term of 31.
    torch.testing.assert_close(found.residuals(y, z), expected.norm(dim=1), atol=0.05, rtol=0)


def test_scores_are_shares_of_training_rows():
    residuals = np.random.default_rng(0).gamma(2.0, size=500)
    found = OutlierModel(
        CoefficientKernel(unit(3, 2, 0), 0.2, 1), unit(3, 2, 1), "symmetric", residual_quantiles(residuals)
    )
    expected = np.array([(residuals < r).mean() for r in residuals])
    np.testing.assert_allclose(found.scores(residuals), expected, atol=0.01)
    assert found.scores(np.array([-1.0, residuals.max() + 1])).tolist() == [0.0, 1.0]


def test_a_sample_of_the_landmarks_expresses():
    assert sample_dictionary(1024, 0).tolist() == list(range(1024))
    some = sample_dictionary(3 * 1024, 0)
    assert len(set(some.tolist())) == 1024
    assert (some.diff() > 0).all()
    assert sample_dictionary(3 * 1024, 1).tolist() != some.tolist()


@pytest.fixture(scope="module")
def fitted():
    """Three lines in 12 dimensions, and rows that are on none of them."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 60)
    X = np.eye(12)[y] * rng.choice([-1, 1], len(y))[:, None] + 0.1 * rng.standard_normal((len(y), 12))
    strange = np.eye(12)[rng.integers(3, 12, 40)] + 0.1 * rng.standard_normal((40, 12))
    return PRODSC.from_flat(3, **FIT).fit(X[::2]), X[1::2], strange, X[::2]


def test_strange_rows_have_high_scores(fitted):
    model, same, strange, X = fitted
    scores = model.outlier_score(np.vstack([same, strange]))
    assert roc_auc_score(np.repeat([0, 1], [len(same), len(strange)]), scores) > 0.9
    assert ((scores >= 0) & (scores <= 1)).all()
    np.testing.assert_allclose(model.outlier_score(X), model.outlier_score_, atol=1e-3)
    raw = model.outlier_score(strange, raw=True)
    assert raw.max() > model.outlier_score(X, raw=True).max()
    np.testing.assert_allclose([model.outlier_score(row[None], raw=True)[0] for row in strange], raw, atol=1e-5)


def test_a_saved_model_keeps_its_scores(fitted, tmp_path):
    model, same, strange, _ = fitted
    model.save(tmp_path / "model")
    again = PRODSC.load(tmp_path / "model")
    np.testing.assert_allclose(again.outlier_score(strange), model.outlier_score(strange), atol=1e-3)
    np.savetxt(tmp_path / "new.csv", same, delimiter=",", header=",".join(f"x{i}" for i in range(12)), comments="")
    with pytest.raises(SystemExit):
        main(["predict", str(tmp_path / "model"), str(tmp_path / "new.csv"), "-o", str(tmp_path / "labels.csv")])
    written = np.genfromtxt(tmp_path / "labels.csv", delimiter=",", names=True)
    np.testing.assert_allclose(written["outlier"], model.outlier_score(same), atol=1e-3)
    again.labeller_ = replace(again.labeller_, outliers=None)  # as in a model of an older file
    assert [len(part) for part in again.labelled(same)] == [2]
    with pytest.raises(ModelFileError, match="saved before"):
        again.outlier_score(same)
    again.save(tmp_path / "old")
    np.testing.assert_array_equal(PRODSC.load(tmp_path / "old").predict(same), model.predict(same))
