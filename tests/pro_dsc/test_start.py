"""Heads that begin whitened, the eigensolver that remembers, and images that keep their bytes."""

import numpy as np
import pytest
import torch

from conftest import SMALL, union_of_subspaces
from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.errors import ParameterError
from prodsc.nn import Whitening
from prodsc.training import Callback

HOW = SMALL | {"encoder": "none", "n_components": 8, "start": "whitened", "epochs": 30, "learning_rate": 1e-2}


def test_whitened_coordinates_are_uncorrelated_and_equally_strong():
    """Against the covariance of the outputs: N/d times the identity, whatever the parts it was read in."""
    H = torch.randn(300, 12, generator=torch.Generator().manual_seed(0)) * torch.logspace(0, 2, 12)
    layer = Whitening(12, 5)
    layer.fit(lambda: H.split(70))
    out = layer(H)
    torch.testing.assert_close(out.T @ out, torch.eye(5) * 300 / 5, rtol=1e-3, atol=1e-2)
    flat = Whitening(12, 12)
    flat.fit(lambda: [torch.cat([H[:, :3], torch.zeros(300, 9)], 1)])
    assert torch.isfinite(flat.W).all(), "directions without variance get nothing"


def test_wide_features_are_whitened_by_the_same_directions():
    H = torch.randn(200, 90, generator=torch.Generator().manual_seed(0)) * torch.logspace(0, -2, 90)
    square, wide = Whitening(90, 5), Whitening(90, 5)
    square.fit(lambda: H.split(70))
    wide.fit(lambda: H.split(70), max_square=89)
    torch.testing.assert_close(square.W.T @ square.W, wide.W.T @ wide.W, rtol=1e-3, atol=1e-3)


@pytest.fixture(scope="module")
def planes():
    return union_of_subspaces(n_per_class=60, n_classes=3, dimension=2, ambient=20, noise=0.05)


def test_a_whitened_start_needs_no_warm_up_and_keeps_the_encoder(planes):
    X, y = planes
    model = PRODSC.from_flat(3, **HOW).fit(X)
    assert set(model.history_["phase"]) == {"joint"}
    assert metrics.accuracy(y, model.labels_) > 0.9
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert torch.equal(
        model.network_.whitening.W, PRODSC.from_flat(3, **HOW | {"epochs": 1}).fit(X).network_.whitening.W
    )


def test_a_frozen_conv_encoder_is_the_pre_trained_one():
    images = np.random.default_rng(0).integers(0, 255, (40, 8, 8), dtype=np.uint8)
    how = SMALL | {"encoder": "conv", "channels": (4,), "kernel_sizes": (3,), "pretrain_epochs": 2, "scaling": "raw"}
    how |= {"start": "whitened", "n_components": 8, "batch_size": 40}
    short, long = (PRODSC.from_flat(2, **how | {"epochs": n}).fit(images) for n in (1, 5))
    for a, b in zip(short.network_.encoder.parameters(), long.network_.encoder.parameters(), strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(short.network_.f.weight, long.network_.f.weight)


def test_an_untrained_mlp_cannot_be_frozen(planes):
    with pytest.raises(ParameterError, match="an mlp has not learned anything yet"):
        PRODSC.from_flat(3, start="whitened").fit(planes[0])


def test_raw_images_keep_their_bytes():
    images = np.full((3, 2, 2), 200, dtype=np.uint8)
    model = PRODSC(2, encoder="conv", scaling="raw")
    model.centre_ = model.spread_ = torch.zeros(1)
    model.scaling_ = "raw"
    assert model._reader(images)[slice(0, 1)].max() == 200
    model.scaling_ = "unit"
    assert model._reader(images)[slice(0, 1)].max() == pytest.approx(200 / 255)


@pytest.mark.parametrize("batch_size", [600, 400])
def test_the_eigensolver_that_remembers_gives_the_same_fit(batch_size):
    X, y = union_of_subspaces(n_per_class=200, n_classes=3, dimension=2, ambient=20, noise=0.02)
    how = HOW | {"batch_size": batch_size, "epochs": 20}
    exact, remembered = (PRODSC.from_flat(3, **how, eigensolver=solver).fit(X) for solver in ("exact", "remembered"))
    np.testing.assert_allclose(
        remembered.history_["block_diagonal"], exact.history_["block_diagonal"], rtol=0.05, atol=1e-4
    )
    assert metrics.accuracy(exact.labels_, remembered.labels_) > 0.98
    assert metrics.accuracy(y, remembered.labels_) > 0.9


def test_memory_and_whitening_survive_a_resume(planes, tmp_path, monkeypatch):
    X, _ = planes
    monkeypatch.setattr("prodsc.training.checkpoint.SECONDS", 0.0)
    how = HOW | {"eigensolver": "remembered", "batch_size": 90}

    class Stop(Callback):
        def on_step(self, training):
            if training.step == 17:
                raise KeyboardInterrupt

    whole = PRODSC.from_flat(3, **how).fit(X)
    path = tmp_path / "checkpoint.safetensors"
    with pytest.raises(KeyboardInterrupt):
        PRODSC.from_flat(3, **how).fit(X, checkpoint=path, callbacks=[Stop()])
    resumed = PRODSC.from_flat(3, **how).fit(X, checkpoint=path)
    np.testing.assert_array_equal(resumed.transform(X), whole.transform(X))


def test_a_whitened_model_is_saved_without_its_memory(planes, tmp_path):
    X, _ = planes
    model = PRODSC.from_flat(3, **HOW, eigensolver="remembered").fit(X)
    model.save(tmp_path)
    loaded = PRODSC.load(tmp_path)
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    assert not any("memory" in name for name in loaded.network_.state_dict())
