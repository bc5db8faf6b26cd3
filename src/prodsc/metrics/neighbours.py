"""How well labels agree with a graph of neighbours: a score that needs no truth."""

import numpy as np


def agreement_beyond_chance(labels: np.ndarray, neighbours: np.ndarray) -> float:
    """The share of a row's neighbours that have its label, scaled so that shuffled labels score 0 and perfect ones 1.

    Uncorrected, the best score would be that of one cluster with nearly all rows.
    """
    chance = float(np.square(np.unique(labels, return_counts=True)[1] / len(labels)).sum())
    shared = float((labels[neighbours] == labels[:, None]).mean())
    return (shared - chance) / max(1 - chance, 1 / len(labels))
