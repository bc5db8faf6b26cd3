"""The affinity of any row with the landmarks, as a function of that row alone.

For a landmark, `rows` returns its row of `matrix`, so a training row is labelled the same way in fit and predict.
"""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from prodsc.core.self_expression import CoefficientForm, gram, potentials, self_expression
from prodsc.types import Affinity, Rows

COINCIDENT = 1e-6  # two unit rows in float32 with 1 - |<y, y'>| below this are one point
COUNT = 8  # rows that count in a row of the `NeighbourKernel`
REACH = 8  # times as many may have a part in it
SPREAD = (1e-3, 1.0)  # etas of single rows
HALVINGS = 20  # to find one


class Kernel(Protocol):
    landmarks: Rows

    def matrix(self) -> Affinity:
        """The affinity among the landmarks."""

    def rows(self, Y: Rows) -> Tensor:
        """Affinities of every row of Y with every landmark, each row on its own."""


class GramKernel:
    """|<y, y_j>|, the diagonal kept: the published choice for feature matrices."""

    def __init__(self, landmarks: Rows):
        self.landmarks = landmarks

    def matrix(self) -> Affinity:
        return gram(self.landmarks).abs()

    def rows(self, Y: Rows) -> Tensor:
        return (Y @ self.landmarks.T).abs_()


class Sharpened:
    """Another kernel with its entries raised to a power: few large affinities count, many small ones do not.

    Spectral clustering of a dense affinity prefers clusters of like size; the sharper it is, the less so.
    """

    def __init__(self, kernel: Kernel, power: float):
        self.kernel, self.power, self.landmarks = kernel, power, kernel.landmarks

    def matrix(self) -> Affinity:
        return self.kernel.matrix() ** self.power

    def rows(self, Y: Rows) -> Tensor:
        return self.kernel.rows(Y) ** self.power


class CoefficientKernel:
    """A = (P + P')/2, the affinity of training: the published choice for the convolutional experiments.

    A new row is scaled as if it had been one more landmark, by the same chain of Sinkhorn potentials.
    """

    def __init__(self, landmarks: Rows, eta: float, half_steps: int):
        self.landmarks, self.eta, self.half_steps = landmarks, eta, half_steps
        self.chain = potentials(gram(landmarks).abs() / eta, half_steps)

    def matrix(self) -> Affinity:
        return self_expression(self.landmarks, self.eta, "sinkhorn", self.half_steps).A

    def rows(self, Y: Rows) -> Tensor:
        P, P_transposed = self._scaled((Y @ self.landmarks.T).abs())
        return (P + P_transposed) / 2

    def coefficients(self, Y: Rows, form: CoefficientForm) -> Tensor:
        """The column of C that expresses each row of Y by the landmarks, as rows."""
        S = Y @ self.landmarks.T
        P, P_transposed = self._scaled(S.abs())
        return S.sign() * ((P + P_transposed) / 2 if form == "symmetric" else P_transposed)

    def _scaled(self, K: Tensor) -> tuple[Tensor, Tensor]:
        """Of P the row and the column of each new row, where K are its absolute cosines with the landmarks."""
        known, itself = _landmark_itself(K)
        K = K / self.eta
        oneself = torch.where(known, -torch.inf, 1 / self.eta)  # a landmark is not counted twice
        own = [torch.zeros_like(oneself)]
        for scaling in self.chain[:-1]:
            own.append(-torch.logsumexp(torch.cat([K + scaling, (oneself + own[-1])[:, None]], dim=1), dim=1))
        K = K.masked_fill(itself, -torch.inf)
        last, before = (
            torch.exp(K + own[-1][:, None] + self.chain[-2]),
            torch.exp(K + own[-2][:, None] + self.chain[-1]),
        )
        return (last, before) if self.half_steps % 2 else (before, last)  # an odd number ends on rows


class NeighbourKernel:
    """A = (P + P')/2 where each row of P has an eta of its own, at which COUNT rows count.

    With one eta for all, hundreds count for a row in a crowd, and a row that is far from all others has one. Rows
    beyond the REACH * COUNT nearest have no part, so that A is sparse.
    """

    def __init__(self, landmarks: Rows):
        self.landmarks = landmarks
        self.etas, self.totals, self.least = _own_scale(self._cosines())

    def matrix(self) -> Affinity:
        P = _expressing(self._cosines(), self.etas[:, None], self.totals[:, None], self.least[:, None])
        return (P + P.T) / 2

    def rows(self, Y: Rows) -> Tensor:
        """A new row is scaled as if it had been one more landmark."""
        K = (Y @ self.landmarks.T).abs()
        known, itself = _landmark_itself(K)
        K = K.masked_fill(itself, -torch.inf)
        etas, totals, least = _own_scale(K)
        P = _expressing(K, etas[:, None], totals[:, None], least[:, None])
        with_it = torch.where(known[:, None], self.totals, torch.logaddexp(self.totals, K / self.etas))
        return (P + _expressing(K, self.etas, with_it, self.least)) / 2

    def _cosines(self) -> Tensor:
        return gram(self.landmarks).abs().fill_diagonal_(-torch.inf)


def _landmark_itself(K: Tensor) -> tuple[Tensor, Tensor]:
    """By the absolute cosines of rows with landmarks: which rows are landmarks, and (as a mask of K) which ones.

    No point expresses itself. Its nearest copy is left out; other points that coincide with it count.
    """
    nearest, where = K.max(dim=1)
    known = nearest > 1 - COINCIDENT
    return known, one_hot(where, K.shape[1]).bool() & known[:, None]


def _own_scale(K: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """For each row: the eta at which COUNT rows count, log sum exp(K / eta) of its nearest, and the least of those."""
    nearest = K.topk(min(REACH * COUNT, K.shape[1] - 1)).values
    low, high = (torch.full_like(nearest[:, :1], bound) for bound in SPREAD)
    for _ in range(HALVINGS):
        eta = (low * high).sqrt()
        many = torch.special.entr(torch.softmax(nearest / eta, dim=1)).sum(1, keepdim=True).exp() > COUNT
        low, high = torch.where(many, low, eta), torch.where(many, eta, high)
    return eta[:, 0], torch.logsumexp(nearest / eta, dim=1), nearest[:, -1]


def _expressing(K: Tensor, etas: Tensor, totals: Tensor, least: Tensor) -> Tensor:
    """exp(K / eta) over its sum, of those that are near enough."""
    return torch.exp(K / etas - totals).masked_fill_(least > K, 0.0)
