"""The number of clusters, by how far two random shares of the rows agree on their clusters.

For every candidate k two random shares of the rows are clustered spectrally, each on its own. On the rows that are in
both, the two labellings share some information (in bits, corrected for chance) and disagree on the rest:

    score(k) = shared - disagreement_penalty * (entropy - shared)

More clusters have more entropy, so the score rises while new clusters are real. A cluster that is cut in two at random
is cut elsewhere in the other share, and the score falls. Data without clusters can be cut the same way twice because of
their shape alone (a long cloud in its middle), so the same is done with one Gaussian of the same covariance: only a
score well above that is a clear answer. docs/number_of_clusters.md has the study behind the constants.
"""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.sparse
import scipy.stats
import torch
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information, mutual_info_score

from prodsc.core.graph.eigen import cluster_qr, leading_eigenvectors
from prodsc.core.graph.neighbours import nearest_neighbours
from prodsc.progress import ProgressFunction
from prodsc.random import generator
from prodsc.types import Rows


@dataclass(frozen=True)
class KOptions:
    """How the number of clusters is estimated."""

    n_neighbors: int = 10  # of a row in the graph
    n_searched: int = 24  # neighbours, so that n_neighbors of them are left among a share of the rows
    share: float = 0.8  # of the rows in each of the two
    n_pairs: int = 2  # of shares, their scores averaged
    disagreement_penalty: float = 3.0  # bits of score that one bit of disagreement costs
    step: float = 1.07  # from one candidate to the next, beyond 16
    null_below: float = 0.8  # share of the score below which the Gaussian stays if the answer is clear
    null_range: float = 1.5  # factor of k within which the Gaussian is compared
    nearly_best: float = 0.95  # share of the best score from which a candidate is nearly as good
    min_rows: int = 40  # below, a share of the rows is too small for a graph
    min_rows_per_cluster: int = 8  # at the largest candidate
    max_k: int = 250  # the largest candidate, unless another is given
    first_max_k: int = 60  # tried first, at a fifth of the cost; a best k of at most a third of it is the answer
    tolerance: float = 1e-4  # of the eigenvalues: labels need no more, and ARPACK stops sooner


K_OPTIONS = KOptions()


