"""SENet, DSC-Net and EDESC: subspaces by expression or by bases."""

import numpy as np
import pytest
import torch

from conftest import union_of_subspaces
from prodsc import metrics
from prodsc.errors import ParameterError
from prodsc.methods import SENet
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
    model = SENet(3, steps=60, dictionary_size=40, max_landmarks=60, **SENET).fit(X)
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


def test_auto_gamma_is_refused_where_it_means_nothing(blobs):
    with pytest.raises(ParameterError, match="SENet: gamma must be a number above 0, got 'auto'"):
        SENet(3, gamma="auto", **SENET).fit(blobs[0])
