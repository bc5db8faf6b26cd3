"""The default start of features: labels of a walk, taught to a head of the network."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs

from prodsc import PRODSC, diagnose
from prodsc.core.graph import calibrated_temperature
from prodsc.core.metrics import accuracy, nmi
from prodsc.nn import Moments, PrincipalCoordinates
from prodsc.pro_dsc import walk_start


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X, y, PRODSC(10, device="cpu").fit(X)


def test_digits_are_found(digits):
    _, y, model = digits
    assert model.resolved_params_["start"] == "walk"
    assert accuracy(y, model.labels_) > 0.9
    assert nmi(y, model.labels_) > 0.88


def test_labels_are_what_predict_gives(digits):
    X, _, model = digits
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict(X[:7]), model.labels_[:7])
    np.testing.assert_array_equal(model.predict_proba(X).argmax(1), model.labels_)


def test_a_saved_model_labels_the_same(digits, tmp_path):
    X, _, model = digits
    model.save(tmp_path / "model")
    loaded = PRODSC.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)
    np.testing.assert_allclose(loaded.predict_proba(X), model.predict_proba(X))


def test_the_order_of_rows_does_not_matter(digits):
    X, _, model = digits
    order = np.random.default_rng(0).permutation(len(X))
    again = PRODSC(10, device="cpu").fit(X[order])
    assert (model.labels_[order] == again.labels_).mean() > 0.995


def test_the_representation_is_not_collapsed(digits):
    X, _, model = digits
    assert diagnose(model, X).representation == "healthy"
    assert {"coding_rate", "walk_expression", "self_expression", "cross_entropy"} <= set(model.history_)
    assert np.nanmin(model.history_["margin"]) > 1


def test_the_label_network_gives_the_labels_and_probabilities(digits):
    X, _, model = digits
    logits = model.label_network()(torch.from_numpy(X))
    np.testing.assert_array_equal(logits.argmax(1).numpy(), model.labels_)
    np.testing.assert_allclose(logits.softmax(1).numpy(), model.predict_proba(X), atol=1e-5)


def test_a_part_of_many_rows_is_clustered_and_all_are_labelled():
    X, y = make_blobs(600, 5, centers=4, cluster_std=0.3, random_state=0)
    model = PRODSC(4, device="cpu").fit(X)
    reader = model._reader(X.astype(np.float32))
    few = walk_start.WalkStartRules(n_neighbors=8, graph_rows=300)
    start = walk_start.start_walk(reader, PrincipalCoordinates(5, 5), 4, 0, torch.device("cpu"), few)
    assert len(start.points) == len(start.labels) == 300
    assert accuracy(y, model.labels_) > 0.98


@pytest.mark.parametrize(
    "given",
    [{"warmup_steps": 5}, {"n_neighbors": 0}, {"keep_weights": "last"}, {"label_affinity": "gram"}, {"power": 1.0}],
    ids=lambda given: next(iter(given)),
)
def test_a_parameter_of_the_published_start_chooses_it(given):
    X, _ = make_blobs(60, 5, centers=3, random_state=0)
    model = PRODSC.from_flat(n_clusters=3, epochs=1, device="cpu", **given).fit(X)
    assert model.config_.start == "warm-up"


def test_known_labels_start_as_published():
    X, y = make_blobs(60, 5, centers=3, random_state=0)
    model = PRODSC(3, epochs=1, device="cpu").fit(X, known_labels={0: int(y[0]), 1: int(y[1])})
    assert model.config_.start == "warm-up"


@pytest.mark.parametrize("max_spread", [1.0, 2.0])
def test_wide_columns_are_limited(max_spread):
    X = torch.randn(200, 5, generator=torch.Generator().manual_seed(0)) * torch.tensor([1, 1, 1, 9, 0])
    coordinates = PrincipalCoordinates(5, 5)
    coordinates.fit(Moments.of(X), max_spread)
    spread = (X * coordinates.scale).std(0, correction=0)
    median = X[:, :4].std(0, correction=0).median()  # a constant column does not count
    torch.testing.assert_close(spread[3], max_spread * median)
    assert spread[4] == 0


def test_directions_are_the_principal_ones():
    X = torch.randn(50, 6, generator=torch.Generator().manual_seed(1)).double().float()
    coordinates = PrincipalCoordinates(6, 3)
    coordinates.fit(Moments.of(X), max_spread=1e9)  # no column is limited
    centred = (X - X.mean(0)).double()
    V = torch.linalg.svd(centred)[2][:3].T
    torch.testing.assert_close((coordinates.directions.double().T @ V).abs(), torch.eye(3).double(), atol=1e-4, rtol=0)
    P = coordinates(X)
    torch.testing.assert_close(P.norm(dim=1), torch.full((50,), 3**0.5))


def test_the_temperature_makes_confidence_equal_to_the_agreement():
    outputs = 8 * torch.randn(100, 4, generator=torch.Generator().manual_seed(0))
    temperature = calibrated_temperature(outputs, 0.7)
    assert float((outputs / temperature).softmax(1).amax(1).mean()) == pytest.approx(0.7, abs=1e-4)
    assert calibrated_temperature(outputs, 1.0) == 1.0
