"""Confidence at the scale of labels that come back from half of the rows, and how calibration is measured and drawn."""

import io

import numpy as np
import pytest
import torch

from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.core.graph import GramKernel, calibrate, replicated_share, spectral_partition
from prodsc.report.fit_figures import reliability


def lines(noise, n=60, seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), n)
    Y = np.eye(8)[y] + noise * rng.standard_normal((len(y), 8))
    return torch.from_numpy(Y / np.linalg.norm(Y, axis=1, keepdims=True)).float(), y


def test_labels_of_clear_groups_come_back_and_random_ones_do_not():
    X, y = lines(0.2)
    assert replicated_share(X, y, 3) == 1.0
    assert replicated_share(X, np.random.default_rng(0).permutation(y), 3) < 0.6
    assert replicated_share(X, np.zeros_like(y), 1) == 1.0


@pytest.mark.parametrize("agreement", [0.5, 0.8, 0.95])
def test_labels_become_as_sure_as_they_come_back(agreement):
    Y, _ = lines(0.4)
    partition = spectral_partition(GramKernel(Y), 3, 5, 0)
    assert partition.probabilities(Y).max(1).mean() > 0.96
    found = calibrate(partition, Y, agreement)
    proba = found.probabilities(Y)
    assert proba.max(1).mean() == pytest.approx(agreement, abs=2e-3)
    np.testing.assert_array_equal(proba.argmax(1), partition.labels(Y))
    np.testing.assert_array_equal(found.labels(Y), partition.labels(Y))


def test_labels_never_become_surer():
    Y, _ = lines(0.4)
    partition = spectral_partition(GramKernel(Y), 3, 5, 0)
    assert calibrate(partition, Y, 1.0) is partition
    assert calibrate(partition, Y, 0.0).variance == pytest.approx(1e6 * partition.variance, rel=0.01)


def test_a_fit_is_calibrated_and_keeps_it(tmp_path):
    """Overlapping blobs: the network separates them all the same, other rows know better."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 80)
    X = np.eye(6)[y] + 0.55 * rng.standard_normal((240, 6))
    how = {"hidden_size": 32, "n_components": 16, "warmup_steps": 10, "epochs": 30, "n_init": 3}
    model = PRODSC.from_flat(3, **how).fit(X)
    right = metrics.matched(y, model.labels_)
    plain = (
        spectral_partition(model.partition_.kernel, 3, 3, model.seed_)
        .probabilities(model.labeller_.Y(model._new_rows(X)))
        .max(1)
    )
    after = metrics.calibration_error(model.confidence_, right)
    assert after < metrics.calibration_error(plain, right)
    rows = torch.cat([*model._new_rows(X).chunks()])
    assert model.confidence_.mean() == pytest.approx(replicated_share(rows, model.labels_, 3), abs=0.01)
    np.testing.assert_array_equal(model.predict_proba(X).argmax(1), model.labels_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    model.save(tmp_path)
    np.testing.assert_allclose(PRODSC.load(tmp_path).predict_proba(X), model.predict_proba(X), atol=1e-5)


def test_calibration_error_against_its_definition():
    rng = np.random.default_rng(0)
    sure, right = rng.uniform(size=300), rng.uniform(size=300) < 0.7
    expected = 0.0
    for i in range(15):
        inside = (sure >= i / 15) & (sure < (i + 1) / 15)
        if inside.any():
            expected += inside.mean() * abs(sure[inside].mean() - right[inside].mean())
    assert metrics.calibration_error(sure, right) == pytest.approx(expected)
    assert metrics.calibration_error(np.ones(10), np.ones(10, bool)) == 0


def test_matched_rows_make_the_accuracy():
    rng = np.random.default_rng(0)
    y, found = rng.integers(0, 4, 200), rng.integers(0, 6, 200)
    found[:120] = y[:120] + 2
    assert metrics.matched(y, found).mean() == metrics.accuracy(y, found)
    assert metrics.matched(y, (y + 1) % 4).all()


def test_the_reliability_figure_shows_share_right_against_confidence():
    sure = np.repeat([0.35, 0.85], 50)
    right = np.r_[np.arange(50) < 20, np.arange(50) < 40]
    figure = reliability(right, before=np.full(100, 0.999), after=sure)
    figure.savefig(io.BytesIO(), format="png", dpi=40)
    _, before, after = figure.axes[0].lines
    np.testing.assert_allclose(before.get_xydata(), [[0.999, 0.6]])
    np.testing.assert_allclose(after.get_xydata(), [[0.35, 0.4], [0.85, 0.8]])
    assert "ECE 0.399" in figure.get_label()
    assert "after: mean 0.600, ECE 0.050" in figure.get_label()
