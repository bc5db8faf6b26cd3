"""The method `walk`: labels, new rows, files and many rows."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits, make_blobs

import prodsc
from prodsc.baselines import walk
from prodsc.baselines.walk import WalkClusterer
from prodsc.core.metrics import accuracy, nmi


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X, y, WalkClusterer(10, device="cpu").fit(X)


def test_digits_are_found(digits):
    _, y, model = digits
    assert accuracy(y, model.labels_) > 0.9
    assert nmi(y, model.labels_) > 0.88
    assert not model.uneven_


def test_labels_are_what_predict_gives(digits):
    X, _, model = digits
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict(X[:7]), model.labels_[:7])


def test_a_saved_model_labels_the_same(digits, tmp_path):
    X, _, model = digits
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(prodsc.load(tmp_path / "model").predict(X), model.labels_)


def test_the_order_of_rows_matters_little(digits):
    X, _, model = digits
    order = np.random.default_rng(0).permutation(len(X))
    again = WalkClusterer(10, device="cpu").fit(X[order])
    assert accuracy(model.labels_[order], again.labels_) > 0.97


def test_a_part_of_many_rows_is_clustered_and_all_are_labelled(monkeypatch):
    X, y = make_blobs(600, 5, centers=4, cluster_std=0.3, random_state=0)
    monkeypatch.setattr(walk, "RULES", walk.CoordinateRules(graph_rows=300))
    model = WalkClusterer(4, n_neighbors=8, device="cpu").fit(X)
    assert accuracy(y, model.labels_) > 0.98


@pytest.mark.parametrize("max_spread", [1.0, 2.0])
def test_wide_columns_are_limited(max_spread):
    X = torch.randn(200, 5, generator=torch.Generator().manual_seed(0)) * torch.tensor([1, 1, 1, 9, 0])
    network = walk.WalkNetwork(torch.nn.Identity(), 5, 5)
    network.set_coordinates(X, max_spread)
    spread = (X * network.scale).std(0, correction=0)
    median = X[:, :4].std(0, correction=0).median()  # a constant column does not count
    torch.testing.assert_close(spread[3], max_spread * median)
    assert spread[4] == 0
