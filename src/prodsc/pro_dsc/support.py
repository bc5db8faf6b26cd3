"""Are there clusters, are the labels stable, and does a simpler method see the same? Without classes."""

from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from sklearn.cluster import KMeans
from torch import Tensor

from prodsc.core import metrics
from prodsc.core.graph import (
    CarriedLabels,
    cluster_halves,
    compact_pieces,
    kept_share,
    nearest_neighbours,
    replication,
    spectral_halves,
)
from prodsc.core.graph.number import K_OPTIONS, one_gaussian
from prodsc.core.graph.replication import Labelling
from prodsc.pro_dsc.walk_start import label_points, neighbours_within

SupportWord = Literal["supported", "weak", "not supported", "not judged"]


@dataclass(frozen=True)
class SupportRules:
    """How labels are judged. docs/notes/verdict.md has the study."""

    max_rows: int = 2000  # judged; a sample of more rows
    n_splits: int = 3  # into halves
    n_pieces: int = 10  # random partitions into compact pieces that the labels are compared with
    min_rows_per_cluster: int = 4  # two in each half; below, nothing can be said
    supported: float = 1 / 2  # score from which labels are called supported
    weak: float = 1 / 4  # score below which they are called not supported
    same: float = 0.95  # share of rows from which two labellings are the same for most uses
    little: float = 0.01  # share of information: labels that lose less leave nothing to better


SUPPORT_RULES = SupportRules()


@dataclass(frozen=True)
class SimplerMethod:
    """What a simpler method makes of the same rows."""

    name: str
    agreement: float  # share of rows with the same cluster
    lost: float  # share of the labels' information that is not true of neighbours; small is good
    better: bool  # it loses less than half as much as the labels in question


@dataclass(frozen=True)
class Support:
    """The evidence for labels.

    Parameters
    ----------
    word : {"supported", "weak", "not supported", "not judged"}
    score : float
        Root of agreement x separation, from 0 to 1.
    replicated, low, high : float
        Share of rows whose cluster is found again from the other half of the rows: the mean over halves, the lowest
        and the highest.
    agreement : float
        The same as adjusted Rand index, which is 0 for labels by chance.
    separation : float
        1 if neighbours are never in different clusters; 0 if as often as for compact pieces of any data, and for a
        Gaussian cloud of the same covariance.
    simpler : tuple of SimplerMethod
        k-means and spectral clustering on the same rows.
    """

    word: SupportWord
    score: float
    replicated: float
    low: float
    high: float
    agreement: float
    separation: float
    simpler: tuple[SimplerMethod, ...]

    def sentences(self) -> list[str]:
        """What the evidence says, one sentence or two for each question."""
        if self.word == "not judged":
            return ["Labels: not judged, as there are fewer than 4 rows to a cluster, or one cluster."]
        return [self._about_labels(), self._about_simpler()]

    def _about_labels(self) -> str:
        means = {
            "supported": "They come back without the rows that they were found on, and neighbours share them.",
            "weak": "Use them as a first look, and check some rows of each cluster by eye.",
            "not supported": "Data without clusters give labels like these: do not rely on them.",
        }
        return (
            f"Labels: {self.word}. From one half of the rows {self.replicated:.0%} of the other half get the same "
            f"cluster ({self.low:.0%} to {self.high:.0%}), and the clusters are {self.separation:.0%} separate; "
            f"data without clusters have 0%. {means[self.word]}"
        )

    def _about_simpler(self) -> str:
        listed = " and ".join(f"{each.name} on {each.agreement:.0%}" for each in self.simpler)
        said = f"Simpler methods: the same clusters as {listed} of the rows."
        better = [each.name for each in self.simpler if each.better]
        if better:
            return f"{said} The clusters of {better[0]} cut less than half as many neighbours apart: compare them."
        same = max(self.simpler, key=lambda each: each.agreement)
        if same.agreement >= SUPPORT_RULES.same:
            return f"{said} You may as well use {same.name}."
        return f"{said} Neither separates neighbours much better."


def measure_support(points: Tensor, labels: np.ndarray, k: int, rules: SupportRules = SUPPORT_RULES) -> Support:
    """Judge the labels of some rows.

    Parameters
    ----------
    points : Tensor of shape (n, d)
        The rows; they are compared by angle.
    labels : ndarray of int, shape (n,)
    k : int
        Number of clusters.
    rules : SupportRules

    Returns
    -------
    Support
    """
    n = len(points)
    if k < 2 or n < rules.min_rows_per_cluster * k:
        none = float("nan")
        return Support("not judged", none, none, none, none, none, none, ())
    neighbours = nearest_neighbours(points, K_OPTIONS.n_searched).cpu().numpy()
    spectral = spectral_halves(neighbours, k)
    simple = {"k-means": _kmeans_of(points, k), "spectral clustering": spectral}
    found = [_replicated(labels, cluster_halves(neighbours, each, rules.n_splits, 0)) for each in simple.values()]
    shares, agreement = max(found, key=lambda pair: pair[1])
    near = neighbours[:, : neighbours_within(n, k)]
    separation = max(0.0, 1 - (1 - kept_share(near, labels)) / (1 - _kept_without_clusters(points, near, k, rules)))
    score = float(np.sqrt(max(agreement, 0.0) * separation))
    rivals = tuple(_compare(name, each(np.arange(n)), labels, near, rules) for name, each in simple.items())
    word: SupportWord = "supported" if score >= rules.supported else "weak"
    if score < rules.weak:
        word = "not supported"
    elif any(rival.better for rival in rivals):
        word = "weak"
    return Support(
        word, score, float(shares.mean()), float(shares.min()), float(shares.max()), agreement, separation, rivals
    )


def _replicated(labels: np.ndarray, halves: list[CarriedLabels]) -> tuple[np.ndarray, float]:
    found = replication(labels, halves)
    return found.shares, float(found.ari.mean())


def _kmeans_of(points: Tensor, k: int) -> Labelling:
    X = torch.nn.functional.normalize(points).cpu().numpy()

    def cluster(rows: np.ndarray) -> np.ndarray:
        return np.asarray(KMeans(min(k, len(rows)), n_init=3, random_state=0).fit_predict(X[rows]))

    return cluster


def _kept_without_clusters(points: Tensor, near: np.ndarray, k: int, rules: SupportRules) -> float:
    """What labels of data without clusters keep: compact pieces of these rows, and our labels of one Gaussian."""
    pieces = [kept_share(near, compact_pieces(near, k, seed)) for seed in range(rules.n_pieces)]
    cloud = one_gaussian(points, seed=0)
    of_cloud = nearest_neighbours(cloud, near.shape[1]).cpu().numpy()
    return min(max(float(np.mean(pieces)), kept_share(of_cloud, label_points(cloud, k))), 1 - 1e-9)


def _compare(name: str, theirs: np.ndarray, labels: np.ndarray, near: np.ndarray, rules: SupportRules) -> SimplerMethod:
    lost, own = 1 - kept_share(near, theirs), 1 - kept_share(near, labels)
    return SimplerMethod(name, metrics.accuracy(labels, theirs), lost, bool(own > rules.little and lost < own / 2))
