"""scaling="auto": rows are directions, points, or tables without a common unit."""

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_circles

from prodsc import PRODSC, load
from prodsc.core import metrics
from prodsc.estimators.scaling import resolve_scaling
from prodsc.sources.checks import check_values


@pytest.mark.parametrize(
    ("X", "scaling"),
    [
        (load_digits().data, "unit"),
        (load_iris().data, "global"),
        (load_wine().data, "standard"),
        (load_breast_cancer().data, "standard"),
        (np.random.default_rng(0).normal(size=(30, 8, 8)), "unit"),
    ],
    ids=["digits", "iris", "wine", "breast cancer", "images"],
)
def test_the_scaling_that_suits_the_rows(X, scaling):
    found = resolve_scaling(check_values(X), X.shape)
    assert found.scaling == scaling
    assert found.reason


def test_circles_are_told_apart_by_their_radius(tmp_path):
    X, y = make_circles(1000, noise=0.05, factor=0.5, random_state=0)
    model = PRODSC(2, random_state=0).fit(X)
    assert metrics.accuracy(y, model.labels_) > 0.9  # 0.5 by direction alone
    assert model.resolved_params_["scaling"] == "global"
    model.save(tmp_path)
    again = load(tmp_path)
    assert again.scaling_ == "global"
    np.testing.assert_array_equal(again.predict(X), model.labels_)


def test_a_given_scaling_stays():
    model = PRODSC(3, scaling="unit", epochs=2).fit(load_wine().data)
    assert model.scaling_ == "unit"
    assert model.scaling_reason_ == ""
    assert "scaling" not in model.resolved_params_
