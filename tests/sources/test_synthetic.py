import numpy as np
import pytest

from prodsc.sources.synthetic import (
    SYNTHETIC,
    crossing_curves,
    curve_and_blobs,
    curve_and_tilted_blobs,
    upright_circle,
    wavy_circle,
)

NOISE = 0.05


@pytest.mark.parametrize("blobs", [1, 2])
def test_curve_and_blobs(blobs):
    X, y = curve_and_blobs(blobs)
    assert X.shape == (200, 3)
    np.testing.assert_array_equal(np.bincount(y), [100, 100])
    assert abs(np.linalg.norm(X, axis=1).mean() - 1) < 0.05
    assert np.abs(X[y == 0, 2]).max() < 0.45  # the wave is at most sin(1/5) high
    poles = X[y == 1, 2]
    assert (poles > 0).sum() == 100 // blobs
    assert not np.array_equal(X, curve_and_blobs(blobs, seed=1)[0])


def test_curve_and_blobs_draws_as_it_always_did():
    """Measured numbers depend on these very points."""
    rng = np.random.default_rng(3)
    phi = rng.uniform(0, 2 * np.pi, 100)
    noise = 0.05 * rng.standard_normal((200, 3))
    X, _ = curve_and_blobs(2, seed=3)
    np.testing.assert_allclose(X[7, 2], np.sin(np.sin(5 * phi[7]) / 5) + noise[7, 2])
    np.testing.assert_allclose(X[149], [0, 0, 1] + noise[149])
    np.testing.assert_allclose(X[150], [0, 0, -1] + noise[150])


def test_the_wavy_circle_is_on_the_sphere_and_the_upright_one_crosses_it():
    phi = np.linspace(0, 2 * np.pi, 3000)
    lying, upright = wavy_circle(phi), upright_circle(phi)
    np.testing.assert_allclose(np.linalg.norm(lying, axis=1), 1)
    assert np.abs(lying[:, 2]).max() == pytest.approx(np.sin(0.2))
    assert np.abs(upright[:, 1]).max() == pytest.approx(np.sin(0.2))
    np.testing.assert_allclose(upright[:, [0, 2]], lying[:, :2])  # the formula only turns the circle up
    w, at = np.sin(5 * 0.7) / 5, upright_circle(np.array([0.7]))[0]
    np.testing.assert_allclose(at, [np.cos(w) * np.cos(0.7), np.sin(np.cos(3.5) / 5), np.cos(w) * np.sin(0.7)])


def test_tilted_blobs_are_two_classes_beside_the_curve():
    X, y = curve_and_tilted_blobs()
    np.testing.assert_array_equal(np.bincount(y), [100, 100, 100])
    for label, centre in enumerate(np.array([[1, 0, 1], [-1, 0, 1]]) / np.sqrt(2), start=1):
        np.testing.assert_allclose(X[y == label].mean(0), centre, atol=4 * NOISE / 10)
        np.testing.assert_allclose(X[y == label].std(0), NOISE, rtol=0.25)


def test_crossing_curves_are_two_classes_on_their_curves():
    X, y = crossing_curves()
    np.testing.assert_array_equal(np.bincount(y), [100, 100])
    phi = np.linspace(0, 2 * np.pi, 2000)
    for label, curve in enumerate([wavy_circle(phi), upright_circle(phi)]):
        distance = np.linalg.norm(X[y == label][:, None] - curve, axis=2).min(1)
        assert distance.max() < 5 * NOISE


@pytest.mark.parametrize("name", SYNTHETIC)
def test_the_four_sets_depend_on_the_seed_alone(name):
    X, y = SYNTHETIC[name](seed=5)
    np.testing.assert_array_equal(X, SYNTHETIC[name](seed=5)[0])
    assert not np.array_equal(X, SYNTHETIC[name](seed=6)[0])
    assert X.shape == (len(y), 3)
