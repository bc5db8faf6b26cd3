"""The evidence for labels: good ones are supported, coin tosses are not, and a better simple method is named."""

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs, make_moons

from prodsc import PRODSC, diagnose
from prodsc.pro_dsc.support import measure_support

BLOBS, GROUPS = make_blobs(600, 20, centers=4, random_state=0)


def support(X, labels, k):
    centred = X - X.mean(0)
    return measure_support(torch.from_numpy(centred), labels, k)


def test_clear_clusters_are_supported_and_k_means_would_do():
    found = support(BLOBS, GROUPS, 4)
    assert found.word == "supported"
    assert found.score == pytest.approx(1.0)
    assert "You may as well use" in found.sentences()[1]


@pytest.mark.parametrize("seed", range(3))
def test_data_without_clusters_are_not_supported(seed):
    X = np.random.default_rng(seed).standard_normal((600, 20))
    model = PRODSC(4, random_state=seed, epochs=5).fit(X)
    found = diagnose(model, X)
    assert found.support.word == "not supported"
    assert "do not rely on them" in found.sentences()[1]


def test_random_labels_of_clear_clusters_are_not_supported():
    shuffled = np.random.default_rng(0).permutation(GROUPS)
    assert support(BLOBS, shuffled, 4).word == "not supported"


def test_a_simple_method_that_sees_more_is_named():
    X, y = make_moons(600, noise=0.05, random_state=0)
    lifted = np.c_[X - X.mean(0), np.full(600, 1.5)]
    halves = (X[:, 0] > np.median(X[:, 0])).astype(int)
    found = measure_support(torch.from_numpy(lifted), halves, 2)
    assert [each.name for each in found.simpler if each.better] == ["spectral clustering"]
    assert found.word != "supported"
    assert "spectral clustering cut less than half as many" in found.sentences()[1]
    assert measure_support(torch.from_numpy(lifted), y, 2).word == "supported"


def test_few_rows_are_not_judged():
    found = support(BLOBS[:10], GROUPS[:10], 4)
    assert found.word == "not judged"
    assert len(found.sentences()) == 1


def test_the_answers_as_json():
    model = PRODSC(4, random_state=0, epochs=5).fit(BLOBS)
    answers = diagnose(model, BLOBS).to_dict()
    assert answers["representation"] == "healthy"
    assert answers["labels"] == "supported"
    assert {each["name"] for each in answers["simpler_methods"]} == {"k-means", "spectral clustering"}
    assert len(answers["sentences"]) == 3