@dataclass(frozen=True, repr=False)
class KCurve:
    """The score of every candidate k.

    Parameters
    ----------
    candidates : list of int
        Numbers of clusters, ascending.
    scores : list of float
        Score of each candidate, in bits.
    agreement : list of float
        Share of the information on which the two labellings agree (adjusted mutual information).
    reference : list of float
        Scores of one Gaussian with the same covariance.
    rows : int
        Number of rows used.
    """

    candidates: list[int]
    scores: list[float]
    agreement: list[float]
    reference: list[float]
    rows: int

    def __str__(self) -> str:
        best = sorted(zip(self.scores, self.candidates, self.agreement, strict=True), reverse=True)[:5]
        lines = [f"{k:>5} {score:>12.2f} {agreement:>10.0%}" for score, k, agreement in best]
        return "\n".join([self.summary(), f"{'k':>5} {'score, bits':>12} {'agreement':>10}", *lines])

    __repr__ = __str__  # the curve itself is hundreds of numbers

    @property
    def k(self) -> int:
        """The candidate with the best score."""
        return self.candidates[int(np.argmax(self.scores))]

    @property
    def null_score(self) -> float:
        """The best score of one Gaussian with about as many clusters."""
        most = K_OPTIONS.null_range
        return max(
            ref for k, ref in zip(self.candidates, self.reference, strict=True) if 1 / most <= k / self.k <= most
        )

    @property
    def clear(self) -> bool:
        """Is `k` an answer, rather than only the best of poor candidates?"""
        return max(self.scores) > 0 and self.null_score < K_OPTIONS.null_below * max(self.scores)

    @property
    def near(self) -> list[int]:
        """Candidates whose score is within 5 % of the best, in order of score."""
        best = max(self.scores)
        order = np.argsort(-np.array(self.scores), kind="stable")
        return [self.candidates[i] for i in order if self.scores[i] >= best - (1 - K_OPTIONS.nearly_best) * abs(best)]

    def summary(self) -> str:
        """The result in one or two sentences."""
        others = [k for k in self.near if k != self.k]
        also = f" Nearly as good: {', '.join(map(str, others[:5]))}." if others else ""
        best, share = max(self.scores), self.agreement[int(np.argmax(self.scores))]
        if self.clear:
            return (
                f"k = {self.k}: two shares of the rows agree on {share:.0%} of the information in their labels.{also}"
            )
        if best <= 0:
            reason = f"for no number do two shares of the rows agree well enough (best: {share:.0%}, at {self.k})"
        else:
            reason = (
                f"{self.k} is best with a score of {best:.1f} bits, but one Gaussian without clusters has "
                f"{self.null_score:.1f}"
            )
        return f"no clear k: {reason}."

    def table(self) -> list[tuple[int, float, float, float]]:
        """k, score, agreement and the score of the reference, one entry per candidate."""
        return list(zip(self.candidates, self.scores, self.agreement, self.reference, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """The fields as JSON can hold them; `KCurve(**d)` is the curve again."""
        return asdict(self)


def k_curve(
    points: Rows,
    at_least: int = 2,
    at_most: int | None = None,
    seed: int = 0,
    progress: ProgressFunction = lambda done, total: None,
) -> KCurve:
    """Score the candidates for the number of clusters.

    Parameters
    ----------
    points : Tensor of shape (n, d)
    at_least, at_most : int
        The smallest and the largest candidate. `at_most` is at most n/8, by default at most 250.
    seed : int
    progress : callable
        Called with the number of steps done and of all steps.

    Returns
    -------
    KCurve
    """
    n = len(points)
    most = min(at_most or K_OPTIONS.max_k, n // K_OPTIONS.min_rows_per_cluster)
    least = min(at_least, most)
    clouds = (points, one_gaussian(points, seed))
    neighbours = [nearest_neighbours(cloud, K_OPTIONS.n_searched).cpu().numpy() for cloud in clouds]
    if least < K_OPTIONS.first_max_k < most:
        curve = _curve(neighbours, candidates(least, K_OPTIONS.first_max_k), seed, progress)
        if curve.k <= K_OPTIONS.first_max_k // 3:
            return curve
    return _curve(neighbours, candidates(least, most), seed, progress)


def _curve(neighbours: Sequence[np.ndarray], ks: list[int], seed: int, progress: ProgressFunction) -> KCurve:
    """The curve from the neighbours of the rows and of the reference."""
    pairs = []
    of_pairs = [neighbours[0]] * K_OPTIONS.n_pairs + [neighbours[1]]
    for number, of_rows in enumerate(of_pairs):
        pairs.append(SplitHalfStability(of_rows, ks[-1], (seed, number)))
        progress(number + 1, len(of_pairs))
    lines = {k: _line(k, pairs) for k in ks}
    best = ks.index(max(lines, key=lambda k: lines[k][0]))
    between = range(ks[max(best - 1, 0)], ks[min(best + 1, len(ks) - 1)])
    lines = {k: lines[k] if k in lines else _line(k, pairs) for k in sorted({*ks, *between})}
    scores, agreement, reference = (list(column) for column in zip(*lines.values(), strict=True))
    return KCurve(list(lines), scores, agreement, reference, len(neighbours[0]))


def _line(k: int, pairs: "Sequence[SplitHalfStability]") -> tuple[float, float, float]:
    """Mean score and agreement of k over the pairs of shares, and the score of the reference, the last pair."""
    *own, (reference, _) = [pair.score(k) for pair in pairs]
    return float(np.mean([score for score, _ in own])), float(np.mean([same for _, same in own])), reference


def candidates(at_least: int, at_most: int) -> list[int]:
    """Every number up to 16, then steps of 7 %."""
    ks = set(range(at_least, min(16, at_most) + 1)) | {at_least, at_most}
    k = 16.0
    while k < at_most:
        ks.add(round(k))
        k *= K_OPTIONS.step
    return sorted(k for k in ks if at_least <= k <= at_most)


def one_gaussian(points: Rows, seed: int) -> Rows:
    """As many rows of one Gaussian with the mean and covariance of the points: random combinations of them."""
    G = torch.randn(len(points), len(points), generator=torch.Generator().manual_seed(seed)).to(points)
    centre = points.mean(0)
    return G @ (points - centre) / math.sqrt(len(points)) + centre


class SplitHalfStability:
    """Two random shares of the rows and the eigenvectors of their graphs, which give labels for any k.

    Parameters
    ----------
    neighbours : ndarray of shape (n, m)
        Numbers of the nearest rows of each row, the nearest first.
    max_k : int
        The largest number of clusters to be scored.
    seed : tuple of int
        Key of the random shares.
    """

    def __init__(self, neighbours: np.ndarray, max_k: int, seed: tuple[int, int]):
        n = len(neighbours)
        random = generator(*seed)
        kept = [np.sort(random.choice(n, round(K_OPTIONS.share * n), replace=False)) for _ in range(2)]
        common = np.intersect1d(kept[0], kept[1])
        self.common = [np.searchsorted(rows, common) for rows in kept]  # their places in each share
        graphs = [graph_within(neighbours, rows) for rows in kept]
        self.vectors = [leading_eigenvectors(W, max_k, K_OPTIONS.tolerance)[2].numpy() for W in graphs]

    def score(self, k: int) -> tuple[float, float]:
        """Score and agreement of the two labellings with k clusters."""
        labels = [cluster_qr(U[:, :k])[rows] for U, rows in zip(self.vectors, self.common, strict=True)]
        entropy, shared = information(*labels)
        return shared - K_OPTIONS.disagreement_penalty * (entropy - shared), shared / entropy if entropy > 0 else 0.0


def graph_within(
    neighbours: np.ndarray, rows: np.ndarray, n_neighbors: int = K_OPTIONS.n_neighbors
) -> scipy.sparse.csr_array:
    """The graph of nearest neighbours among some rows, from lists of neighbours (nearest first) among all rows."""
    place = np.full(len(neighbours), -1)
    place[rows] = np.arange(len(rows))
    local = place[neighbours[rows]]
    inside = (local >= 0) & (np.cumsum(local >= 0, axis=1) <= n_neighbors)
    row, column = np.nonzero(inside)
    edges = scipy.sparse.coo_array((np.ones(len(row)), (row, local[row, column])), shape=(len(rows), len(rows)))
    return scipy.sparse.csr_array((edges + edges.T) / 2)


def information(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Mean entropy of two labellings and their mutual information, in bits, both less what chance gives."""
    counts = contingency_matrix(a, b, sparse=True)
    shared = mutual_info_score(None, None, contingency=counts)
    chance = expected_mutual_information(counts.astype(np.float64), len(a))
    entropy = np.mean([scipy.stats.entropy(np.bincount(labels)) for labels in (a, b)])
    return float(entropy - chance) / math.log(2), float(shared - chance) / math.log(2)
