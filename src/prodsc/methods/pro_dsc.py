"""PRO-DSC as a scikit-learn estimator: a thin class over network, terms, loop and graph."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from torch import Tensor, nn

from prodsc.data.matrix import Rows
from prodsc.graph import CoefficientKernel, GramKernel, Kernel, spectral_partition
from prodsc.losses import Objective, RememberedBlockDiagonal
from prodsc.methods import model_file
from prodsc.methods.building import build_network, build_objective, build_phases, expressed, used_gamma
from prodsc.methods.deep import DeepClusterer
from prodsc.nn import Network, used_dtype
from prodsc.training import Callback, Phase, Step, Training
from prodsc.training.guard import CollapseGuard


class PRODSC(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DeepClusterer):
    """Deep subspace clustering that keeps its representation from collapsing (PRO-DSC, ICLR 2025).

    Learns unit rows Z in a union of orthogonal subspaces, and coefficients C by which the rows express each
    other, by minimising over batches

        -1/2 logdet(I + alpha Z'Z) + gamma/2 ||Z - ZC||^2 / n + beta * r(C)

    then clusters the affinity spectrally. Labels are never needed. The parameters are described by
    `prodsc fit --help` and in docs/parameters.md.

    Attributes
    ----------
    labels_ : array of int, the cluster of each training row; cluster 0 is the largest.
    history_ : dict of columns, one row per training step.
    gamma_ : the weight of self-expression at the end of training (`on_collapse="adjust"` may have lowered it).
    n_features_in_, feature_names_in_ : as in scikit-learn.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        encoder: str | nn.Module = "mlp",
        hidden_size: int = 512,
        head_hidden_size: int | None = None,
        n_components: int = 128,
        channels: Sequence[int] = (10, 20, 30),
        kernel_sizes: Sequence[int] = (5, 3, 3),
        pretrain_epochs: int = 500,
        pretrain_batch_size: int = 100,
        pretrain_learning_rate: float = 1e-3,
        scaling: str = "unit",
        eta: float = 0.15,
        normaliser: str = "softmax",
        half_steps: int = 5,
        coefficient_form: str = "symmetric",
        gamma: float | str = "auto",
        beta: float = 200.0,
        eps: float = 0.1,
        anti_collapse: str = "coding-rate",
        regulariser: str = "block-diagonal",
        regulariser_k: int | None = None,
        batch_size: int = 1024,
        epochs: int | str = "auto",
        warmup_steps: int = 50,
        start: str = "warm-up",
        eigensolver: str = "exact",
        learning_rate: float = 1e-3,
        learning_rate_encoder: float | None = None,
        learning_rate_h: float | None = None,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        weight_decay_h: float = 5e-3,
        on_collapse: str = "warn",
        label_affinity: str = "gram",
        max_landmarks: int = 4096,
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        precision: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.encoder = encoder
        self.hidden_size = hidden_size
        self.head_hidden_size = head_hidden_size
        self.n_components = n_components
        self.channels = channels
        self.kernel_sizes = kernel_sizes
        self.pretrain_epochs = pretrain_epochs
        self.pretrain_batch_size = pretrain_batch_size
        self.pretrain_learning_rate = pretrain_learning_rate
        self.scaling = scaling
        self.eta = eta
        self.normaliser = normaliser
        self.half_steps = half_steps
        self.coefficient_form = coefficient_form
        self.gamma = gamma
        self.beta = beta
        self.eps = eps
        self.anti_collapse = anti_collapse
        self.regulariser = regulariser
        self.regulariser_k = regulariser_k
        self.batch_size = batch_size
        self.epochs = epochs
        self.warmup_steps = warmup_steps
        self.start = start
        self.eigensolver = eigensolver
        self.learning_rate = learning_rate
        self.learning_rate_encoder = learning_rate_encoder
        self.learning_rate_h = learning_rate_h
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.weight_decay_h = weight_decay_h
        self.on_collapse = on_collapse
        self.label_affinity = label_affinity
        self.max_landmarks = max_landmarks
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.precision = precision
        self.verbose = verbose

    # ---- the pieces of a fit -------------------------------------------------------------------------------

    def _network(self, sample: Tensor) -> Network:
        network = build_network(self, sample, self.seed_)
        network.dtype = used_dtype(self.precision, self.device_)
        return network

    def _prepare(self, rows: Rows) -> None:
        if self.batch_size <= self.n_clusters < len(rows):
            warnings.warn(
                f"batch_size={self.batch_size} is not larger than n_clusters={self.n_clusters}, so no batch can show "
                "all clusters. Use a batch_size of several times n_clusters.",
                UserWarning,
                stacklevel=4,
            )
        self.gamma_ = used_gamma(self, min(len(rows), self.batch_size))
        self._training_rows = rows  # of this fit; `_finish` lets go of them
        self._frozen: Tensor | None = None
        if self.eigensolver == "remembered":
            memory = RememberedBlockDiagonal(len(rows), min(self.regulariser_k or self.n_clusters, len(rows)))
            self.network_.memory = memory.to(self.device_)

    def _objective(self) -> Objective[Step]:
        """The list of terms that makes the method."""
        return build_objective(self, self.gamma_)

    def _phases(self, objective: Objective[Step], n_rows: int) -> list[Phase]:
        return build_phases(self, objective, n_rows, self.seed_)

    def _step(self, rows: Rows, phase: Phase, t: int) -> Step:
        batch = phase.batches[t]
        H = None
        if self.start == "whitened" and phase.name == "joint":  # then the encoder is frozen: one pass is enough
            if self._frozen is None:
                self._frozen = self._encoded(rows)
            H = self._frozen[torch.from_numpy(batch)]
        X = rows[batch].to(self.device_) if H is None else H
        return Step(self.network_, X, lambda Y: expressed(self, Y), batch, H)

    def _listeners(self) -> list[Callback]:
        return [CollapseGuard(self.on_collapse, self.eps)]  # type: ignore[arg-type]

    def _finish(self, training: Training, rows: Rows) -> None:
        self.gamma_ = training.objective.weights["self_expression"]
        del self._training_rows, self._frozen
        self.network_.memory = None
        self._label(rows)

    def _label(self, rows: Rows) -> None:
        """Cluster the landmarks, then give every row the label that `predict` would give it."""
        _, Y = self._outputs(rows)
        landmarks = Y
        if len(Y) > self.max_landmarks:
            chosen = np.random.default_rng((self.seed_, 3)).choice(len(Y), self.max_landmarks, replace=False)
            landmarks = Y[torch.from_numpy(np.sort(chosen))]
        partition = spectral_partition(self._kernel(landmarks), self.n_clusters, self.n_init, self.seed_)
        self.partition_, self.labels_ = partition.ordered(partition.labels(Y))

    def _kernel(self, landmarks: Tensor) -> Kernel:
        if self.label_affinity == "gram":
            return GramKernel(landmarks)
        return CoefficientKernel(landmarks, self.eta, 1 if self.normaliser == "softmax" else self.half_steps)

    # ---- use -----------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each row, whatever the other rows of the call are."""
        Y = self._y(X)
        return self.partition_.labels(Y)

    def predict_proba(self, X: Any) -> np.ndarray:
        """n x k: how sure each label is, largest where `predict` puts the row."""
        Y = self._y(X)
        return self.partition_.probabilities(Y)

    def transform(self, X: Any) -> np.ndarray:
        """Z: unit rows, each cluster near a subspace of its own."""
        return self._outputs(self._new_rows(X))[0].cpu().numpy()

    def affinity(self, X: Any) -> np.ndarray:
        """The n x n affinity that spectral clustering would see for these rows (by `label_affinity`)."""
        Y = self._y(X)
        return self._kernel(Y).matrix().cpu().numpy()

    def coefficients(self, X: Any) -> np.ndarray:
        """C, n x n: column j expresses row j by the others."""
        return expressed(self, self._y(X)).C.cpu().numpy()

    def _y(self, X: Any) -> Tensor:
        return self._outputs(self._new_rows(X))[1]

    def _outputs(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Z and Y of all rows, in evaluation mode: batch normalisation then treats each row on its own."""
        self.network_.eval()
        parts = []
        with torch.inference_mode():
            for X in rows.chunks():
                H = self.network_.encode(X.to(self.device_))
                parts.append((self.network_.z(H), self.network_.y(H)))
        return torch.cat([Z for Z, _ in parts]), torch.cat([Y for _, Y in parts])

    def _encoded(self, rows: Rows) -> Tensor:
        """H of all rows, for an encoder that does not change any more."""
        with torch.no_grad():
            return torch.cat([self.network_.encode(X.to(self.device_)) for X in rows.chunks()])

    def _takes_images(self, array: np.ndarray) -> bool:
        return self.encoder == "conv" or (isinstance(self.encoder, nn.Module) and array.ndim > 2)

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = super()._state()
        of_partition, about_partition = model_file.partition_state(self.partition_)
        return tensors | of_partition, facts | about_partition | {"gamma": self.gamma_}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.gamma_ = facts["gamma"]
        self.partition_ = model_file.restore_partition(self._kernel, tensors, facts, self.device_)

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # the network computes in float32
        return tags
