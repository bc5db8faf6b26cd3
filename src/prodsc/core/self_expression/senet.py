"""Coefficients as a function of two points, so that any point can be expressed by any others (SENet).

c_ij = soft_b(q(x_i)'k(x_j)) / m      soft_b(t) = sign(t) max(|t| - b, 0)      q, k perceptrons into m dimensions
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from prodsc.types import Affinity, OtherRows, Rows


class ExpressionNet(nn.Module):
    """The networks for queries and keys, and the threshold.

    Parameters
    ----------
    query, key : torch.nn.Module
        From rows to m dimensions.
    """

    def __init__(self, query: nn.Module, key: nn.Module):
        super().__init__()
        self.query, self.key = query, key
        self.threshold = nn.Parameter(torch.zeros(()))

    def coefficients(self, X: Rows, dictionary: OtherRows) -> Tensor:
        """n x m: row i expresses row i of X by the rows of the dictionary."""
        q, k = torch.tanh(self.query(X)), torch.tanh(self.key(dictionary))
        products = q @ k.T
        return products.sign() * torch.relu(products.abs() - self.threshold) / k.shape[1]


class CodeKernel:
    """The graph of nearest neighbours among codes: 1 where each of two rows is among the nearest of the other, 1/2
    where only one is.

    The code of a row is the absolute values of its largest coefficients by the landmarks, scaled to length 1.

    Parameters
    ----------
    network : ExpressionNet
        Gives the coefficients.
    landmarks : Tensor of shape (m, d)
        Rows that express all rows.
    max_coefficients : int
        Number of coefficients of a code.
    n_neighbors : int
        Number of neighbours of a code.
    """

    def __init__(self, network: ExpressionNet, landmarks: Rows, max_coefficients: int, n_neighbors: int):
        self.network, self.landmarks, self.max_coefficients = network, landmarks, max_coefficients
        self.n_neighbors = min(n_neighbors, len(landmarks) - 1)
        own = torch.arange(len(landmarks), device=landmarks.device)
        self.codes = self._codes(landmarks, own)
        self.radius = self._radius(self._distances(self.codes, own))

    def matrix(self) -> Affinity:
        return self.rows(self.landmarks)

    def rows(self, Y: Rows) -> Tensor:
        own = self._landmark_of(Y)
        distances = self._distances(self._codes(Y, own), own)
        graph = ((distances <= self._radius(distances)[:, None]).to(Y) + (distances <= self.radius).to(Y)) / 2
        return _with(graph, own, 1.0)  # every row is its own neighbour, so that hubs do not make a bipartite graph

    @torch.no_grad()
    def _codes(self, Y: Rows, own: Tensor) -> Tensor:
        """In float64: codes of an untrained network differ in their last digits only."""
        C = self.network.coefficients(Y, self.landmarks).abs()  # x and -x are in one subspace
        C = _with(C, own, 0.0)  # no row expresses itself
        if self.max_coefficients < C.shape[1]:
            smallest = C.topk(self.max_coefficients, dim=1).values[:, -1:]
            C = torch.where(smallest <= C, C, 0.0)
        return normalize(C.double())

    def _distances(self, codes: Tensor, own: Tensor) -> Tensor:
        """Squared distances of codes to those of the landmarks."""
        return _with(2 - 2 * codes @ self.codes.T, own, torch.inf)

    def _radius(self, distances: Tensor, tie: float = 1e-3) -> Tensor:
        """Distance of the last of the nearest codes of each row; within `tie`, as rounding depends on the block."""
        return (1 + tie) * distances.topk(self.n_neighbors, dim=1, largest=False).values[:, -1]

    def _landmark_of(self, Y: Rows, same: float = 1e-5) -> Tensor:
        """The number of the landmark that each row is, or -1; equal to within `same` of the length of the row."""
        nearest = torch.cdist(Y, self.landmarks).argmin(1)
        distances = (Y - self.landmarks[nearest]).norm(dim=1)
        return torch.where(distances <= same * Y.norm(dim=1), nearest, -1)


def _with(M: Tensor, columns: Tensor, value: float) -> Tensor:
    """M with `value` at one column of each row; a column of -1 changes nothing."""
    return M.masked_fill(columns[:, None] == torch.arange(M.shape[1], device=M.device), value)
