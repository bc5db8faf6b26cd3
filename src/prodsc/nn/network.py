"""A pre-feature and two heads: f gives z (the representation), h gives y (what the coefficients are made of)."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prodsc.nn.encoders import initialise
from prodsc.nn.precision import products_in
from prodsc.types import Embedding, Rows

SQUARE_BELOW = 4096  # features; their square matrix of second moments fits, and so do all its eigenvectors
SPARE, READINGS = 40, 6  # directions beyond those asked for, and times the rows are read, where it does not


class Network(nn.Module):
    dtype = torch.float32  # of its products; what comes out is float32 whatever this is

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
        with products_in(self.dtype, X.device):
            H = self.encoder(X).flatten(1)
        return H if self.whitening is None else self.whitening(H.float())

    def reconstruct(self, X: Tensor) -> Tensor:
        assert self.decoder is not None  # only a phase on reconstruction asks, and only with a decoder
        with products_in(self.dtype, X.device):
            return self.decoder(self.encoder(X).flatten(1)).float()

    def z(self, H: Rows) -> Embedding:
        """Unit rows of the representation."""
        with products_in(self.dtype, H.device):
            Z = self.f(H)
        return F.normalize(Z.float())

    def y(self, H: Rows) -> Embedding:
        """Unit rows whose inner products give the coefficients."""
        with products_in(self.dtype, H.device):
            Y = self.h(H)
        return F.normalize(Y.float())

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

    def forward(self, H: Rows) -> Embedding:
        return F.normalize(H) @ self.W.T

    @torch.no_grad()
    def fit(self, parts: Callable[[], Iterable[Rows]]) -> None:
        """W from the second moments of all rows, read a part at a time; directions without variance get nothing.

        `parts` is called for each reading: one, or for features too wide for a square matrix of them a few, in which
        a subspace somewhat larger than asked for is turned towards the strongest directions.
        """
        d, width = self.W.shape
        if width <= SQUARE_BELOW:
            moments, n = self._moments(parts())
            values, vectors = torch.linalg.eigh(moments)
        else:
            basis = torch.randn(width, d + SPARE, generator=torch.Generator().manual_seed(0)).to(self.W)
            for _ in range(READINGS - 1):
                basis, _ = torch.linalg.qr(self._moments(parts(), basis)[0])
            moments, n = self._moments(parts(), basis)
            values, turn = torch.linalg.eigh((basis.T @ moments).double())
            vectors = basis.double() @ turn
        values, vectors = values[-d:], vectors[:, -d:]
        scale = torch.where(values > 1e-9 * values[-1], (n / (d * values.clamp_min(1e-30))).sqrt(), 0.0)
        self.W.copy_((vectors * scale).T)

    def _moments(self, parts: Iterable[Rows], basis: Tensor | None = None) -> tuple[Tensor, int]:
        """The second moments of unit rows, or what they make of a basis, and the number of rows."""
        total, n = torch.zeros((), dtype=torch.float64 if basis is None else basis.dtype, device=self.W.device), 0
        for H in parts:
            unit = F.normalize(H).to(total)
            total = total + unit.T @ (unit if basis is None else unit @ basis)
            n += len(H)
        return total, n


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


def build_seeded(
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
