"""How many clusters? As many as other rows confirm.

Two random shares of the rows are clustered spectrally, each on its own, for every candidate k. On the rows that both
have, the two labellings share some information (in bits, corrected for chance) and disagree on the rest:

    score(k) = confirmed - DOUBT * unconfirmed

More clusters say more, so the score rises while new clusters are real; a cluster that is cut in two at random is cut
elsewhere by the other share, and the score falls. Data without clusters can be cut the same way twice because of their
shape alone (a long cloud in its middle), so the same is done with one Gaussian of the same covariance: only a score
well above that is a clear answer. docs/number_of_clusters.md has the study behind the constants.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse.csgraph
import scipy.stats
import torch
from sklearn.metrics.cluster import contingency_matrix, expected_mutual_information, mutual_info_score

from prodsc.core.graph.neighbours import nearest_neighbours
from prodsc.core.graph.partition import leading_eigenvectors
from prodsc.random import generator
from prodsc.types import Rows

NEAREST = 10  # neighbours of a row in the graph
FOUND = 24  # searched for, so that with a share of the rows gone at least NEAREST are left
SHARE = 0.8  # of the rows in each of the two
PAIRS = 2  # of shares, their scores averaged
DOUBT = 3.0  # bits confirmed that one unconfirmed bit costs
STEP = 1.07  # from one candidate to the next, beyond 16
BELOW = 0.8  # of the score: a clear answer leaves the Gaussian below it, for every number of clusters near k
ABOUT = 1.5  # times more or fewer clusters are near k
NEARLY = 0.95  # of the best score: as good as the best
LEAST_ROWS = 40  # below this a share of the rows has no graph worth the name
ROWS_PER_CLUSTER = 8  # at the largest candidate
MOST = 250  # the largest candidate unless another is asked for
FIRST = 60  # looked at first, which costs a fifth; a best k of at most a third of it is the answer
DENSE = 500  # rows of a piece of the graph up to which all its eigenvectors are found directly
TOLERANCE = 1e-4  # of the eigenvectors: labels need no more, and ARPACK stops sooner

Watch = Callable[[int, int], None]


@dataclass(frozen=True)
class KCurve:
    """The score of every candidate k; `k` is the best, `clear` says whether it can be called an answer."""

    candidates: list[int]
    scores: list[float]  # bits
    agreement: list[float]  # share of the information that is confirmed (adjusted mutual information)
    reference: list[float]  # scores of one Gaussian with the same covariance
    rows: int  # that were looked at

    @property
    def k(self) -> int:
        return self.candidates[int(np.argmax(self.scores))]

    @property
    def beside(self) -> float:
        """The best that one Gaussian reaches with about as many clusters."""
        near = [ref for k, ref in zip(self.candidates, self.reference, strict=True) if 1 / ABOUT <= k / self.k <= ABOUT]
        return max(near)

    @property
    def clear(self) -> bool:
        return max(self.scores) > 0 and self.beside < BELOW * max(self.scores)

    @property
    def near(self) -> list[int]:
        """Candidates whose score is within 5 % of the best, in order of score."""
        best = max(self.scores)
        order = np.argsort(-np.array(self.scores), kind="stable")
        return [self.candidates[i] for i in order if self.scores[i] >= best - (1 - NEARLY) * abs(best)]

    def words(self) -> str:
        """What the curve says, in one or two sentences."""
        others = [k for k in self.near if k != self.k]
        also = f" Nearly as good: {', '.join(map(str, others[:5]))}." if others else ""
        best, share = max(self.scores), self.agreement[int(np.argmax(self.scores))]
        if self.clear:
            return f"k = {self.k}: two shares of the rows agree on {share:.0%} of what {self.k} clusters say.{also}"
        if best <= 0:
            reason = f"for no number do two shares of the rows agree well enough (best: {share:.0%}, at {self.k})"
        else:
            reason = f"{self.k} is best by {best:.1f} bits, but one cloud without clusters reaches {self.beside:.1f}"
        return f"no clear k: {reason}."

    def table(self) -> list[tuple[int, float, float, float]]:
        """k, score, agreement and the score of the reference, one line per candidate."""
        return list(zip(self.candidates, self.scores, self.agreement, self.reference, strict=True))

    def plain(self) -> dict[str, Any]:
        """As JSON can hold it; `KCurve(**plain)` is the curve again."""
        return asdict(self)


def k_curve(
    points: Rows, at_least: int = 2, at_most: int | None = None, seed: int = 0, watch: Watch = lambda done, total: None
) -> KCurve:
    """Scores of the candidates from `at_least` to `at_most` for these rows; `watch` is told how much is done."""
    n = len(points)
    most = min(at_most or MOST, n // ROWS_PER_CLUSTER)
    least = min(at_least, most)
    found = [nearest_neighbours(cloud, FOUND).cpu().numpy() for cloud in (points, one_gaussian(points, seed))]
    if least < FIRST < most:
        curve = _curve(found, candidates(least, FIRST), seed, watch)
        if curve.k <= FIRST // 3:
            return curve
    return _curve(found, candidates(least, most), seed, watch)


def _curve(found: Sequence[np.ndarray], ks: list[int], seed: int, watch: Watch) -> KCurve:
    """From the neighbours of the rows and of the reference."""
    pairs = []
    for number, neighbours in enumerate([found[0]] * PAIRS + [found[1]]):
        pairs.append(TwoShares(neighbours, ks[-1], (seed, number)))
        watch(number + 1, PAIRS + 1)
    lines = {k: _line(k, pairs) for k in ks}
    best = ks.index(max(lines, key=lambda k: lines[k][0]))
    between = range(ks[max(best - 1, 0)], ks[min(best + 1, len(ks) - 1)])
    lines = {k: lines[k] if k in lines else _line(k, pairs) for k in sorted({*ks, *between})}
    scores, agreement, reference = (list(column) for column in zip(*lines.values(), strict=True))
    return KCurve(list(lines), scores, agreement, reference, len(found[0]))


def _line(k: int, pairs: "Sequence[TwoShares]") -> tuple[float, float, float]:
    """Score and agreement of k, means over the pairs of shares; the score of the reference, which is the last."""
    *own, (reference, _) = [pair.score(k) for pair in pairs]
    return float(np.mean([score for score, _ in own])), float(np.mean([same for _, same in own])), reference


def candidates(at_least: int, at_most: int) -> list[int]:
    """Every number up to 16, then steps of 7 %."""
    found = set(range(at_least, min(16, at_most) + 1)) | {at_least, at_most}
    k = 16.0
    while k < at_most:
        found.add(round(k))
        k *= STEP
    return sorted(k for k in found if at_least <= k <= at_most)


def one_gaussian(points: Rows, seed: int) -> Rows:
    """As many rows of one Gaussian with the mean and covariance of these: random combinations of them."""
    G = torch.randn(len(points), len(points), generator=torch.Generator().manual_seed(seed)).to(points)
    centre = points.mean(0)
    return G @ (points - centre) / math.sqrt(len(points)) + centre


class TwoShares:
    """Two random shares of the rows and the eigenvectors of their graphs, from which any number of clusters is had."""

    def __init__(self, neighbours: np.ndarray, most: int, seed: tuple[int, int]):
        n = len(neighbours)
        rng = generator(*seed)
        kept = [np.sort(rng.choice(n, round(SHARE * n), replace=False)) for _ in range(2)]
        shared = np.intersect1d(kept[0], kept[1])
        self.shared = [np.searchsorted(rows, shared) for rows in kept]  # their places in each share
        self.vectors = [vectors_by_piece(graph_within(neighbours, rows), most) for rows in kept]

    def score(self, k: int) -> tuple[float, float]:
        """Score and agreement of the two labellings with k clusters."""
        labels = [separated(U[:, :k])[at] for U, at in zip(self.vectors, self.shared, strict=True)]
        said, confirmed = information(*labels)
        return confirmed - DOUBT * (said - confirmed), confirmed / said if said > 0 else 0.0


def vectors_by_piece(W: scipy.sparse.csr_array, k: int) -> np.ndarray:
    """The k leading eigenvectors of D^-1/2 W D^-1/2, the first one first, each piece of the graph on its own.

    Every piece has an eigenvalue of exactly 1, and of equal eigenvalues Lanczos may find too few.
    """
    _, of = scipy.sparse.csgraph.connected_components(W, directed=False)
    values, columns = [], []
    for piece in np.argsort(-np.bincount(of), kind="stable"):
        rows = np.flatnonzero(of == piece)
        inside = W[rows][:, rows]
        few = len(rows) <= DENSE
        found = leading_eigenvectors(
            torch.from_numpy(inside.toarray()) if few else inside, min(k, len(rows)), TOLERANCE
        )
        whole = np.zeros((len(of), len(found[1])))
        whole[rows] = found[2].numpy()
        values.append(found[1].numpy())
        columns.append(whole[:, :k])
    order = np.argsort(-np.concatenate(values).round(9), kind="stable")[:k]  # equal ones: the largest piece first
    return np.concatenate(columns, axis=1)[:, order]


def graph_within(neighbours: np.ndarray, rows: np.ndarray) -> scipy.sparse.csr_array:
    """The graph of the NEAREST neighbours among some rows, from lists of neighbours (nearest first) among all."""
    place = np.full(len(neighbours), -1)
    place[rows] = np.arange(len(rows))
    local = place[neighbours[rows]]
    here = (local >= 0) & (np.cumsum(local >= 0, axis=1) <= NEAREST)
    row, column = np.nonzero(here)
    edges = scipy.sparse.coo_array((np.ones(len(row)), (row, local[row, column])), shape=(len(rows), len(rows)))
    return scipy.sparse.csr_array((edges + edges.T) / 2)


def separated(U: np.ndarray) -> np.ndarray:
    """Labels from k eigenvectors without k-means' luck: k rows as far apart as possible by pivoted QR, the rotation
    that brings them nearest to the axes, the largest coordinate (Damle, Minden and Ying, 2019)."""
    k = U.shape[1]
    corners = scipy.linalg.qr(U.T, mode="r", pivoting=True)[1][:k]
    left, _, right = scipy.linalg.svd(U[corners].T)
    return np.abs(U @ (left @ right)).argmax(1)


def information(a: np.ndarray, b: np.ndarray) -> tuple[float, float]:
    """Bits that two labellings say (mean entropy) and bits that they share, both less what chance would share."""
    counts = contingency_matrix(a, b, sparse=True)
    shared = mutual_info_score(None, None, contingency=counts)
    chance = expected_mutual_information(counts.astype(np.float64), len(a))
    entropy = np.mean([scipy.stats.entropy(np.bincount(labels)) for labels in (a, b)])
    return float(entropy - chance) / math.log(2), float(shared - chance) / math.log(2)
