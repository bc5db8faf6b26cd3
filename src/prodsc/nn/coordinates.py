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
    """

    scale: Tensor
    mean: Tensor
    directions: Tensor

    def __init__(self, width: int, n_directions: int):
        super().__init__()
        self.register_buffer("scale", torch.ones(width))
        self.register_buffer("mean", torch.zeros(width))
        self.register_buffer("directions", torch.eye(width, n_directions))

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
        width, n_directions = self.directions.shape
        if width == n_directions:
            return
        centred = X * self.scale - self.mean
        vectors = torch.linalg.eigh((centred.T @ centred).double())[1][:, -n_directions:].flip(1)
        signs = vectors.gather(0, vectors.abs().argmax(0, keepdim=True)).sign()
        self.directions.copy_(vectors * signs)  # eigenvectors have no sign of their own

    def forward(self, X: Rows) -> Embedding:
        """Coordinates, n x n_directions."""
        P = (X * self.scale - self.mean) @ self.directions
        return normalize(P) * self.directions.shape[1] ** 0.5
