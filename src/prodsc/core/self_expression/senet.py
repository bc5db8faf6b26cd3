"""Coefficients as a function of two points, so that any point can be expressed by any others (SENet).

c_ij = soft_b(q(x_i)'k(x_j)) / m      soft_b(t) = sign(t) max(|t| - b, 0)      q, k perceptrons into m dimensions
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from prodsc.types import Affinity, Rows

SAME = 1e-5  # of its length: a row this near to a landmark is that landmark
TIE = 1e-3  # of a squared distance: the same row in another block of rows rounds differently


class ExpressionNet(nn.Module):
    """Queries, keys and the threshold."""

    def __init__(self, query: nn.Module, key: nn.Module):
        super().__init__()
        self.query, self.key = query, key
        self.threshold = nn.Parameter(torch.zeros(()))

    def coefficients(self, X: Rows, dictionary: Rows) -> Tensor:
        """n x m: row i expresses row i of X by the rows of the dictionary."""
        q, k = torch.tanh(self.query(X)), torch.tanh(self.key(dictionary))
        products = q @ k.T
        return products.sign() * torch.relu(products.abs() - self.threshold) / k.shape[1]


class CodeKernel:
    """The graph of the nearest neighbours among codes: 1 where each of two rows has the other among its nearest, 1/2
    where only one has.

    The code of a row is the sizes of its coefficients by the landmarks, the largest `kept` of them, with unit length.
    """

    def __init__(self, network: ExpressionNet, landmarks: Rows, kept: int, n_neighbors: int):
        self.network, self.landmarks, self.kept = network, landmarks, kept
        self.n_neighbors = min(n_neighbors, len(landmarks) - 1)
        oneself = torch.arange(len(landmarks), device=landmarks.device)
        self.codes = self._codes(landmarks, oneself)
        self.reach = self._reach(self._apart(self.codes, oneself))

    def matrix(self) -> Affinity:
        return self.rows(self.landmarks)

    def rows(self, Y: Rows) -> Tensor:
        oneself = self._oneself(Y)
        apart = self._apart(self._codes(Y, oneself), oneself)
        graph = ((apart <= self._reach(apart)[:, None]).to(Y) + (apart <= self.reach).to(Y)) / 2
        return _with(graph, oneself, 1.0)  # every row is its own neighbour, so that hubs do not make a bipartite graph

    @torch.no_grad()
    def _codes(self, Y: Rows, oneself: Tensor) -> Tensor:
        """In double: codes of a young network differ in their last digits only."""
        C = self.network.coefficients(Y, self.landmarks).abs()  # x and -x are of one subspace
        C = _with(C, oneself, 0.0)  # no row expresses itself
        if self.kept < C.shape[1]:
            smallest = C.topk(self.kept, dim=1).values[:, -1:]
            C = torch.where(smallest <= C, C, 0.0)
        return normalize(C.double())

    def _apart(self, codes: Tensor, oneself: Tensor) -> Tensor:
        """Squared distances of codes to those of the landmarks."""
        return _with(2 - 2 * codes @ self.codes.T, oneself, torch.inf)

    def _reach(self, apart: Tensor) -> Tensor:
        """How near a code must be to be among the nearest of each row."""
        return (1 + TIE) * apart.topk(self.n_neighbors, dim=1, largest=False).values[:, -1]

    def _oneself(self, Y: Rows) -> Tensor:
        """The number of the landmark that each row is, or -1."""
        nearest = torch.cdist(Y, self.landmarks).argmin(1)
        apart = (Y - self.landmarks[nearest]).norm(dim=1)
        return torch.where(apart <= SAME * Y.norm(dim=1), nearest, -1)


def _with(M: Tensor, columns: Tensor, value: float) -> Tensor:
    """M with `value` at one column of each row; a column of -1 changes nothing."""
    return M.masked_fill(columns[:, None] == torch.arange(M.shape[1], device=M.device), value)
