"""Two labellings of the same rows: clusters and known classes, or the clusters of two fits."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from prodsc.report import drawing


@dataclass(frozen=True)
class Disagreement:
    """Rows of one class (or other label) in a cluster that is matched to another class."""

    cluster: int
    other: int  # the class
    count: int
    rows: list[int]  # examples, highest confidence first


@dataclass(frozen=True)
class Agreement:
    """Clusters and classes, matched one to one."""

    counts: NDArray[np.intp]  # clusters x classes
    partner: NDArray[np.intp]  # the class matched to each cluster, or -1
    moved: NDArray[np.bool_]  # rows whose class is not that of their cluster

    @property
    def share(self) -> float:
        """The share of rows that agree: ACC when the other labels are true classes."""
        return 1 - float(self.moved.mean())


def agreement(labels: NDArray[np.intp], other: NDArray[np.intp], k: int | None = None) -> Agreement:
    """Match clusters and classes one to one so that as many rows as possible agree.

    Parameters
    ----------
    labels : array of shape (n,)
        Clusters.
    other : array of shape (n,)
        Classes as codes from 0, or the labels of another fit.
    k : int, optional
        Number of clusters, where some may be empty.

    Returns
    -------
    Agreement
    """
    n_clusters, n_classes = max(k or 0, int(labels.max()) + 1), int(other.max()) + 1
    counts = np.zeros((n_clusters, n_classes), dtype=np.intp)
    np.add.at(counts, (labels, other), 1)
    clusters, classes = linear_sum_assignment(counts, maximize=True)
    partner = np.full(n_clusters, -1, dtype=np.intp)
    partner[clusters] = classes
    return Agreement(counts, partner, partner[labels] != other)


def worst_disagreements(
    matched: Agreement,
    labels: NDArray[np.intp],
    other: NDArray[np.intp],
    confidence: drawing.Floats,
    *,
    n_pairs: int = 5,
    n_examples: int = 8,
) -> list[Disagreement]:
    """The most frequent disagreements, with the rows of highest confidence as examples.

    Parameters
    ----------
    matched : Agreement
        Of all rows.
    labels, other : array of shape (n,)
        Both labels of the rows that may be examples.
    confidence : array of shape (n,)
        Confidence of `labels`.
    n_pairs : int, default=5
        Number of disagreements.
    n_examples : int, default=8
        Rows of each.

    Returns
    -------
    list of Disagreement
        Most rows first.
    """
    wrong = matched.counts.copy()
    has_partner = matched.partner >= 0
    wrong[np.flatnonzero(has_partner), matched.partner[has_partner]] = 0
    pairs = []
    for place in np.argsort(-wrong, axis=None, kind="stable")[:n_pairs]:
        cluster, cls = np.unravel_index(place, wrong.shape)
        if not wrong[cluster, cls]:
            break
        rows = np.flatnonzero((labels == cluster) & (other == cls))
        surest = rows[np.argsort(-confidence[rows], kind="stable")[:n_examples]]
        pairs.append(Disagreement(int(cluster), int(cls), int(wrong[cluster, cls]), surest.tolist()))
    return pairs


def bootstrap_std(counts: NDArray[np.intp], seed: int = 0, n_resamples: int = 100) -> dict[str, float]:
    """Standard deviation of each score over rows drawn again with replacement.

    Parameters
    ----------
    counts : array of shape (n_clusters, n_classes)
        Rows of each cluster and class.
    seed : int, default=0
        Of the draws.
    n_resamples : int, default=100
        Number of draws.

    Returns
    -------
    dict
        Score name -> standard deviation.
    """
    from prodsc.core.metrics import scores

    n = int(counts.sum())
    labels, classes = (index.reshape(-1) for index in np.indices(counts.shape))
    rng = np.random.default_rng(seed)
    size = min(n, 5000)  # the std falls as 1/sqrt(n), so a smaller draw gives the same answer, scaled
    draws = []
    for _ in range(n_resamples):
        drawn = rng.multinomial(size, counts.reshape(-1) / n)
        draws.append(scores(np.repeat(classes, drawn), np.repeat(labels, drawn)))
    return {name: float(np.std([s[name] for s in draws]) * np.sqrt(size / n)) for name in draws[0]}
