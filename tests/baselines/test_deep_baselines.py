"""What every deep baseline promises, one test for all of them."""

import numpy as np
import pytest
import torch

from prodsc import load
from prodsc.baselines import CPP, EDESC, MLC, SCAN, TEMI, TURTLE, DSCNet, SENet
from prodsc.core import metrics
from prodsc.training import Callback

NETWORK = {"n_components": 8, "epochs": 15, "n_init": 2, "device": "cpu"}
QUICK = {"n_neighbors": 10, "learning_rate": 1e-2, "teacher_momentum": 0.9, "device": "cpu"}
BASES = {"subspace_dim": 2, "pretrain_learning_rate": 1e-2, "n_init": 2, "device": "cpu"}
METHODS = {
    "cpp": CPP(3, hidden_size=16, warmup_steps=5, **NETWORK),
    "cpp-shared": CPP(3, heads="shared", hidden_size=16, warmup_steps=5, **NETWORK),
    "mlc": MLC(3, head_hidden_size=16, scaling="unit", warmup_steps=5, **NETWORK),
    "temi": TEMI(3, n_heads=3, hidden_size=16, n_components=8, scaling="unit", warmup_epochs=2, epochs=40, **QUICK),
    "scan": SCAN(3, n_neighbors=10, epochs=20, self_label_epochs=3, learning_rate=1e-2, device="cpu"),
    "turtle": TURTLE(3, entropy_weight=1.0, steps=60, learning_rate=1e-2, inner_learning_rate=1e-2, device="cpu"),
    "senet": SENet(
        3, hidden_sizes=(16,), n_components=16, steps=60, gradient_clip=1.0, n_neighbors=6, n_init=2, device="cpu"
    ),
    "dsc-net": DSCNet(3, hidden_size=16, n_components=8, pretrain_epochs=10, epochs=60, learning_rate=1e-2, **BASES),
    "edesc": EDESC(
        3,
        hidden_sizes=(16,),
        pretrain_epochs=40,
        steps=40,
        learning_rate=1e-2,
        kl_weight=0.3,
        scaling="standard",
        **BASES,
    ),
}
each = pytest.mark.parametrize("name", METHODS)


def new(name, **change):
    """A fresh estimator."""
    model = METHODS[name]
    return type(model)(**model.get_params() | change)


@pytest.fixture(scope="module")
def fitted(blobs):
    """A fitted model of each method, made when first asked for."""
    models = {}

    def of(name):
        if name not in models:
            models[name] = new(name).fit(blobs[0])
        return models[name]

    return of


def same_outputs(one, other, X):
    np.testing.assert_array_equal(one.labels_, other.labels_)
    for use in ("predict", "predict_proba", "transform"):
        if hasattr(one, use):
            # A probability of 1e-306 may differ in its last digits: memory of another alignment, other products.
            np.testing.assert_allclose(getattr(one, use)(X), getattr(other, use)(X), rtol=0, atol=1e-12)


@each
def test_finds_clear_groups(name, blobs, fitted):
    _, y = blobs
    model = fitted(name)
    assert metrics.accuracy(y, model.labels_) > 0.95
    sizes = np.bincount(model.labels_)
    np.testing.assert_array_equal(sizes, sorted(sizes, reverse=True))
    assert np.isfinite(model.history_["total"]).all()


@each
def test_same_seed_same_result_and_the_global_state_is_left_alone(name, blobs, fitted):
    torch_before, numpy_before = torch.random.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    again, other = new(name).fit(blobs[0]), new(name, random_state=1).fit(blobs[0])
    assert torch.equal(torch_before, torch.random.get_rng_state())
    np.testing.assert_array_equal(numpy_before, np.random.get_state()[1])  # noqa: NPY002
    same_outputs(again, fitted(name), blobs[0])
    assert not np.allclose(other.history_["total"], again.history_["total"])


@each
def test_labels_are_what_predict_says_of_each_row_alone(name, blobs, fitted):
    model, X = fitted(name), blobs[0]
    if not hasattr(model, "predict"):
        pytest.skip(f"{name} says nothing of rows that were not there")
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    some = X[::10] + 0.1
    np.testing.assert_array_equal(np.concatenate([model.predict(row[None]) for row in some]), model.predict(some))
    if hasattr(model, "predict_proba"):
        p = model.predict_proba(X)
        assert p.shape == (150, 3)
        np.testing.assert_allclose(p.sum(1), 1, rtol=1e-5)
        np.testing.assert_array_equal(p.argmax(1), model.labels_)


@each
def test_a_loaded_model_does_the_same(name, blobs, fitted, tmp_path):
    model = fitted(name)
    model.save(tmp_path)
    loaded = load(tmp_path)
    assert type(loaded) is type(model)
    same_outputs(loaded, model, blobs[0])
    for column, values in model.history_.items():
        np.testing.assert_array_equal(loaded.history_[column], values)


class StopAt(Callback):
    """Ends a run in the middle of its last phase."""

    def on_step(self, training):
        last = training.phases[-1]
        if training.current is last and training.step == last.steps // 2:
            raise KeyboardInterrupt


@each
def test_fit_goes_on_from_its_checkpoint(name, blobs, fitted, tmp_path, monkeypatch):
    monkeypatch.setattr("prodsc.training.checkpoint.SECONDS", 0.0)
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        new(name).fit(blobs[0], checkpoint=path, callbacks=[StopAt()])
    same_outputs(new(name).fit(blobs[0], checkpoint=path), fitted(name), blobs[0])


@each
def test_shows_progress(name, blobs, capsys):
    model = new(name, verbose=1).fit(blobs[0][:40])
    last = model.history_["phase"][-1], model.history_["step"][-1]
    assert "{0} {1}/{1}".format(*last) in capsys.readouterr().err


@each
def test_an_interrupted_fit_leaves_no_trace(name, blobs):
    model = new(name)
    before = dict(vars(model))
    with pytest.raises(KeyboardInterrupt):
        model.fit(blobs[0], callbacks=[StopAt()])
    assert vars(model) == before
