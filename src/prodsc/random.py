"""Random streams and subsets of rows, as pure functions of a seed.

Every random choice of a fit comes from a generator with a key `(seed, stream, ...)`. No stream depends on how much
another one has drawn, so a resumed fit makes the same choices.
"""

from enum import IntEnum

import numpy as np


class Stream(IntEnum):
    """What a generator is for: the second number of its key."""

    FIRST_PHASE = 0  # batches of the first training phase
    SECOND_PHASE = 1
    THIRD_PHASE = 2
    SENET_DICTIONARY = 2  # SENet has one phase only
    LANDMARKS = 3  # rows that are clustered
    OUTLIER_DICTIONARY = 4  # rows that express other rows, for outlier scores
    KNOWN_ROWS = 5  # rows with constraints among the landmarks
    NEIGHBOUR_POOL = 6  # rows that may be neighbours of other rows
    SCORED_ROWS = 7  # rows that are labelled during training
    MONITORED_ROWS = 8  # rows of a batch that are compared with the training rows


class StepStream(IntEnum):
    """What a generator is for within one step: the last number of the key `(*seed_of_batches, step, stream)`.

    No estimator uses two of the streams with the same number.
    """

    KNOWN_ROWS = 1  # rows with constraints that join the batch
    NEIGHBOUR = 1  # one neighbour of each row
    CLASSIFIER = 1  # start of a new classifier
    NEIGHBOUR_VIEW = 2  # neighbour that replaces a row


def generator(*key: int) -> np.random.Generator:
    """Make a generator that depends on these numbers alone.

    Parameters
    ----------
    *key : int
        Seed, stream, and where needed epoch or step.

    Returns
    -------
    numpy.random.Generator
    """
    return np.random.default_rng(key)


def sorted_subset(n: int, size: int, *key: int) -> np.ndarray:
    """Draw rows without replacement, in ascending order.

    Parameters
    ----------
    n : int
        Number of rows.
    size : int
        Number of rows to draw. If it is at least `n`, all rows are returned.
    *key : int
        Key of the generator. No key stands for 0, a subset that does not depend on a seed.

    Returns
    -------
    ndarray of shape (min(n, size),)
        Row numbers.
    """
    if n <= size:
        return np.arange(n)
    return np.sort(generator(*(key or (0,))).choice(n, size, replace=False))


def evenly_spaced(n: int, size: int) -> np.ndarray:
    """Choose rows at equal distances, the first and the last one among them.

    Parameters
    ----------
    n : int
        Number of rows.
    size : int
        Number of rows to choose, at most `n` of them.

    Returns
    -------
    ndarray of shape (min(n, size),)
        Row numbers, ascending.
    """
    return np.linspace(0, n - 1, min(n, size)).astype(np.int64)
