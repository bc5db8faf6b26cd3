"""Which row stands for a row, and that a fit without views and with the last state is the published one."""

import numpy as np
import pytest
import torch

from conftest import SMALL
from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.core.graph import nearest_neighbours
from prodsc.pro_dsc.defaults import neighbors_for
from prodsc.pro_dsc.neighbour_sampler import NeighbourSampler, SamplerLimits
from prodsc.pro_dsc.trainer import Trainer
from prodsc.sources.rows import RowReader


def make_sampler(X, limits=SamplerLimits()):  # noqa: B008 - frozen
    return NeighbourSampler(RowReader(X), 3, 0, lambda batches: torch.cat([*batches]), limits)


@pytest.fixture
def X():
    return np.random.default_rng(0).standard_normal((60, 5)).astype(np.float32)


def test_a_row_or_one_of_its_nearest(X):
    sampler, numbers = make_sampler(X), np.array([4, 17, 59, 0])
    near = nearest_neighbours(torch.from_numpy(X), 3).numpy()
    found = sampler.take(numbers, torch.from_numpy(X[numbers]), np.array([-1, 0, 2, 1])).numpy()
    np.testing.assert_array_equal(found, X[[4, near[17, 0], near[59, 2], near[0, 1]]])


def test_of_many_rows_some_may_be_neighbours(X):
    sampler = make_sampler(X, SamplerLimits(exact_rows=50, pool_rows=30))
    assert len(sampler.pool_rows) == 30
    assert sampler.n_neighbors == 2  # of three among twice as many
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for chosen in range(sampler.n_neighbors):
        found = sampler.take(np.arange(60), torch.from_numpy(X), np.full(60, chosen)).numpy()
        for i in range(60):
            nearest = sorted((j for j in sampler.pool_rows if j != i), key=lambda j, i=i: -unit[i] @ unit[j])
            np.testing.assert_array_equal(found[i], X[nearest[chosen]])


def test_draws_are_a_function_of_the_seed_and_half_are_the_row_itself(X):
    sampler = make_sampler(X)
    drawn = sampler.draw_ranks(10_000, (1, 2))
    np.testing.assert_array_equal(drawn, sampler.draw_ranks(10_000, (1, 2)))
    assert not np.array_equal(drawn, sampler.draw_ranks(10_000, (1, 3)))
    assert 0.48 < (drawn < 0).mean() < 0.52
    assert set(drawn) == {-1, 0, 1, 2}


def test_few_neighbours_in_small_clusters():
    assert [neighbors_for(n, k) for n, k in [(400, 40), (1797, 10), (10, 8)]] == [2, 10, 1]


def test_y_comes_from_the_view_and_z_from_the_row(blobs, monkeypatch):
    seen, make_step = {}, Trainer.make_step

    def spy(self, phase, t):
        step = make_step(self, phase, t)
        if phase.name == "joint" and not seen:
            self.network.eval()
            near, own = step._near, step._X
            seen["y"] = torch.allclose(step.Y, self.network.y(self.network.encode(near)))
            seen["z"] = torch.allclose(step.Z, self.network.z(self.network.encode(own)))
            seen["differ"] = (near != own).any(1).float().mean().item()
            self.network.train()
        return step

    monkeypatch.setattr(Trainer, "make_step", spy)
    PRODSC.from_flat(3, **SMALL).fit(blobs[0])
    assert seen["y"]
    assert seen["z"]
    assert 0.3 < seen["differ"] < 0.7


def test_the_published_fit_is_still_there(blobs):
    model = PRODSC.from_flat(3, **SMALL, n_neighbors=0, keep_weights="last").fit(blobs[0])
    assert "agreement" not in model.history_
    assert len(model.history_["step"]) == SMALL["warmup_steps"] + SMALL["epochs"] * max(1, len(blobs[0]) // 1024)
    assert metrics.accuracy(blobs[1], model.labels_) > 0.9


def test_training_longer_does_no_harm(blobs):
    short, long = (PRODSC.from_flat(3, **SMALL | {"epochs": epochs}).fit(blobs[0]) for epochs in (40, 120))
    assert metrics.accuracy(blobs[1], long.labels_) >= metrics.accuracy(blobs[1], short.labels_) - 0.02
