"""What docs/determinism.md promises, on rows whose clusters are clear; benchmarks/determinism.py measures the rest."""

import numpy as np
import pytest
import torch

from prodsc import make
from prodsc.core.metrics import ari

METHODS = {"k-means": {}, "pro-dsc": {}}


@pytest.fixture(scope="module")
def fitted(blobs):
    return {name: make(name, n_clusters=3, **given).fit(blobs[0]) for name, given in METHODS.items()}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", METHODS)
def test_a_fit_again_with_other_threads_dtypes_and_order(name, fitted, blobs):
    X, labels = np.asarray(blobs[0], np.float32), fitted[name].labels_
    again = make(name, n_clusters=3, **METHODS[name])
    np.testing.assert_array_equal(again.fit(X).labels_, labels)
    np.testing.assert_array_equal(again.fit(X.astype(np.float64)).labels_, labels)
    np.testing.assert_array_equal(again.fit(np.asfortranarray(X)).labels_, labels)
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        np.testing.assert_array_equal(again.fit(X).labels_, labels)
    finally:
        torch.set_num_threads(threads)
    order = np.random.default_rng(0).permutation(len(X))
    assert ari(again.fit(X[order]).labels_, labels[order]) == 1.0  # the same partition; numbers of clusters may differ


@pytest.mark.parametrize("name", METHODS)
def test_predict_does_not_depend_on_batches_or_dtypes(name, fitted, blobs):
    X, model = np.asarray(blobs[0], np.float32), fitted[name]
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.predict(X.astype(np.float64)), model.labels_)
    for size in (1, 7, 64):
        parts = [model.predict(X[i : i + size]) for i in range(0, len(X), size)]
        np.testing.assert_array_equal(np.concatenate(parts), model.labels_)
