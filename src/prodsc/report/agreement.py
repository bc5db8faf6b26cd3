"""Two labellings of the same rows side by side: clusters against known classes, or against those of another fit."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from prodsc.report import drawing

PAIRS, EXAMPLES = 5, 8
RESAMPLES = 100


@dataclass(frozen=True)
class Pair:
    """Rows that are in `cluster` although their class (or other label) belongs to another one."""

    cluster: int
    other: int  # the class
    count: int
    rows: list[int]  # examples, the surest first


@dataclass(frozen=True)
class Agreement:
    counts: NDArray[np.intp]  # clusters x classes
    partner: NDArray[np.intp]  # of each cluster the class matched to it, -1 where there is none
    moved: NDArray[np.bool_]  # rows outside their cluster's class

    @property
    def share(self) -> float:
        """Of rows that agree: ACC when the other labels are true classes."""
        return 1 - float(self.moved.mean())


def agreement(labels: NDArray[np.intp], other: NDArray[np.intp], k: int | None = None) -> Agreement:
    """Match clusters and classes one to one so that as many rows as possible agree."""
    n_clusters, n_classes = max(k or 0, int(labels.max()) + 1), int(other.max()) + 1
    counts = np.zeros((n_clusters, n_classes), dtype=np.intp)
    np.add.at(counts, (labels, other), 1)
    clusters, classes = linear_sum_assignment(counts, maximize=True)
    partner = np.full(n_clusters, -1, dtype=np.intp)
    partner[clusters] = classes
    return Agreement(counts, partner, partner[labels] != other)


def worst_pairs(
    found: Agreement, labels: NDArray[np.intp], other: NDArray[np.intp], confidence: drawing.Floats
) -> list[Pair]:
    """The most frequent disagreements, with the rows that were surest of them: they say most about why."""
    wrong = found.counts.copy()
    matched = found.partner >= 0
    wrong[np.flatnonzero(matched), found.partner[matched]] = 0
    pairs = []
    for place in np.argsort(-wrong, axis=None, kind="stable")[:PAIRS]:
        cluster, cls = np.unravel_index(place, wrong.shape)
        if not wrong[cluster, cls]:
            break
        rows = np.flatnonzero((labels == cluster) & (other == cls))
        surest = rows[np.argsort(-confidence[rows], kind="stable")[:EXAMPLES]]
        pairs.append(Pair(int(cluster), int(cls), int(wrong[cluster, cls]), surest.tolist()))
    return pairs


def resampled(counts: NDArray[np.intp], seed: int = 0) -> dict[str, float]:
    """Std of each score over rows drawn again from this very table: how far chance in the choice of rows moves it."""
    from prodsc.core.metrics import scores

    n = int(counts.sum())
    labels, classes = (index.reshape(-1) for index in np.indices(counts.shape))
    rng = np.random.default_rng(seed)
    size = min(n, 5000)  # the std falls as 1/sqrt(n), so a smaller draw says the same
    found = []
    for _ in range(RESAMPLES):
        drawn = rng.multinomial(size, counts.reshape(-1) / n)
        found.append(scores(np.repeat(classes, drawn), np.repeat(labels, drawn)))
    return {name: float(np.std([s[name] for s in found]) * np.sqrt(size / n)) for name in found[0]}
