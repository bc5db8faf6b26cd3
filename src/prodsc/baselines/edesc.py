"""EDESC: an autoencoder, and a basis of its code space for every cluster."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.utils import Tags
from torch import Tensor, nn

from prodsc.core import losses
from prodsc.core.graph import kmeans
from prodsc.core.linalg import largest_eigenvectors
from prodsc.core.losses import Objective, Term
from prodsc.estimators.capabilities import Capability
from prodsc.estimators.sklearn_types import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from prodsc.estimators.soft import SoftClusterer
from prodsc.nn import Autoencoder, mlp_autoencoder
from prodsc.random import Stream
from prodsc.sources.rows import RowReader
from prodsc.sources.source import RowsInput
from prodsc.training import Batches, Phase, Training
from prodsc.types import Rows

LEAST_PRETRAIN_STEPS = 1000  # where 50 epochs have fewer: bases of codes that are not learned yet mix the classes


class EDESC(ClassNamePrefixFeaturesOutMixin, TransformerMixin, SoftClusterer):
    """Efficient deep embedded subspace clustering (EDESC, CVPR 2022).

    An autoencoder with codes z of k r dimensions, r = subspace_dim, and bases D_j of r columns each:

        MSE(X, X_hat) + kl_weight KL(T || S) + orthogonality (||D'D * I - I|| + ||D'D outside the blocks||)

        s_ij = (|z_i'D_j|^2 + smoothing r) / ((smoothing + 1) r),   t_ij = s_ij^2 / sum_i s_ij,   rows scaled to sum 1

    The label of a row is the largest s. See docs/methods/edesc.md.
    """

    capabilities = SoftClusterer.capabilities | {Capability.TRANSFORM}

    departures = (
        "one scale for all columns; layers of 256, 256, 512 instead of 500, 500, 1000; joint phase in batches "
        "of 2,048 with rate 1e-4 instead of all rows with 1e-3; labels after the last step"
    )

    network_: "BasesAutoencoder"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        hidden_sizes: Sequence[int] = (256, 256, 512),
        subspace_dim: int = 5,
        scaling: str = "global",
        smoothing: float = 5.0,
        kl_weight: float = 0.1,
        orthogonality: float = 1e-3,
        pretrain_epochs: int | str = "auto",
        pretrain_batch_size: int = 256,
        pretrain_learning_rate: float = 1e-3,
        batch_size: int = 2048,
        steps: int = 200,
        learning_rate: float = 1e-4,
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.hidden_sizes = hidden_sizes
        self.subspace_dim = subspace_dim
        self.scaling = scaling
        self.smoothing = smoothing
        self.kl_weight = kl_weight
        self.orthogonality = orthogonality
        self.pretrain_epochs = pretrain_epochs
        self.pretrain_batch_size = pretrain_batch_size
        self.pretrain_learning_rate = pretrain_learning_rate
        self.batch_size = batch_size
        self.steps = steps
        self.learning_rate = learning_rate
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # ---- the pieces of a fit -------------------------------------------------------------------------------

    def _network(self, sample: Tensor) -> "BasesAutoencoder":
        generator = torch.Generator().manual_seed(self.seed_)
        d = self.subspace_dim * self.n_clusters_
        return BasesAutoencoder(mlp_autoencoder([sample.shape[1], *self.hidden_sizes, d], generator), d)

    def _prepare(self, rows: RowReader) -> None:
        self._training_rows = rows

    def _objective(self) -> Objective["EDESCBatch"]:
        k = self.n_clusters_
        return Objective(
            Term("reconstruction", 1.0, lambda s: losses.mean_square(s.X, s.X_hat)),
            Term("divergence", self.kl_weight, lambda s: losses.divergence(losses.sharpened_target(s.S), s.S)),
            Term("unit_columns", self.orthogonality, lambda s: losses.unit_columns(s.network.D)),
            Term("overlap", self.orthogonality, lambda s: losses.overlap(s.network.D, k)),
        )

    def _phases(self, objective: Objective[Any], n_rows: int) -> list[Phase]:
        first = Batches(n_rows, self.pretrain_batch_size, (self.seed_, Stream.FIRST_PHASE))
        then = Batches(n_rows, self.batch_size, (self.seed_, Stream.SECOND_PHASE))
        epochs = self.pretrain_epochs
        if isinstance(epochs, str):
            epochs = max(50, -(-LEAST_PRETRAIN_STEPS // first.per_epoch))
        pretrain = Phase("pre-train", epochs * first.per_epoch, ("reconstruction",), first, self._adam_of_autoencoder)
        return [pretrain, Phase("joint", self.steps, tuple(objective.terms), then, self._adam, self._start_bases)]

    def _adam_of_autoencoder(self, network: "BasesAutoencoder") -> torch.optim.Optimizer:
        return torch.optim.Adam(network.autoencoder.parameters(), lr=self.pretrain_learning_rate, fused=True)

    def _adam(self, network: "BasesAutoencoder") -> torch.optim.Optimizer:
        return torch.optim.Adam(network.parameters(), lr=self.learning_rate, fused=True)

    def _start_bases(self, network: "BasesAutoencoder") -> None:
        """D_j: the leading directions of the codes in cluster j of k-means."""
        Z = self._codes(self._training_rows)
        centres, _ = kmeans(Z.cpu().numpy(), self.n_clusters_, self.n_init, self.seed_)
        labels = torch.cdist(Z, torch.from_numpy(centres).to(Z)).argmin(1)
        parts = [Z[labels == j] for j in range(self.n_clusters_)]
        blocks = [largest_eigenvectors(part.T @ part, self.subspace_dim)[1] for part in parts]
        network.D.data = torch.cat(blocks, dim=1).to(Z)

    def _step(self, rows: RowReader, phase: Phase, t: int) -> "EDESCBatch":
        return EDESCBatch(self, rows[phase.batches[t]].to(self.device_))

    def _finish(self, training: Training, rows: RowReader) -> None:
        del self._training_rows
        super()._finish(training, rows)

    def _probabilities(self, X: Tensor) -> Tensor:
        return EDESCBatch(self, X).S

    def _logits(self) -> nn.Module:
        return LogMembership(self.network_, self.n_clusters_, self.smoothing)

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
        return self._codes(self._new_rows(X)).cpu().numpy()

    def _codes(self, rows: RowReader) -> Rows:
        self.network_.eval()
        with torch.no_grad():
            return torch.cat([self.network_.autoencoder.encode(X.to(self.device_)) for X in rows.chunks()])

    @property
    def _n_features_out(self) -> int:
        return self.subspace_dim * self.n_clusters_

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # the network computes in float32
        return tags


class BasesAutoencoder(nn.Module):
    """An autoencoder, and the bases of all clusters as blocks of columns."""

    def __init__(self, autoencoder: Autoencoder, d: int):
        super().__init__()
        self.autoencoder = autoencoder
        self.D = nn.Parameter(torch.eye(d))


class LogMembership(nn.Module):
    """Rows to the logarithm of their membership in the subspace of each cluster."""

    def __init__(self, network: BasesAutoencoder, k: int, smoothing: float):
        super().__init__()
        self.network, self.k, self.smoothing = network, k, smoothing

    def forward(self, X: Tensor) -> Tensor:
        Z = self.network.autoencoder.encode(X)
        return losses.basis_affinity(Z, self.network.D, self.k, self.smoothing).log()


class EDESCBatch:
    """Rows, their codes, and the membership of these in the subspace of each cluster."""

    def __init__(self, model: EDESC, X: Tensor):
        self.model, self.network, self.X = model, model.network_, X

    @cached_property
    def Z(self) -> Rows:
        return self.network.autoencoder.encode(self.X)

    @cached_property
    def X_hat(self) -> Tensor:
        return self.network.autoencoder.decode(self.Z)

    @cached_property
    def S(self) -> Rows:
        return losses.basis_affinity(self.Z, self.network.D, self.model.n_clusters_, self.model.smoothing)
