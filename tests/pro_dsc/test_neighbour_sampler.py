"""Which row stands for a row, and that a fit without views and with the last state is the published one."""

import numpy as np
import pytest
import torch

from conftest import SMALL
from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.core.graph import nearest_neighbours
from prodsc.pro_dsc import neighbour_sampler as module
from prodsc.pro_dsc.neighbour_sampler import Views, auto_neighbours
from prodsc.sources.rows import RowReader


def made(X, most=3):
    return Views(RowReader(X), most, 0, lambda parts: torch.cat([*parts]))


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((60, 5)).astype(np.float32)


def test_a_row_or_one_of_its_nearest(X):
    views, numbers = made(X), np.array([4, 17, 59, 0])
    near = nearest_neighbours(torch.from_numpy(X), 3).numpy()
    found = views.of(numbers, torch.from_numpy(X[numbers]), np.array([-1, 0, 2, 1])).numpy()
    np.testing.assert_array_equal(found, X[[4, near[17, 0], near[59, 2], near[0, 1]]])


def test_of_many_rows_some_may_be_neighbours(X, monkeypatch):
    monkeypatch.setattr(module, "ALL", 50)
    monkeypatch.setattr(module, "SOME", 30)
    views = made(X)
    assert len(views.places) == 30
    assert views.most == 2  # of three among twice as many
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for chosen in range(views.most):
        found = views.of(np.arange(60), torch.from_numpy(X), np.full(60, chosen)).numpy()
        for i in range(60):
            nearest = sorted((j for j in views.places if j != i), key=lambda j, i=i: -unit[i] @ unit[j])
            np.testing.assert_array_equal(found[i], X[nearest[chosen]])


def test_draws_are_a_function_of_the_seed_and_half_are_the_row_itself(X):
    views = made(X)
    drawn = views.drawn(10_000, (1, 2))
    np.testing.assert_array_equal(drawn, views.drawn(10_000, (1, 2)))
    assert not np.array_equal(drawn, views.drawn(10_000, (1, 3)))
    assert 0.48 < (drawn < 0).mean() < 0.52
    assert set(drawn) == {-1, 0, 1, 2}


def test_few_neighbours_in_small_clusters():
    assert [auto_neighbours(n, k) for n, k in [(400, 40), (1797, 10), (10, 8)]] == [2, 10, 1]


def test_y_comes_from_the_view_and_z_from_the_row(blobs):
    seen = {}

    class Spy(PRODSC):
        def _step(self, rows, phase, t):
            step = super()._step(rows, phase, t)
            if phase.name == "joint" and not seen:
                self.network_.eval()
                near, own = step._near, step._X
                seen["y"] = torch.allclose(step.Y, self.network_.y(self.network_.encode(near)))
                seen["z"] = torch.allclose(step.Z, self.network_.z(self.network_.encode(own)))
                seen["differ"] = (near != own).any(1).float().mean().item()
                self.network_.train()
            return step

    Spy(3, **SMALL).fit(blobs[0])
    assert seen["y"]
    assert seen["z"]
    assert 0.3 < seen["differ"] < 0.7


def test_the_published_fit_is_still_there(blobs):
    model = PRODSC(3, **SMALL, neighbour_views=0, keep="last").fit(blobs[0])
    assert "agreement" not in model.history_
    assert len(model.history_["step"]) == SMALL["warmup_steps"] + SMALL["epochs"] * max(1, len(blobs[0]) // 1024)
    assert metrics.accuracy(blobs[1], model.labels_) > 0.9


def test_training_longer_does_no_harm(blobs):
    short, long = (PRODSC(3, **SMALL | {"epochs": epochs}).fit(blobs[0]) for epochs in (40, 120))
    assert metrics.accuracy(blobs[1], long.labels_) >= metrics.accuracy(blobs[1], short.labels_) - 0.02
