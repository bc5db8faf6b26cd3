"""Principal coordinates of rows: the fixed first layer of a network that starts from a walk."""

from dataclasses import dataclass

import scipy.linalg
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from prodsc.types import Embedding, Rows


@dataclass(frozen=True)
class Moments:
    """Mean and covariance of the columns of some rows, in double precision."""

    mean: Tensor
    covariance: Tensor

    @classmethod
    def of(cls, X: Rows) -> "Moments":
        """Of the rows of X; the product is in the precision of X."""
        mean = X.mean(0, dtype=torch.float64)  # so that a constant column has no variance at all
        centred = X - mean.to(X)
        return cls(mean, (centred.T @ centred).double() / len(X))


class PrincipalCoordinates(nn.Module):
    """Rows along the principal directions of the training rows, all of the same length.

    Parameters
    ----------
    width : int
        Columns of the input.
    n_directions : int
    keep_length : bool
        Whether the length of a row counts: one more coordinate, the same for all rows and as long as they are on
        average, turns points of the plane into directions of space.
    """

    scale: Tensor
    mean: Tensor
    directions: Tensor
    height: Tensor | None

    def __init__(self, width: int, n_directions: int, keep_length: bool = False):
        super().__init__()
        self.register_buffer("scale", torch.ones(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("directions", torch.eye(width, n_directions))
        self.register_buffer("height", torch.ones(()) if keep_length else None)

    @property
    def n_outputs(self) -> int:
        return self.directions.shape[1] + (self.height is not None)

    @torch.no_grad()
    def fit(self, moments: Moments, max_spread: float) -> None:
        """Find the directions, after columns wider than `max_spread` medians are made so wide.

        Parameters
        ----------
        moments : Moments
            Of the training rows.
        max_spread : float
        """
        spread = moments.covariance.diagonal().clamp_min(0).sqrt()
        varying = spread[spread > 0]
        median = varying.median() if len(varying) else spread.new_ones(())
        scale = 1 / (spread / (max_spread * median)).clamp_min(1)
        self.scale.copy_(scale)
        self.mean.copy_(moments.mean * scale)
        scaled = moments.covariance * scale * scale[:, None]
        self._find_directions(scaled)
        if self.height is not None:
            along = self.directions.to(scaled)
            self.height.copy_((along * (scaled @ along)).sum().sqrt())  # of a row of average length

    def _find_directions(self, covariance: Tensor) -> None:
        width, n_directions = self.directions.shape
        if width == n_directions:
            return
        leading = scipy.linalg.eigh(covariance.cpu().numpy(), subset_by_index=[width - n_directions, width - 1])[1]
        vectors = torch.from_numpy(leading).flip(1)
        signs = vectors.gather(0, vectors.abs().argmax(0, keepdim=True)).sign()
        self.directions.copy_(vectors * signs)  # eigenvectors have no sign of their own

    def forward(self, X: Rows) -> Embedding:
        """Coordinates, n x n_outputs."""
        P = (X * self.scale - self.mean) @ self.directions
        if self.height is not None:
            P = torch.cat([P, self.height * torch.ones_like(P[:, :1])], dim=1)
        return normalize(P) * self.n_outputs**0.5
