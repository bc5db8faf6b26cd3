"""Principal coordinates of rows: the fixed first layer of a network that starts from a walk."""

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from prodsc.types import Embedding, Rows


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
    def fit(self, X: Rows, max_spread: float) -> None:
        """Find the directions, after columns wider than `max_spread` medians are made so wide.

        Parameters
        ----------
        X : Tensor of shape (n, width)
        max_spread : float
        """
        spread = X.std(0, correction=0)
        varying = spread[spread > 0]
        median = varying.median() if len(varying) else spread.new_ones(())
        self.scale.copy_(1 / (spread / (max_spread * median)).clamp_min(1))
        self.mean.copy_((X * self.scale).mean(0))
        self._find_directions(X * self.scale - self.mean)
        if self.height is not None:
            self.height.copy_(((X * self.scale - self.mean) @ self.directions).square().sum(1).mean().sqrt())

    def _find_directions(self, centred: Tensor) -> None:
        width, n_directions = self.directions.shape
        if width == n_directions:
            return
        vectors = torch.linalg.eigh((centred.T @ centred).double())[1][:, -n_directions:].flip(1)
        signs = vectors.gather(0, vectors.abs().argmax(0, keepdim=True)).sign()
        self.directions.copy_(vectors * signs)  # eigenvectors have no sign of their own

    def forward(self, X: Rows) -> Embedding:
        """Coordinates, n x n_outputs."""
        P = (X * self.scale - self.mean) @ self.directions
        if self.height is not None:
            P = torch.cat([P, self.height.expand(len(P), 1)], dim=1)
        return normalize(P) * self.n_outputs**0.5
