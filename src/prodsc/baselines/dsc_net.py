"""DSC-Net: an autoencoder whose codes express each other by a free matrix of coefficients."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from prodsc.core import losses
from prodsc.core.graph import spectral_labels
from prodsc.core.losses import Objective, Term
from prodsc.core.self_expression import keep_largest, low_rank_affinity
from prodsc.errors import InputError, ParameterError
from prodsc.estimators.capabilities import Capability
from prodsc.estimators.deep import DeepClusterer
from prodsc.estimators.sklearn_types import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from prodsc.nn import Autoencoder, conv_autoencoder, initialise_autoencoder, mlp_autoencoder
from prodsc.random import Stream
from prodsc.sources.rows import RowReader
from prodsc.sources.source import RowsInput
from prodsc.training import Batches, Callback, Phase, Training
from prodsc.types import Rows

MAX_ROWS = 30_000  # C, its gradient and the two moments of Adam: 16 bytes per pair, 14 GB


class DSCNet(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DeepClusterer):
    """Deep subspace clustering networks (DSC-Net, NeurIPS 2017).

    An autoencoder with codes Z, pre-trained, then on all rows at once with a free N x N matrix C

        1/2 ||X - X_hat||^2 + beta ||C||_F^2 + gamma/2 ||Z - ZC||_F^2,   X_hat decoded from ZC

    The largest entries of C give an affinity for spectral clustering. There are no coefficients for new rows, so there
    is no `predict`.
    See docs/methods/dsc-net.md.
    """

    capabilities = DeepClusterer.capabilities | {Capability.TRANSFORM}

    departures = "gamma 1 and beta 1 instead of the best of a grid chosen with labels"

    network_: "SelfExpressiveAutoencoder"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        encoder: str = "mlp",
        hidden_size: int = 128,
        n_components: int = 128,
        channels: Sequence[int] = (10, 20, 30),
        kernel_sizes: Sequence[int] = (5, 3, 3),
        pretrain_epochs: int = 100,
        pretrain_batch_size: int = 100,
        pretrain_learning_rate: float = 1e-3,
        scaling: str = "unit",
        gamma: float = 1.0,
        beta: float = 1.0,
        epochs: int = 100,
        learning_rate: float | str = "auto",
        mass_kept: float = 0.2,
        subspace_dim: int = 10,
        power: float = 3.5,
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.encoder = encoder
        self.hidden_size = hidden_size
        self.n_components = n_components
        self.channels = channels
        self.kernel_sizes = kernel_sizes
        self.pretrain_epochs = pretrain_epochs
        self.pretrain_batch_size = pretrain_batch_size
        self.pretrain_learning_rate = pretrain_learning_rate
        self.scaling = scaling
        self.gamma = gamma
        self.beta = beta
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.mass_kept = mass_kept
        self.subspace_dim = subspace_dim
        self.power = power
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # ---- the pieces of a fit -------------------------------------------------------------------------------

    def _fit(self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        if len(rows) > MAX_ROWS:
            raise InputError(
                f"X has {len(rows)} rows, and DSCNet learns a coefficient for every pair: at most {MAX_ROWS} rows. "
                "Give fewer, or use a method that generalises, such as PRODSC or SENet."
            )
        super()._fit(rows, callbacks, checkpoint)

    def _network(self, sample: Tensor) -> "SelfExpressiveAutoencoder":
        generator = torch.Generator().manual_seed(self.seed_)
        if self.encoder == "conv":
            autoencoder = conv_autoencoder(sample, self.channels, self.kernel_sizes, generator)
        elif self.encoder == "mlp":
            sizes = [sample.shape[1], self.hidden_size, self.n_components]
            autoencoder = mlp_autoencoder(sizes, generator, initialise_autoencoder)
        else:
            raise ParameterError(f"DSCNet: encoder must be 'mlp' or 'conv', got {self.encoder!r}: it needs a decoder.")
        return SelfExpressiveAutoencoder(autoencoder, self.n_rows_)

    def _objective(self) -> Objective["DSCNetBatch"]:
        return Objective(
            Term("reconstruction", 1.0, lambda s: losses.reconstruction(s.X, s.X_hat)),
            Term("frobenius", self.beta, lambda s: losses.frobenius(s.network.C)),
            Term("self_expression", self.gamma, lambda s: losses.reconstruction(s.Z, s.Z_expressed)),
        )

    def _phases(self, objective: Objective[Any], n_rows: int) -> list[Phase]:
        parts = Batches(n_rows, self.pretrain_batch_size, (self.seed_, Stream.FIRST_PHASE))
        whole = Batches(n_rows, n_rows, (self.seed_, Stream.SECOND_PHASE))
        pretrain = Phase(
            "pre-train", self.pretrain_epochs * parts.per_epoch, ("reconstruction",), parts, self._adam_of_autoencoder
        )
        return [pretrain, Phase("joint", self.epochs, tuple(objective.terms), whole, self._adam)]

    def _adam_of_autoencoder(self, network: "SelfExpressiveAutoencoder") -> torch.optim.Optimizer:
        return torch.optim.Adam(network.autoencoder.parameters(), lr=self.pretrain_learning_rate, fused=True)

    def _adam(self, network: "SelfExpressiveAutoencoder") -> torch.optim.Optimizer:
        rate = self.learning_rate
        if isinstance(rate, str):
            rate = 1e-3 if self.encoder == "conv" else 1e-4
        return torch.optim.Adam(network.parameters(), lr=rate, fused=True)

    def _step(self, rows: RowReader, phase: Phase, t: int) -> "DSCNetBatch":
        return DSCNetBatch(self.network_, rows[phase.batches[t]].to(self.device_), "self_expression" in phase.terms)

    def _finish(self, training: Training, rows: RowReader) -> None:
        C = keep_largest(self.network_.C.detach(), self.mass_kept)
        A = low_rank_affinity(C, self.subspace_dim * self.n_clusters_ + 1, self.power)
        self.labels_ = spectral_labels(A.cpu(), self.n_clusters_, self.n_init, self.seed_)

    # ---- use -----------------------------------------------------------------------------------------------

    def transform(self, X: RowsInput) -> np.ndarray:
        """The representation Z: the codes of the autoencoder.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to transform.

        Returns
        -------
        ndarray of float32, shape (n, d)
        """
        rows = self._new_rows(X)
        self.network_.eval()
        with torch.inference_mode():
            parts = [self.network_.autoencoder.encode(part.to(self.device_)) for part in rows.chunks()]
        return torch.cat(parts).cpu().numpy()

    @property
    def coefficients_(self) -> np.ndarray:
        """C, n x n for the training rows: column j expresses row j."""
        check_is_fitted(self)
        return self.network_.C.detach().cpu().numpy()

    def _takes_images(self, array: np.ndarray) -> bool:
        return self.encoder == "conv"

    @property
    def _n_features_out(self) -> int:
        with torch.inference_mode():
            return self.network_.autoencoder.encode(self._sample().to(self.device_)).shape[1]

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # the network computes in float32
        return tags


class SelfExpressiveAutoencoder(nn.Module):
    """An autoencoder, and the coefficients of all pairs of rows."""

    def __init__(self, autoencoder: Autoencoder, n_rows: int):
        super().__init__()
        self.autoencoder = autoencoder
        self.C = nn.Parameter(torch.full((n_rows, n_rows), 1e-4))


class DSCNetBatch:
    """Rows, their codes, and the codes as the others express them; decoded from the latter if `expressed`."""

    def __init__(self, network: SelfExpressiveAutoencoder, X: Tensor, expressed: bool):
        self.network, self.X, self.expressed = network, X, expressed

    @cached_property
    def Z(self) -> Rows:
        return self.network.autoencoder.encode(self.X)

    @cached_property
    def Z_expressed(self) -> Rows:
        return (self.Z.T @ self.network.C).T  # not C'Z: its gradient would be a transposed N x N matrix

    @cached_property
    def X_hat(self) -> Tensor:
        return self.network.autoencoder.decode(self.Z_expressed if self.expressed else self.Z)
