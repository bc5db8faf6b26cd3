"""An encoder with two heads: f gives z, the representation; h gives y, from which the coefficients are computed."""

from collections.abc import Callable, Iterable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prodsc.nn.encoders import initialise
from prodsc.nn.precision import autocast_to
from prodsc.types import Embedding, RowChunk, Rows


class Network(nn.Module):
    """An encoder and two heads, and optionally a decoder for pre-training and a fixed whitening.

    Parameters
    ----------
    encoder : nn.Module
        X -> H, the pre-feature of both heads.
    f : nn.Module
        H -> Z, the representation.
    h : nn.Module
        H -> Y, from which the coefficients are computed.
    decoder : nn.Module, optional
        H -> X, for a phase of training on reconstruction.
    whitening : Whitening, optional
        Applied to H.
    g : nn.Module, optional
        H -> one output for each cluster, whose largest is the label.
    """

    dtype = torch.float32  # of its products; outputs are always float32

    def __init__(
        self,
        encoder: nn.Module,
        f: nn.Module,
        h: nn.Module,
        decoder: nn.Module | None = None,
        whitening: "Whitening | None" = None,
        g: nn.Module | None = None,
    ):
        super().__init__()
        self.encoder, self.f, self.h, self.g = encoder, f, h, g
        self.decoder, self.whitening = decoder, whitening

    def encode(self, X: Tensor, skip: int = 0) -> Rows:
        """H, one row of pre-features per row or image of X, or per output of the first `skip` layers of the encoder."""
        layers = self.encoder[skip:] if isinstance(self.encoder, nn.Sequential) and skip else self.encoder
        with autocast_to(self.dtype, X.device):
            H = layers(X).flatten(1)
        return H if self.whitening is None else self.whitening(H.float())

    def reconstruct(self, X: Tensor) -> Tensor:
        """X as the decoder gives it back."""
        assert self.decoder is not None  # only called in a phase of training on reconstruction
        with autocast_to(self.dtype, X.device):
            return self.decoder(self.encoder(X).flatten(1)).float()

    def z(self, H: Rows) -> Embedding:
        """Z, the representation, as unit rows."""
        with autocast_to(self.dtype, H.device):
            Z = self.f(H)
        return F.normalize(Z.float())

    def y(self, H: Rows) -> Embedding:
        """Y, as unit rows; their inner products give the coefficients."""
        with autocast_to(self.dtype, H.device):
            Y = self.h(H)
        return F.normalize(Y.float())

    def outputs(self, H: Rows) -> Embedding:
        """One output for each cluster."""
        assert self.g is not None  # only called for networks that label
        with autocast_to(self.dtype, H.device):
            return self.g(H).float()

    def copy_z_to_y(self) -> None:
        """Copy the weights of head f to head h, so that Y = Z when warm-up ends."""
        self.h.load_state_dict(self.f.state_dict())


class Whitening(nn.Module):
    """h -> W h/|h|, a fixed map to coordinates that are uncorrelated and have equal variance.

    Warm-up on the coding rate leads to the same result: all directions equally strong.

    Parameters
    ----------
    in_features, out_features : int
        Number of columns before and after.
    """

    W: Tensor

    def __init__(self, in_features: int, out_features: int):
        super().__init__()
        self.register_buffer("W", torch.zeros(out_features, in_features))

    def forward(self, H: Rows) -> Embedding:
        """Whitened rows."""
        return F.normalize(H) @ self.W.T

    @torch.no_grad()
    def fit(
        self,
        parts: Callable[[], Iterable[RowChunk]],
        max_square: int = 4096,
        n_extra: int = 40,
        n_passes: int = 6,
    ) -> None:
        """Set W from the second moments of all rows; directions without variance get weight zero.

        Parameters
        ----------
        parts : callable
            Gives all rows, a part at a time; called once for each pass over the data.
        max_square : int, default=4096
            Up to this number of features, the matrix of second moments is computed and decomposed, in one pass. Beyond
            it, the leading eigenvectors are found by subspace iteration.
        n_extra : int, default=40
            Dimensions of the iterated subspace beyond those of the output: more converge faster.
        n_passes : int, default=6
            Passes over the data of the subspace iteration.
        """
        d, width = self.W.shape
        if width <= max_square:
            moments, n = self._moments(parts())
            values, vectors = torch.linalg.eigh(moments)
        else:
            basis = torch.randn(width, d + n_extra, generator=torch.Generator().manual_seed(0)).to(self.W)
            for _ in range(n_passes - 1):
                basis, _ = torch.linalg.qr(self._moments(parts(), basis)[0])
            moments, n = self._moments(parts(), basis)
            values, rotation = torch.linalg.eigh((basis.T @ moments).double())
            vectors = basis.double() @ rotation
        values, vectors = values[-d:], vectors[:, -d:]
        scale = torch.where(values > 1e-9 * values[-1], (n / (d * values.clamp_min(1e-30))).sqrt(), 0.0)
        self.W.copy_((vectors * scale).T)

    def _moments(self, parts: Iterable[RowChunk], basis: Tensor | None = None) -> tuple[Tensor, int]:
        """The second moments of unit rows, or their product with a basis; and the number of rows."""
        total, n = torch.zeros((), dtype=torch.float64 if basis is None else basis.dtype, device=self.W.device), 0
        for H in parts:
            unit = F.normalize(H).to(total)
            total = total + unit.T @ (unit if basis is None else unit @ basis)
            n += len(H)
        return total, n


def identity_head(size: int) -> nn.Linear:
    """A linear head that is initialised to the identity."""
    layer = nn.Linear(size, size, device="meta").to_empty(device="cpu")
    nn.init.eye_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


def head(in_features: int, out_features: int, hidden_size: int | None) -> nn.Module:
    """A linear head, or one with a hidden ReLU layer (in the paper's synthetic experiments)."""
    if hidden_size is None:
        return nn.Linear(in_features, out_features)
    return nn.Sequential(nn.Linear(in_features, hidden_size), nn.ReLU(), nn.Linear(hidden_size, out_features))


def build_seeded(
    make: Callable[[], nn.Module],
    generator: torch.Generator,
    draw: Callable[[nn.Module, torch.Generator], None] = initialise,
) -> nn.Module:
    """Build a module whose weights depend on `generator` only.

    Parameters
    ----------
    make : callable
        Constructs the module.
    generator : torch.Generator
        Source of randomness.
    draw : callable, default=initialise
        Initialises the weights from the generator.

    Returns
    -------
    nn.Module
        The module, on the CPU.
    """
    with torch.device("meta"):  # so that the constructor draws nothing from the global random state
        module = make()
    module.to_empty(device="cpu")
    draw(module, generator)
    return module
