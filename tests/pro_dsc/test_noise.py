"""Noise: rows of no cluster get -1 when asked, and only then."""

import numpy as np
import pytest

from prodsc import PRODSC, load
from prodsc.core.graph import noise_threshold
from prodsc.errors import ParameterError

RNG = np.random.default_rng(0)
CENTRES = RNG.uniform(-10, 10, (4, 20))
GROUPS = np.concatenate([centre + RNG.standard_normal((150, 20)) for centre in CENTRES])
X = np.concatenate([GROUPS, RNG.uniform(-14, 14, (30, 20))])
STRANGE = np.arange(len(X)) >= len(GROUPS)


@pytest.fixture(scope="module")
def fitted():
    return PRODSC(4, noise="auto", random_state=0).fit(X)


def test_noise_is_found_and_clean_rows_are_kept(fitted):
    assert (fitted.labels_[STRANGE] == -1).all()
    assert (fitted.labels_[~STRANGE] == -1).mean() <= 0.01
    assert (fitted.clusters_ >= 0).all()
    assert (fitted.probabilities_[STRANGE] == 0).all()
    np.testing.assert_array_equal(fitted.predict(X), fitted.labels_)
    np.testing.assert_array_equal(np.concatenate([part[0] for part in fitted.labelled(X)]), fitted.labels_)


def test_a_saved_model_keeps_its_noise(fitted, tmp_path):
    fitted.save(tmp_path)
    again = load(tmp_path)
    np.testing.assert_array_equal(again.predict(X), fitted.labels_)
    np.testing.assert_array_equal(again.clusters_, fitted.clusters_)


def test_without_asking_there_is_none():
    model = PRODSC(4, random_state=0, epochs=2).fit(X)
    assert (model.labels_ >= 0).all()
    np.testing.assert_array_equal(model.labels_, model.clusters_)


def test_a_share_of_the_training_rows():
    model = PRODSC(4, noise=0.1, random_state=0, epochs=2).fit(X)
    assert (model.labels_ < 0).mean() == pytest.approx(0.1, abs=0.01)


@pytest.mark.parametrize("noise", [0, 0.7, "much", -1])
def test_other_values_are_refused(noise):
    with pytest.raises(ParameterError, match=r"noise must be None, 'auto' or a number in \(0, 0.5\]"):
        PRODSC(4, noise=noise).fit(X)


def test_the_threshold_of_an_exponential_tail_leaves_one_row_in_200():
    strangeness = np.random.default_rng(0).exponential(size=100_000)
    assert (strangeness > noise_threshold(strangeness, "auto")).mean() == pytest.approx(0.005, abs=0.001)
    assert noise_threshold(strangeness, None) == np.inf


def test_a_cluster_of_strays_is_named_so():
    model = PRODSC(5, random_state=0).fit(X)
    share = np.array([STRANGE[model.clusters_ == c].mean() for c in range(5)])
    assert [name == "strays" for name in model.cluster_names_] == (share > 0.5).tolist()
    assert (share > 0.5).sum() == 1
