"""The affinity of any row with the landmarks, as a function of that row alone.

For a landmark, `rows` returns its row of `matrix`, so a training row is labelled the same way in fit and predict.
"""

from typing import Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from prodsc.choices import CoefficientForm
from prodsc.core.self_expression import gram, potentials, self_expression
from prodsc.types import Affinity, Rows


@runtime_checkable
class Kernel(Protocol):
    """Affinities of any row with the landmarks."""

    landmarks: Rows

    def matrix(self) -> Affinity:
        """The affinity among the landmarks."""

    def rows(self, Y: Rows) -> Tensor:
        """Affinities of every row of Y with every landmark, each row on its own."""


class GramKernel:
    """|<y, y_j>|, the diagonal kept: the published choice for feature matrices.

    Parameters
    ----------
    landmarks : Tensor of shape (m, d)
        Unit rows.
    """

    def __init__(self, landmarks: Rows):
        self.landmarks = landmarks

    def matrix(self) -> Affinity:
        return gram(self.landmarks).abs()

    def rows(self, Y: Rows) -> Tensor:
        return (Y @ self.landmarks.T).abs_()


class PowerKernel:
    """Another kernel with its entries raised to a power, so that many small affinities count less than few large ones.

    Spectral clustering of a dense affinity prefers clusters of similar size. A larger power weakens that preference.

    Parameters
    ----------
    kernel : Kernel
    power : float
    """

    def __init__(self, kernel: Kernel, power: float):
        self.kernel, self.power, self.landmarks = kernel, power, kernel.landmarks

    def matrix(self) -> Affinity:
        return self.kernel.matrix() ** self.power

    def rows(self, Y: Rows) -> Tensor:
        return self.kernel.rows(Y) ** self.power


class CoefficientKernel:
    """A = (P + P')/2, the affinity of training: the published choice for the convolutional experiments.

    A new row is scaled as if it were one more landmark, by the same chain of Sinkhorn potentials.

    Parameters
    ----------
    landmarks : Tensor of shape (m, d)
        Unit rows.
    eta : float
        Temperature.
    half_steps : int
        Half-steps of Sinkhorn; 1 is the row softmax.
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
        """The coefficients that express each row of Y by the landmarks, n x m: columns of C, as rows."""
        S = Y @ self.landmarks.T
        P, P_transposed = self._scaled(S.abs())
        return S.sign() * ((P + P_transposed) / 2 if form == "symmetric" else P_transposed)

    def _scaled(self, K: Tensor) -> tuple[Tensor, Tensor]:
        """The row and the column of P of each new row, from its absolute cosines K with the landmarks."""
        is_landmark, itself = _find_landmarks(K)
        K = K / self.eta
        oneself = torch.where(is_landmark, -torch.inf, 1 / self.eta)  # a landmark is not counted twice
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
    """A = (P + P')/2, where each row of P has its own eta, at which its perplexity is `n_effective`.

    With one eta for all rows, a row in a dense region has hundreds of effective neighbours, and a row far from all
    others has one. Only the `n_nearest` nearest rows have an affinity, so A is sparse.

    Parameters
    ----------
    landmarks : Tensor of shape (m, d)
        Unit rows.
    n_effective : int
        Effective number of neighbours of a row: the exponential of the entropy of its row of P.
    n_nearest : int
        Number of neighbours of a row with an affinity above 0.
    """

    def __init__(self, landmarks: Rows, n_effective: int = 8, n_nearest: int = 64):
        self.landmarks, self.n_effective, self.n_nearest = landmarks, n_effective, n_nearest
        self.etas, self.log_sums, self.thresholds = self._row_scales(self._cosines())

    def matrix(self) -> Affinity:
        P = _scaled_softmax(self._cosines(), self.etas[:, None], self.log_sums[:, None], self.thresholds[:, None])
        return (P + P.T) / 2

    def rows(self, Y: Rows) -> Tensor:
        """Affinities of every row of Y with every landmark, each row scaled as if it were one more landmark."""
        K = (Y @ self.landmarks.T).abs()
        is_landmark, itself = _find_landmarks(K)
        K = K.masked_fill(itself, -torch.inf)
        etas, log_sums, thresholds = self._row_scales(K)
        P = _scaled_softmax(K, etas[:, None], log_sums[:, None], thresholds[:, None])
        with_row = torch.where(is_landmark[:, None], self.log_sums, torch.logaddexp(self.log_sums, K / self.etas))
        return (P + _scaled_softmax(K, self.etas, with_row, self.thresholds)) / 2

    def _cosines(self) -> Tensor:
        return gram(self.landmarks).abs().fill_diagonal_(-torch.inf)

    def _row_scales(
        self, K: Tensor, etas: tuple[float, float] = (1e-3, 1.0), n_halvings: int = 20
    ) -> tuple[Tensor, Tensor, Tensor]:
        """For each row: its eta, log sum exp(K / eta) over its nearest, and the smallest K among those.

        Bisection on a logarithmic scale, for all rows at once.
        """
        nearest = K.topk(min(self.n_nearest, K.shape[1] - 1)).values
        low, high = (torch.full_like(nearest[:, :1], bound) for bound in etas)
        for _ in range(n_halvings):
            eta = (low * high).sqrt()
            perplexity = torch.special.entr(torch.softmax(nearest / eta, dim=1)).sum(1, keepdim=True).exp()
            too_many = perplexity > self.n_effective
            low, high = torch.where(too_many, low, eta), torch.where(too_many, eta, high)
        return eta[:, 0], torch.logsumexp(nearest / eta, dim=1), nearest[:, -1]


def _find_landmarks(K: Tensor, coincident: float = 1e-6) -> tuple[Tensor, Tensor]:
    """Which rows are landmarks, and (as a mask of K) which ones, from the absolute cosines K of rows with landmarks.

    Two unit rows in float32 with 1 - |<y, y'>| below `coincident` are the same point. No point expresses itself: its
    nearest copy is left out, other points that coincide with it count.
    """
    nearest, where = K.max(dim=1)
    is_landmark = nearest > 1 - coincident
    return is_landmark, one_hot(where, K.shape[1]).bool() & is_landmark[:, None]


def _scaled_softmax(K: Tensor, etas: Tensor, log_sums: Tensor, thresholds: Tensor) -> Tensor:
    """exp(K / eta) over its sum, 0 where K is below the threshold."""
    return torch.exp(K / etas - log_sums).masked_fill_(thresholds > K, 0.0)
