"""Half precision inside the network, float32 outside it."""

import numpy as np
import pytest
import torch

from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.nn import Network, gradient_scaler, mlp, resolve_dtype
from prodsc.nn.precision import DTYPES

CPU, GPU = torch.device("cpu"), torch.device("cuda")


def groups(seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(240) % 3
    return (rng.standard_normal((3, 20))[y] + 0.2 * rng.standard_normal((240, 20))).astype(np.float32), y


def network(precision):
    torch.manual_seed(0)
    made = Network(mlp(20, 64), torch.nn.Linear(64, 8), torch.nn.Linear(64, 8))
    made.dtype = DTYPES[precision]
    return made


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_agrees_loosely_with_float32(precision):
    X = torch.from_numpy(groups()[0])
    exact, halved = network("float32"), network(precision)
    H = halved.encode(X)
    assert H.dtype == DTYPES[precision]  # the products were really made in it
    for name in "zy":
        found, expected = getattr(halved, name)(H), getattr(exact, name)(exact.encode(X))
        assert found.dtype == torch.float32
        torch.testing.assert_close(found.norm(dim=1), torch.ones(240))  # unit to float32's precision, not to a half's
        torch.testing.assert_close(found, expected, atol=0.03, rtol=0)
        assert not torch.equal(found, expected)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_a_fit_finds_the_same_groups(precision):
    X, y = groups()
    how = {"hidden_size": 64, "n_components": 8, "epochs": 20, "warmup_steps": 10, "batch_size": 240, "device": "cpu"}
    exact, halved = PRODSC.from_flat(3, **how).fit(X), PRODSC.from_flat(3, **how, precision=precision).fit(X)
    assert metrics.scores(y, halved.labels_)["ACC"] > 0.99
    np.testing.assert_allclose(halved.history_["total"], exact.history_["total"], rtol=0.02)
    assert not np.array_equal(halved.history_["total"], exact.history_["total"])
    assert all(p.dtype == torch.float32 for p in halved.network_.parameters())


def test_auto(monkeypatch):
    assert resolve_dtype("auto", CPU) == torch.float32
    for has_it, expected in ((True, torch.bfloat16), (False, torch.float16)):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda including_emulation, has_it=has_it: has_it)
        assert resolve_dtype("auto", GPU) == expected
    assert resolve_dtype("bf16", CPU) == torch.bfloat16


def test_only_fp16_scales_gradients():
    assert [gradient_scaler(network(p)).is_enabled() for p in ("float32", "bf16", "fp16")] == [False, False, True]
    assert not gradient_scaler(torch.nn.Linear(2, 2)).is_enabled()


def test_conv_runs_in_bf16():
    images = np.random.default_rng(0).random((40, 8, 8)).astype(np.float32)
    how = {"pretrain_epochs": 2, "epochs": 2, "warmup_steps": 2, "n_components": 4, "device": "cpu"}
    model = PRODSC.from_flat(2, encoder="conv", precision="bf16", **how).fit(images)
    assert np.isfinite(model.transform(images)).all()
