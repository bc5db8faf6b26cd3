"""The guard warns, adjusts, raises or is silent; the numbers it saw are in the history."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs
from sklearn.preprocessing import StandardScaler

from conftest import SMALL
from prodsc import PRODSC, SEDSC, diagnose
from prodsc.core import metrics, theory
from prodsc.core.losses import Objective, Term
from prodsc.errors import CollapseError
from prodsc.pro_dsc.diagnosis import needed_rank
from prodsc.training import Batches, Callback, History, Phase, Training
from prodsc.training.guard import CollapseGuard
from prodsc.training.meters import Meters

FIT = SMALL | {"epochs": 60, "n_components": 16, "keep_weights": "last"}
BOUND = 16 / (0.1 * 1.1)  # on gamma * lambda_max(M), d = 16, eps = 0.1


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(n_class=4, return_X_y=True)
    return X[:400], y[:400]


@pytest.fixture(scope="module")
def healthy(digits):
    return PRODSC.from_flat(4, **FIT).fit(digits[0])


def test_a_healthy_fit_is_silent_and_recorded(healthy):
    looks = ~np.isnan(healthy.history_["margin"])
    assert looks.sum() == 7  # steps 1, 10, ..., 60
    history = {name: column[looks] for name, column in healthy.history_.items()}
    np.testing.assert_allclose(history["margin"], BOUND / history["lambda_max"] / history["gamma"], rtol=1e-5)
    assert (history["margin"] > 1).all()
    assert (history["lambda_max"] > 0.9).all()
    assert (healthy.history_["gamma"][10:] == np.float32(healthy.gamma_)).all()


def test_gamma_far_beyond_the_bound_is_warned_of(digits):
    with pytest.warns(UserWarning, match="bound|rank") as said:
        PRODSC.from_flat(4, gamma=50 * BOUND, **FIT).fit(digits[0])
    sentences = [str(w.message) for w in said]
    assert any("times the bound below which the representation cannot collapse" in s for s in sentences)
    assert any("its effective rank fell from" in s for s in sentences)
    assert len(sentences) == 2  # each once


UNPROTECTED, PROTECTED = ("self_expression",), ("coding_rate", "self_expression")


@pytest.mark.parametrize(
    ("ranks", "terms", "warns"),
    [
        ([100, 3, 16, 10, 9, 20, 35], UNPROTECTED, False),  # a dip of the first steps: CIFAR-10 features do this
        ([100, 19, 105], UNPROTECTED, False),
        ([100, 60, 40, 30], UNPROTECTED, True),
        ([100, 3, 2, 1], UNPROTECTED, True),
        ([100, 1, 1.01], UNPROTECTED, True),
        ([100, 99, 2], UNPROTECTED, False),  # one look may be a dip
        ([100, 16, 16, 30, 60, 90, 90], PROTECTED, False),  # COIL-100 from a whitened start
        ([100, 16, 16, 30, 60, 90, 90], UNPROTECTED, True),
        ([100, 16, 16, 16, 16, 16, 16], PROTECTED, True),  # half of the phase is time enough
    ],
)
def test_a_rank_that_comes_back_is_no_collapse(ranks, terms, warns, monkeypatch, recwarn):
    """The guard on a made-up run: only a rank that is down and stays down is warned of, and while gamma is below the
    bound (lambda_max of these C is 0) only in the second half."""
    guard = CollapseGuard("warn", 0.1)
    batches = Batches(8, 8, (0,))
    phase = Phase("joint", 10 * len(ranks), terms, batches)
    training = Training(
        torch.nn.Identity(), Objective(Term("self_expression", 1.0, len)), [phase], History([], guard.columns)
    )
    training.batch = SimpleNamespace(Z=torch.zeros(8, 3), C=torch.zeros(8, 8))
    for look, rank in enumerate(ranks):
        monkeypatch.setattr("prodsc.core.theory.effective_rank", lambda Z, rank=rank: torch.tensor(float(rank)))
        training.step = max(0, 10 * look - 1)
        guard.on_batch(training)
    assert bool(recwarn.list) == warns


def test_raise_and_ignore(digits):
    with pytest.raises(CollapseError, match=r"times the bound.*on_collapse='adjust'"):
        PRODSC.from_flat(4, gamma=50 * BOUND, on_collapse="raise", **FIT).fit(digits[0])
    silent = PRODSC.from_flat(4, gamma=50 * BOUND, on_collapse="ignore", **FIT).fit(digits[0])
    assert np.isnan(silent.history_["margin"]).all()


def test_adjust_brings_gamma_back_and_says_so(digits, healthy, recwarn):
    X, y = digits
    model = PRODSC.from_flat(4, gamma=50 * BOUND, on_collapse="adjust", **FIT).fit(X)
    gammas = model.history_["gamma"]
    assert np.nanmax(gammas) < BOUND  # before the first step, not after it
    assert model.history_["margin"][10] == pytest.approx(
        BOUND / model.history_["lambda_max"][10] / (50 * BOUND), rel=1e-4
    )
    assert model.gamma_ < BOUND
    assert diagnose(model, X).representation == "healthy"
    assert metrics.accuracy(y, model.labels_) > metrics.accuracy(y, healthy.labels_) - 0.1
    assert theory.effective_rank(torch.from_numpy(model.transform(X))) > 5
    assert not recwarn.list


def test_adjusted_gamma_survives_a_resume(digits, tmp_path, monkeypatch):
    X, _ = digits
    monkeypatch.setattr("prodsc.training.checkpoint.SECONDS", 0.0)
    path = tmp_path / "checkpoint.safetensors"

    class Stop(Callback):
        def on_step(self, training):
            if training.current.name == "joint" and training.step == 25:
                raise KeyboardInterrupt

    how = FIT | {"gamma": 50 * BOUND, "on_collapse": "adjust"}
    whole = PRODSC.from_flat(4, **how).fit(X)
    with pytest.raises(KeyboardInterrupt):
        PRODSC.from_flat(4, **how).fit(X, checkpoint=path, callbacks=[Stop()])
    resumed = PRODSC.from_flat(4, **how).fit(X, checkpoint=path)
    assert resumed.gamma_ == whole.gamma_
    np.testing.assert_array_equal(resumed.transform(X), whole.transform(X))


# ---- diagnose ------------------------------------------------------------------------------------------------------


def test_verdicts(digits, healthy):
    X, _ = digits
    sound = diagnose(healthy, X)
    assert sound.representation == "healthy"
    assert {f.name for f in sound.findings} >= {"effective rank of Z", "no-collapse margin", "alignment error"}
    assert "one direction for each cluster" in str(sound)
    assert len(sound.observed) == len(sound.predicted) == 16
    assert sound.predicted.sum() == pytest.approx(sound.observed.sum())  # both are ||Z||_F^2 = n
    ill = diagnose(PRODSC.from_flat(4, gamma=50 * BOUND, on_collapse="ignore", **FIT).fit(X), X)
    assert ill.representation == "collapsed"
    assert "gamma='auto'" in ill.advice


@pytest.mark.parametrize("load", [load_wine, load_iris, load_breast_cancer])
def test_a_good_fit_of_few_rows_is_not_condemned(load):
    X, y = load(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = PRODSC(len(np.unique(y))).fit(X)
    assert diagnose(model, X).representation == "healthy"


def test_a_few_clear_rows_are_healthy():
    X, y = make_blobs(20, 5, centers=2, random_state=0)
    model = PRODSC(2).fit(X)
    assert metrics.accuracy(y, model.labels_) == 1
    assert diagnose(model, X).representation == "healthy"


def test_the_rank_that_clusters_need():
    assert needed_rank(np.repeat(np.arange(10), 5)) == pytest.approx(5.5)
    entropy = -(0.99 * np.log(0.99) + 0.01 * np.log(0.01))
    assert needed_rank(np.array([0] * 99 + [1])) == pytest.approx((1 + np.exp(entropy)) / 2)
    assert needed_rank(np.zeros(4, int)) == 1


def test_an_untrained_network_gets_advice_that_can_be_followed(digits):
    model = PRODSC.from_flat(4, **FIT | {"epochs": 0, "warmup_steps": 0}).fit(digits[0])
    found = diagnose(model, digits[0])
    assert found.representation == "collapsed"
    assert "within the bound, so train longer" in found.advice


def test_sedsc_collapses_and_is_told_apart(digits):
    X, _ = digits
    with pytest.warns(UserWarning, match="its effective rank fell"):
        model = SEDSC.from_flat(4, **FIT | {"epochs": 300}, learning_rate=5e-3).fit(X)
    found = diagnose(model, X)
    assert found.representation == "collapsed"
    assert found.predicted is None
    assert "No term keeps it" in found.advice


def test_a_gamma_just_beyond_the_bound_is_collapsing(healthy, digits):
    import copy

    model = copy.copy(healthy)
    model.gamma_ = 10 * BOUND
    found = diagnose(model, digits[0])
    assert found.representation == "collapsing"
    assert "Fit again with gamma below" in found.advice


# ---- meters --------------------------------------------------------------------------------------------------------


def test_meters_do_not_change_the_fit_and_match_the_formulas(digits, healthy):
    X, y = digits
    meters = Meters(classes=y, every=20, spectra=True)
    seen = []

    class Check(Callback):
        def on_step(self, training):
            if training.current.name == "joint" and training.step == 60:
                Z, C = training.batch.Z.detach(), training.batch.C.detach()
                G, M = Z @ Z.T, (torch.eye(400) - C) @ (torch.eye(400) - C).T
                seen.append(float(torch.linalg.matrix_norm(G @ M - M @ G)))

    model = PRODSC.from_flat(4, **FIT).fit(X, callbacks=[meters, Check()])
    np.testing.assert_array_equal(model.labels_, healthy.labels_)
    assert meters.numbers["epoch"] == [20.0, 40.0, 60.0]
    assert meters.numbers["commutator"][-1] == pytest.approx(seen[0], rel=1e-3)
    assert meters.numbers["g_inside"][-1] > meters.numbers["g_outside"][-1]
    assert meters.numbers["c_inside"][-1] > meters.numbers["c_outside"][-1]
    assert [len(c) for c in meters.curves["correlations"]] == [400] * 3
    assert "csc" not in Meters().numbers
