"""What people type today: UMAP and then a clustering, EVoC, Leiden; and the message when they are not installed."""

import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from conftest import RIVAL_LIBRARIES
from prodsc.baselines.noise import assign_noise
from prodsc.core.metrics import accuracy
from prodsc.errors import InputError, MissingExtraError, ParameterError
from prodsc.estimators.capabilities import Capability, can
from prodsc.registry import METHODS, load, make

SMALL = {
    "umap-k-means": {"n_components": 2, "n_neighbors": 10, "n_init": 2},
    "umap-gmm": {"n_components": 2, "n_neighbors": 10},
    "umap-hdbscan": {"n_components": 2, "n_neighbors": 10},
    "evoc": {"scaling": "centred"},
    "leiden": {"scaling": "standard", "n_neighbors": 10},
}
each = pytest.mark.parametrize("name", RIVAL_LIBRARIES)


def rival(name, **parameters):
    """An estimator of a rival, or skip where its library is missing."""
    pytest.importorskip(RIVAL_LIBRARIES[name])
    return make(name, **{"n_clusters": 3, "device": "cpu"} | SMALL[name] | parameters)


@each
def test_clear_groups_are_found_again_with_the_same_seed(name, blobs, tmp_path):
    X, y = blobs
    model = rival(name).fit(X)
    assert accuracy(y, model.labels_) > 0.95
    assert model.n_clusters_ == 3
    assert np.all(np.diff(np.bincount(model.labels_)) <= 0), "cluster 0 is the largest"
    np.testing.assert_array_equal(rival(name).fit(X).labels_, model.labels_)
    model.save(tmp_path)
    again = load(tmp_path)
    np.testing.assert_array_equal(again.labels_, model.labels_)
    for attribute in ("embedding_", "is_noise_"):
        assert hasattr(again, attribute) == hasattr(model, attribute)
        if hasattr(model, attribute):
            np.testing.assert_array_equal(getattr(again, attribute), getattr(model, attribute))


@each
def test_labels_of_new_rows_are_not_promised(name):
    assert not can(METHODS[name], Capability.PREDICT)
    assert not hasattr(METHODS[name], "predict")


@each
def test_another_seed_is_another_start(name):
    """Rows without groups: a method whose seed did nothing would give the same labels."""
    X = np.random.default_rng(0).standard_normal((120, 6))
    labels = [rival(name, random_state=seed, **one_cluster_is_too_few(name)).fit(X).labels_ for seed in range(3)]
    assert any(not np.array_equal(labels[0], other) for other in labels[1:])


def one_cluster_is_too_few(name):
    return {"min_cluster_size": 5, "min_samples": 2} if name == "umap-hdbscan" else {}


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("umap-hdbscan", {"min_samples": 5, "min_cluster_size": 20}), ("evoc", {"scaling": "none"})],
)
def test_no_row_is_left_as_noise(name, parameters):
    rng = np.random.default_rng(0)
    groups = (6 * rng.standard_normal((3, 8)))[np.repeat(np.arange(3), 60)] + 3 * rng.standard_normal((180, 8))
    X = np.concatenate([groups, rng.uniform(-9, 9, (20, 8))])
    model = rival(name, **parameters).fit(X)
    noise = model.is_noise_
    assert 0 < noise.sum() < 100
    centroids = np.stack([X[(model.labels_ == j) & ~noise].mean(0) for j in range(model.n_clusters_)])
    nearest = ((X[noise, None] - centroids) ** 2).sum(-1).argmin(1)
    np.testing.assert_array_equal(model.labels_[noise], nearest)


