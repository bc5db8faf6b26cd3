"""The affinity of any row with the landmarks, as a function of that row alone.

For a landmark, `rows` returns its row of `matrix`, so a training row is labelled the same way in fit and predict.
"""

from typing import Protocol

import torch
from torch import Tensor
from torch.nn.functional import one_hot

from prodsc.selfexpression import CoefficientForm, gram, potentials, self_expression
from prodsc.types import Affinity, Rows

COINCIDENT = 1e-6  # two unit rows in float32 with 1 - |<y, y'>| below this are one point


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
        P, P_transposed = self._scaled((Y @ self.landmarks.T).abs() / self.eta)
        return (P + P_transposed) / 2

    def coefficients(self, Y: Rows, form: CoefficientForm) -> Tensor:
        """The column of C that expresses each row of Y by the landmarks, as rows."""
        S = Y @ self.landmarks.T
        P, P_transposed = self._scaled(S.abs() / self.eta)
        return S.sign() * ((P + P_transposed) / 2 if form == "symmetric" else P_transposed)

    def _scaled(self, K: Tensor) -> tuple[Tensor, Tensor]:
        """Of P the row and the column of each new row, where K is its affinity with the landmarks before scaling."""
        nearest, where = K.max(dim=1)
        known = nearest > (1 - COINCIDENT) / self.eta  # the row is itself a landmark: do not count it twice
        oneself = torch.where(known, -torch.inf, 1 / self.eta)
        own = [torch.zeros_like(nearest)]
        for scaling in self.chain[:-1]:
            own.append(-torch.logsumexp(torch.cat([K + scaling, (oneself + own[-1])[:, None]], dim=1), dim=1))
        # No point expresses itself. Its nearest copy is left out; other points that coincide with it count.
        K = torch.where(one_hot(where, K.shape[1]).bool() & known[:, None], -torch.inf, K)
        last, before = (
            torch.exp(K + own[-1][:, None] + self.chain[-2]),
            torch.exp(K + own[-2][:, None] + self.chain[-1]),
        )
        return (last, before) if self.half_steps % 2 else (before, last)  # an odd number ends on rows
