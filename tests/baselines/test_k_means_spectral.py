"""k-means, spherical k-means and spectral clustering against scikit-learn and the truth."""

import numpy as np
import pytest
import torch
from sklearn.cluster import KMeans

from prodsc import load, make
from prodsc.baselines.k_means import SphericalKMeans
from prodsc.core import metrics

NAMES = ("k-means", "spherical-k-means", "spectral")


@pytest.mark.parametrize("name", NAMES)
def test_clear_groups_are_found_and_new_rows_labelled(name, blobs, tmp_path):
    X, y = blobs
    model = make(name, n_clusters=3).fit(X)
    assert metrics.accuracy(y, model.labels_) > 0.97
    assert (np.diff(np.bincount(model.labels_)) <= 0).all(), "the largest cluster is 0"
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert metrics.accuracy(model.labels_, model.predict(X + 1e-3)) > 0.97
    model.save(tmp_path)
    np.testing.assert_array_equal(load(tmp_path).predict(X[:20]), model.labels_[:20])


def test_k_means_is_scikit_learns(blobs):
    X = blobs[0].astype(np.float32)
    model = make("k-means", n_clusters=4, random_state=0).fit(X)
    again = KMeans(4, n_init=10, random_state=model.seed_).fit(X)
    assert model.inertia_ == pytest.approx(again.inertia_, rel=1e-5)


def test_spherical_k_means_sees_angles_only():
    """Two directions, lengths over three decades: plain k-means groups by length, spherical by direction."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    X = (np.eye(2)[y] + 0.05 * rng.standard_normal((200, 2))) * 10 ** rng.uniform(-1, 2, (200, 1))
    assert metrics.accuracy(y, make("spherical-k-means", n_clusters=2).fit(X).labels_) == 1
    assert metrics.accuracy(y, make("k-means", n_clusters=2).fit(X).labels_) < 0.9


def test_spherical_centres_are_unit_and_at_rest():
    X = np.random.default_rng(0).standard_normal((100, 5))
    model = SphericalKMeans(4).fit(X)
    torch.testing.assert_close(model.centres_.norm(dim=1), torch.ones(4))
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for c in range(4):
        mean = unit[model.labels_ == c].sum(0)
        assert mean @ model.centres_[c].numpy() / np.linalg.norm(mean) > 0.99
