"""The synthetic data of the paper: curves and blobs on the unit sphere in three dimensions."""

import numpy as np

NOISE = (
    0.05  # the paper writes N(0, 0.05 I); as a variance it would hide the curve, so it is read as a standard deviation
)


def curve_and_blobs(blobs: int = 1, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """100 points on a wavy circle, and 100 around one pole (blobs=1) or split over both poles (blobs=2)."""
    rng = np.random.default_rng(seed)
    angle = rng.uniform(0, 2 * np.pi, 100)
    wave = np.sin(5 * angle) / 5
    curve = np.stack([np.cos(wave) * np.cos(angle), np.cos(wave) * np.sin(angle), np.sin(wave)], axis=1)
    poles = np.zeros((100, 3))
    poles[:, 2] = np.where(np.arange(100) < 100 // blobs, 1.0, -1.0)
    X = np.concatenate([curve, poles]) + NOISE * rng.standard_normal((200, 3))
    return X, np.repeat([0, 1], 100)
