"""A fit depends on parameters and rows alone, and one that fails or is interrupted changes nothing."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from conftest import SMALL
from prodsc import PRODSC, make
from prodsc.baselines import CPP
from prodsc.errors import InputError, ParameterError
from prodsc.pro_dsc.options import LossOptions
from prodsc.registry import METHODS
from prodsc.training import Callback


class Interrupt(Callback):
    def on_step(self, training):
        if training.current.name == "joint" and training.step == 2:
            raise KeyboardInterrupt


class Fail(Callback):
    def on_step(self, training):
        raise RuntimeError("a callback failed")


def test_check_leaves_no_trace(blobs):
    model = PRODSC.from_flat(3, **SMALL)
    before = dict(vars(model))
    model.check(blobs[0], known_labels={0: 1})
    assert vars(model) == before
    with pytest.raises(NotFittedError):
        model.predict(blobs[0])


@pytest.mark.parametrize(("callback", "error"), [(Interrupt(), KeyboardInterrupt), (Fail(), RuntimeError)])
def test_a_fit_that_stops_leaves_the_estimator_as_it_was(blobs, callback, error):
    model = PRODSC.from_flat(3, **SMALL)
    before = dict(vars(model))
    with pytest.raises(error):
        model.fit(blobs[0], callbacks=[callback], known_labels={0: 1, 5: 2})
    assert vars(model) == before
    model.fit(blobs[0])
    labels, fitted = model.labels_, dict(vars(model))
    with pytest.raises(error):
        model.fit(blobs[0][:90], callbacks=[callback])
    assert vars(model) == fitted, "the earlier fit stays"
    np.testing.assert_array_equal(model.predict(blobs[0]), labels)


def test_a_fit_on_bad_rows_leaves_the_earlier_one(blobs):
    model = make("k-means", n_clusters=3).fit(blobs[0])
    with pytest.raises(InputError):
        model.fit(np.full((20, 4), np.nan))
    np.testing.assert_array_equal(model.predict(blobs[0]), model.labels_)


def test_nothing_transient_stays_on_a_fitted_estimator(blobs):
    model = PRODSC.from_flat(3, **SMALL).fit(blobs[0], known_labels={0: 1})
    assert not [name for name in vars(model) if name.startswith("_") and not name.endswith("_")]
    assert {name for name in vars(model) if not name.endswith("_")} == set(inspect.signature(PRODSC).parameters)


def test_a_refit_does_not_depend_on_the_fit_before(monkeypatch):
    """k was estimated from images as the network of the fit before saw them."""
    images = np.random.default_rng(0).integers(0, 255, (60, 6, 6)).astype(np.uint8)
    seen = []

    def curve(rows, *_):
        seen.append(rows[slice(0, 1)].shape)
        raise InputError("enough")

    model = PRODSC.from_flat(2, encoder="mlp", **{**SMALL, "epochs": 1}).set_params(encoder="auto")
    model.fit(np.repeat(images, 4, axis=0))
    assert model.config_.flat_images
    monkeypatch.setattr("prodsc.pro_dsc.estimator.k_of_rows", curve)
    for estimator in (model.set_params(n_clusters="auto"), PRODSC("auto")):
        with pytest.raises(InputError, match="enough"):
            estimator.fit(images)
    assert seen[0] == seen[1]


def test_cpp_is_not_a_prodsc():
    assert not issubclass(CPP, PRODSC)
    assert not hasattr(CPP(3).fit(np.random.default_rng(0).normal(size=(30, 4))), "gamma_")


def test_the_constructor_is_short_and_flat_names_reach_everything():
    assert len(inspect.signature(PRODSC).parameters) == 16
    model = PRODSC.from_flat(4, beta=7.0, hidden_size=9, power=3.0, momentum=0.5, epochs=2)
    assert (model.loss.beta, model.network.hidden_size, model.labels.power, model.training.momentum) == (
        7.0,
        9,
        3.0,
        0.5,
    )
    assert PRODSC(4, loss=LossOptions(beta=7.0)).flat_params()["beta"] == 7.0
    with pytest.raises(ParameterError, match="PRODSC: loss has no option 'betta'"):
        PRODSC(4, loss={"betta": 1}).fit(np.eye(9))
    with pytest.raises(ParameterError, match="PRODSC: loss must be a LossOptions, a mapping of its fields or None"):
        PRODSC(4, loss=3).fit(np.eye(9))
    with pytest.raises(ParameterError, match="PRODSC: beta must be a number of at least 0, got -1"):
        PRODSC(4, loss=LossOptions(beta=-1)).fit(np.eye(9))


def test_old_names_are_accepted_with_a_warning(blobs):
    with pytest.warns(FutureWarning, match="neighbour_views=2 is now called n_neighbors=2"):
        model = make("pro-dsc", n_clusters=3, neighbour_views=2, **SMALL)
    assert model.training.n_neighbors == 2
    with pytest.warns(FutureWarning, match="keep='settled' is now called keep_weights='converged'"):
        model = PRODSC.from_flat(3, keep="settled", **SMALL)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(blobs[0])
    with pytest.warns(FutureWarning, match="settled_ is now called resolved_params_"):
        assert model.settled_ == model.resolved_params_


@pytest.mark.parametrize("name", METHODS)
def test_flat_parameters_make_the_same_estimator(name):
    model = make(name, n_clusters=5)
    assert type(model).from_flat(**model.flat_params()).get_params() == model.get_params()
