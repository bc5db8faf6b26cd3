"""A pre-feature and two heads: f gives z (the representation), h gives y (what the coefficients are made of)."""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prodsc.nn.encoders import initialise
from prodsc.types import Rows


class Network(nn.Module):
    def __init__(self, encoder: nn.Module, f: nn.Module, h: nn.Module, decoder: nn.Module | None = None):
        super().__init__()
        self.encoder, self.f, self.h, self.decoder = encoder, f, h, decoder

    def encode(self, X: Tensor) -> Rows:
        return self.encoder(X).flatten(1)

    def z(self, H: Rows) -> Rows:
        """Unit rows of the representation."""
        return F.normalize(self.f(H))

    def y(self, H: Rows) -> Rows:
        """Unit rows whose inner products give the coefficients."""
        return F.normalize(self.h(H))

    def copy_z_to_y(self) -> None:
        """After warm-up the coefficients start from the representation."""
        self.h.load_state_dict(self.f.state_dict())


def head(in_features: int, out_features: int, hidden_size: int | None) -> nn.Module:
    """Linear, or with one hidden ReLU layer (the paper's synthetic experiments)."""
    if hidden_size is None:
        return nn.Linear(in_features, out_features)
    return nn.Sequential(nn.Linear(in_features, hidden_size), nn.ReLU(), nn.Linear(hidden_size, out_features))


def built(
    make: Callable[[], nn.Module],
    generator: torch.Generator,
    draw: Callable[[nn.Module, torch.Generator], None] = initialise,
) -> nn.Module:
    """The module that `make` describes, its weights drawn from `generator` alone."""
    with torch.device("meta"):  # so that constructing it draws nothing from the global random state
        module = make()
    module.to_empty(device="cpu")
    draw(module, generator)
    return module