def test_evoc_does_not_depend_on_the_number_of_threads():
    numba = pytest.importorskip("numba")
    if numba.config.NUMBA_NUM_THREADS < 2:
        pytest.skip("numba has one thread")
    X, labels = load_digits().data, []
    before = numba.get_num_threads()
    try:
        for n_threads in (1, 2):
            numba.set_num_threads(n_threads)
            labels.append(rival("evoc", n_clusters=10).fit(X).labels_)
            assert numba.get_num_threads() == n_threads, "a fit leaves the setting as it was"
    finally:
        numba.set_num_threads(before)
    np.testing.assert_array_equal(*labels)


def test_hdbscan_finds_its_own_number_of_clusters(blobs):
    model = rival("umap-hdbscan", n_clusters=2).fit(blobs[0])
    assert (model.n_clusters, model.n_clusters_) == (2, 3)
    assert rival("umap-hdbscan", min_cluster_size=65).fit(blobs[0]).n_clusters_ < 3, "smaller groups are no clusters"


@pytest.mark.parametrize("k", [2, 3, 6, 12])
def test_leiden_looks_for_the_resolution_that_gives_k_clusters(k, blobs):
    model = rival("leiden", n_clusters=k).fit(blobs[0])
    assert model.n_clusters_ == (k if k >= 3 else 3), "the graph has three components, which Leiden never joins"
    fixed = rival("leiden", resolution=model.resolution_).fit(blobs[0])
    np.testing.assert_array_equal(fixed.labels_, model.labels_)


# ---- rows called noise ---------------------------------------------------------------------------------------------


def test_noise_goes_to_the_nearest_centroid_of_the_input():
    X = np.array([[0.0, 0], [0, 2], [10, 0], [10, 2], [10, 4], [4, 1], [6, 1]])
    labels, n = assign_noise(X, np.array([4, 4, 1, 1, 1, -1, -1]))
    assert n == 2
    assert labels.tolist() == [1, 1, 0, 0, 0, 1, 0], "cluster 0 is the largest"


def test_all_rows_are_noise():
    with pytest.warns(UserWarning, match="every row is called noise, so all rows are one cluster"):
        labels, n = assign_noise(np.eye(3), np.full(3, -1))
    assert (labels.tolist(), n) == ([0, 0, 0], 1)


# ---- messages ------------------------------------------------------------------------------------------------------


@each
def test_a_missing_library_is_one_sentence(name, blobs, monkeypatch):
    monkeypatch.setitem(sys.modules, RIVAL_LIBRARIES[name], None)
    sentence = f"{METHODS[name].__name__} needs {RIVAL_LIBRARIES[name]}, which is not installed; install it with: "
    with pytest.raises(MissingExtraError) as error:
        make(name, n_clusters=3).fit(blobs[0])
    assert str(error.value) == sentence + "pip install 'prodsc[rivals]'"


@pytest.mark.parametrize("name", ["umap-k-means", "evoc"])
def test_the_start_of_a_library_warns_of_nothing(name):
    """In a process of its own, as each warns when it is first imported."""
    pytest.importorskip(RIVAL_LIBRARIES[name])
    code = (
        "import numpy as np\nfrom prodsc.registry import make\n"
        f"X = np.random.default_rng(0).standard_normal((40, 5))\nmake({name!r}, n_clusters=2).fit(X)"
    )
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_too_few_rows():
    rows = np.eye(3)
    with pytest.raises(InputError, match=r"X has 3 rows .* UMAP needs at least n_components \+ 2 = 12"):
        make("umap-gmm", n_clusters=2).fit(rows)
    with pytest.raises(InputError, match=r"X has 3 rows .* EVoC needs at least 4"):
        make("evoc", n_clusters=2).fit(rows)


@pytest.mark.parametrize(
    ("name", "value"),
    [("n_neighbors", 1), ("min_dist", 1.0), ("n_components", "auto"), ("min_cluster_size", 1), ("min_samples", 0)],
)
def test_values_that_umap_would_refuse(name, value):
    with pytest.raises(ParameterError, match=f"UMAPHDBSCAN: {name} must"):
        make("umap-hdbscan", n_clusters=2, **{name: value}).fit(np.eye(20))
