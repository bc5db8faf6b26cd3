"""What labels look like: scores that need no truth."""

import numpy as np


def agreement_beyond_chance(labels: np.ndarray, neighbours: np.ndarray) -> float:
    """The share of a row's neighbours that have its label, scaled so that shuffled labels score 0 and perfect ones 1.

    Uncorrected, the best score would be that of one cluster with nearly all rows.
    """
    chance = float(np.square(np.unique(labels, return_counts=True)[1] / len(labels)).sum())
    shared = float((labels[neighbours] == labels[:, None]).mean())
    return (shared - chance) / max(1 - chance, 1 / len(labels))


def evenness(labels: np.ndarray) -> float:
    """Entropy of the sizes of the clusters over the largest it could be: 1 if all are of one size."""
    sizes = np.unique(labels, return_counts=True)[1] / len(labels)
    return float(-(sizes * np.log(sizes)).sum() / np.log(len(sizes))) if len(sizes) > 1 else 0.0
