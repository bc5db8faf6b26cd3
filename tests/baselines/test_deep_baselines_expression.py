"""SENet, DSC-Net and EDESC: subspaces by expression or by bases."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from conftest import union_of_subspaces
from prodsc.baselines import EDESC, DSCNet, SENet
from prodsc.core import metrics
from prodsc.errors import InputError, ParameterError
from prodsc.training import Callback

SENET = {"hidden_sizes": (32, 32), "n_components": 32, "learning_rate": 1e-2, "gradient_clip": 1.0, "n_neighbors": 6}
SENET |= {"n_init": 2, "device": "cpu"}


def test_senet_expresses_points_by_their_own_subspace():
    X, y = union_of_subspaces(n_per_class=40, ambient=12)
    model = SENet(3, steps=150, **SENET).fit(X)
    C = model.coefficients(X)
    assert (np.diag(C) == 0).all()
    before = SENet(3, steps=0, **SENET).fit(X).coefficients(X)
    errors = [metrics.subspace_preserving_error(torch.from_numpy(c), y) for c in (C, before)]
    assert errors[0] < 0.5 * errors[1]
    assert metrics.accuracy(y, model.labels_) > 0.95


def test_senet_learns_on_a_dictionary_and_labels_every_row(blobs):
    X, y = blobs
    model = SENet(3, steps=60, dictionary_size=40, max_landmarks=60, scaling="unit", **SENET).fit(X)
    assert len(model.partition_.kernel.landmarks) == 60
    assert metrics.accuracy(y, model.labels_) > 0.95


class Gradients(Callback):
    """The length of a step of plain Adam is that of its learning rate, however short the gradient is clipped: so look
    at the first moment, a tenth of the first gradient."""

    def on_step(self, training):
        if training.step == 1:
            moments = [state["exp_avg"] for state in training.optimizer.state.values()]
            self.length = float(torch.cat([m.flatten() for m in moments]).norm()) * 10


def test_senets_gradient_is_clipped(blobs):
    seen = Gradients()
    SENet(3, steps=1, **SENET | {"gradient_clip": 1e-3}).fit(blobs[0], callbacks=[seen])
    assert seen.length == pytest.approx(1e-3, rel=1e-3)


@pytest.mark.parametrize("method", [SENet, DSCNet])
def test_auto_gamma_is_refused_where_it_means_nothing(method, blobs):
    with pytest.raises(ParameterError, match=rf"{method.__name__}: gamma must have a value, got 'auto'"):
        method(3, gamma="auto").fit(blobs[0])


DSC_NET = {"hidden_size": 16, "n_components": 8, "pretrain_epochs": 10, "pretrain_learning_rate": 1e-2, "n_init": 2}
DSC_NET |= {"epochs": 100, "learning_rate": 1e-2, "subspace_dim": 2, "device": "cpu"}


def test_dsc_net_expresses_points_by_their_own_subspace():
    X, y = union_of_subspaces(n_per_class=40, ambient=12)
    model = DSCNet(3, gamma=10.0, **DSC_NET | {"hidden_size": 64, "n_components": 12, "pretrain_epochs": 60}).fit(X)
    C = torch.from_numpy(model.coefficients_)
    assert C.shape == (120, 120)
    assert metrics.subspace_preserving_error(C, y) < 40  # chance is 67
    assert metrics.accuracy(y, model.labels_) > 0.95
    assert not hasattr(model, "predict")
    assert model.transform(X[:7]).shape == (7, 12)
    np.testing.assert_array_equal(model.get_feature_names_out(), [f"dscnet{i}" for i in range(12)])


def test_dsc_net_first_reconstructs_then_expresses(blobs):
    history = DSCNet(3, **DSC_NET).fit(blobs[0]).history_
    first = history["phase"] == "pre-train"
    assert first.sum() == 10  # 150 rows in batches of 100, the incomplete one dropped
    assert np.isnan(history["self_expression"][first]).all()
    assert history["reconstruction"][first][-1] < history["reconstruction"][first][0]
    joint = history["total"][~first]
    assert len(joint) == 100
    assert joint[-1] < 0.5 * joint[0]


def test_dsc_net_on_images_with_convolutions():
    digits = load_digits(n_class=3)
    X, y = digits.images[:120] / 16, digits.target[:120]
    conv = {"encoder": "conv", "channels": (3, 4), "kernel_sizes": (3, 3)}
    model = DSCNet(3, **DSC_NET | conv | {"pretrain_epochs": 40}).fit(X)
    assert metrics.accuracy(y, model.labels_) > 0.7
    assert model.transform(X).shape == (120, 4 * 2 * 2)
    assert len(model.get_feature_names_out()) == 16


def test_dsc_net_says_what_it_cannot_do(blobs, monkeypatch):
    with pytest.raises(ParameterError, match="encoder must be 'mlp' or 'conv', got 'none'"):
        DSCNet(3, encoder="none").fit(blobs[0])
    with pytest.raises(ParameterError, match="got 1 and 2"):
        DSCNet(3, encoder="conv", channels=(3,), kernel_sizes=(3, 3)).fit(np.random.default_rng(0).random((9, 8, 8)))
    monkeypatch.setattr("prodsc.baselines.dsc_net.MAX_ROWS", 100)
    with pytest.raises(InputError, match=r"X has 150 rows.*at most 100 rows.*PRODSC or SENet"):
        DSCNet(3).fit(blobs[0])


class AtFirstJointStep(Callback):
    D = None

    def on_batch(self, training):
        if training.current.name == "joint" and training.step == 0:
            self.D = training.network.D.detach().clone()


def test_edescs_bases_start_orthonormal_in_the_clusters_of_k_means(blobs):
    X, y = blobs
    how = {"hidden_sizes": (16,), "subspace_dim": 2, "pretrain_epochs": 40, "pretrain_learning_rate": 1e-2}
    start = AtFirstJointStep()
    model = EDESC(3, steps=1, **how, device="cpu").fit(X, callbacks=[start])
    assert start.D.shape == (6, 6)
    for j in range(3):
        block = start.D[:, 2 * j : 2 * j + 2]
        torch.testing.assert_close(block.T @ block, torch.eye(2), atol=1e-5, rtol=0)
    Z = torch.from_numpy(model.transform(X))
    in_own = [
        max(float((Z[y == c] @ start.D[:, 2 * j : 2 * j + 2]).square().sum()) for j in range(3)) for c in range(3)
    ]
    assert sum(in_own) > 0.8 * float(Z.square().sum())
