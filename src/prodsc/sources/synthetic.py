"""The synthetic data of the paper: curves and blobs near the unit sphere in three dimensions, 100 points a class."""

from collections.abc import Callable
from functools import partial

import numpy as np


def curve_and_blobs(blobs: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """100 points on a wavy circle, and 100 around one pole (blobs=1) or split over both poles (blobs=2)."""
    rng = np.random.default_rng(seed)
    curve = wavy_circle(rng.uniform(0, 2 * np.pi, 100))
    poles = np.zeros((100, 3))
    poles[:, 2] = np.where(np.arange(100) < 100 // blobs, 1.0, -1.0)
    return _noisy([curve, poles], rng)


def curve_and_tilted_blobs(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Three classes: the wavy circle, and blobs around (1, 0, 1)/√2 and (-1, 0, 1)/√2 (the appendix's case 1)."""
    rng = np.random.default_rng(seed)
    centres = np.array([[1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]]) / np.sqrt(2)
    return _noisy([wavy_circle(rng.uniform(0, 2 * np.pi, 100)), *np.repeat(centres[:, None], 100, axis=1)], rng)


def crossing_curves(seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Two classes: the wavy circle and an upright one that crosses it (the appendix's case 2).

    The paper adds this curve and trains on batches of 200, so the set is taken to be the two curves, without the blob.
    """
    rng = np.random.default_rng(seed)
    lying, upright = rng.uniform(0, 2 * np.pi, (2, 100))
    return _noisy([wavy_circle(lying), upright_circle(upright)], rng)


def wavy_circle(angle: np.ndarray) -> np.ndarray:
    """(cos w cos φ, cos w sin φ, sin w) with w = sin(5φ)/5."""
    wave = np.sin(5 * angle) / 5
    return np.stack([np.cos(wave) * np.cos(angle), np.cos(wave) * np.sin(angle), np.sin(wave)], axis=1)


def upright_circle(angle: np.ndarray) -> np.ndarray:
    """(cos w cos φ, sin(cos(5φ)/5), cos w sin φ) with w = sin(5φ)/5; cosine in the middle keeps the crossings apart."""
    wave = np.sin(5 * angle) / 5
    return np.stack([np.cos(wave) * np.cos(angle), np.sin(np.cos(5 * angle) / 5), np.cos(wave) * np.sin(angle)], axis=1)


def _noisy(classes: list[np.ndarray], rng: np.random.Generator, noise: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """The points of all classes with noise; the paper's N(0, 0.05 I) is read as a standard deviation of 0.05.

    As a variance it would hide the curve.
    """
    X = np.concatenate(classes)
    return X + noise * rng.standard_normal(X.shape), np.repeat(np.arange(len(classes)), [len(c) for c in classes])


SYNTHETIC: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {  # by name; each takes a seed
    "synthetic-pole": partial(curve_and_blobs, 1),
    "synthetic-poles": partial(curve_and_blobs, 2),
    "synthetic-tilted": curve_and_tilted_blobs,
    "synthetic-crossing": crossing_curves,
}
