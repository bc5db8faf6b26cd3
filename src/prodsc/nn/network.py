"""A pre-feature and two heads: f gives z (the representation), h gives y (what the coefficients are made of)."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prodsc.nn.encoders import initialise
from prodsc.types import Rows


class Network(nn.Module):
    def __init__(
        self,
        encoder: nn.Module,
        f: nn.Module,
        h: nn.Module,
        decoder: nn.Module | None = None,
        whitening: "Whitening | None" = None,
    ):
        super().__init__()
        self.encoder, self.f, self.h, self.decoder, self.whitening = encoder, f, h, decoder, whitening

    def encode(self, X: Tensor) -> Rows:
        H = self.encoder(X).flatten(1)
        return H if self.whitening is None else self.whitening(H)

    def reconstruct(self, X: Tensor) -> Tensor:
        assert self.decoder is not None  # only a phase on reconstruction asks, and only with a decoder
        return self.decoder(self.encoder(X).flatten(1))

    def z(self, H: Rows) -> Rows:
        """Unit rows of the representation."""
        return F.normalize(self.f(H))

    def y(self, H: Rows) -> Rows:
        """Unit rows whose inner products give the coefficients."""
        return F.normalize(self.h(H))

    def copy_z_to_y(self) -> None:
        """After warm-up the coefficients start from the representation."""
        self.h.load_state_dict(self.f.state_dict())


class Whitening(nn.Module):
    """h -> W h/|h|, a fixed map after which the coordinates are uncorrelated and of equal variance.

    Unit rows along these coordinates are where warm-up on the coding rate leads: all directions equally strong.
    """

    W: Tensor

    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.register_buffer("W", torch.zeros(out_features, in_features))

    def forward(self, H: Rows) -> Rows:
        return F.normalize(H) @ self.W.T

    @torch.no_grad()
    def fit(self, parts: Iterable[Rows]) -> None:
        """W from the second moments of all rows, read a part at a time; directions without variance get nothing."""
        moments, n = torch.zeros(self.W.shape[1], self.W.shape[1], dtype=torch.float64, device=self.W.device), 0
        for H in parts:
            unit = F.normalize(H).double()
            moments += unit.T @ unit
            n += len(H)
        values, vectors = torch.linalg.eigh(moments)
        d = len(self.W)
        values, vectors = values[-d:], vectors[:, -d:]
        scale = torch.where(values > 1e-9 * values[-1], (n / (d * values.clamp_min(1e-30))).sqrt(), 0.0)
        self.W.copy_((vectors * scale).T)


def identity_head(size: int) -> nn.Linear:
    """A linear head that begins as the identity."""
    made = nn.Linear(size, size, device="meta").to_empty(device="cpu")
    nn.init.eye_(made.weight)
    nn.init.zeros_(made.bias)
    return made


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
