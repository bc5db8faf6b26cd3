"""PRO-DSC as a scikit-learn estimator: a thin class over network, terms, loop and graph."""

import warnings
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, ClusterMixin, TransformerMixin
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from prodsc.data.fingerprint import fingerprint
from prodsc.data.matrix import Rows, as_array, check_shape, check_values
from prodsc.errors import InputError
from prodsc.graph import CoefficientKernel, GramKernel, Kernel, spectral_partition
from prodsc.losses import Objective
from prodsc.methods import model_file
from prodsc.methods.building import build_network, build_objective, build_phases, expressed, used_gamma
from prodsc.methods.parameters import check_parameters
from prodsc.training import Callback, History, Step, Training, train
from prodsc.training.checkpoint import CheckpointCallback, load_checkpoint
from prodsc.training.guard import CollapseGuard
from prodsc.training.progress import ProgressCallback


class PRODSC(ClassNamePrefixFeaturesOutMixin, TransformerMixin, ClusterMixin, BaseEstimator):
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
        learning_rate: float = 1e-3,
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
        self.learning_rate = learning_rate
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
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any = None, *, callbacks: Sequence[Callback] = (), checkpoint: str | Path | None = None
    ) -> Self:
        """Learn the representation and cluster the rows of X; `y` is ignored.

        With a `checkpoint` path the state is saved there every few seconds and on Ctrl-C, and a fit that finds the
        file goes on from it to the same labels.
        """
        check_parameters(self.get_params(deep=False), type(self).__name__)
        array = self._checked(X, reset=True)
        self.seed_ = int(check_random_state(self.random_state).randint(2**31 - 1))
        saved = None
        if checkpoint is not None and Path(checkpoint).exists():
            saved = load_checkpoint(Path(checkpoint))
            self.seed_ = saved.about["seed"]  # random_state=None drew another one just now
        if self.batch_size <= self.n_clusters < len(array):
            warnings.warn(
                f"batch_size={self.batch_size} is not larger than n_clusters={self.n_clusters}, so no batch can show "
                "all clusters. Use a batch_size of several times n_clusters.",
                UserWarning,
                stacklevel=2,
            )
        rows = self._rows(array)
        self.device_ = self._device()
        self.network_ = build_network(self, rows[slice(0, 100)], self.seed_).to(self.device_)
        self.gamma_ = used_gamma(self, min(len(rows), self.batch_size))
        objective = self._objective()
        phases = build_phases(self, objective, len(rows), self.seed_)
        training = Training(self.network_, objective, phases, History([*objective.terms]))
        with ExitStack() as stack:
            guard = CollapseGuard(self.on_collapse, self.eps)  # type: ignore[arg-type]
            listening: list[Callback] = [guard, *callbacks]
            if self.verbose:
                listening.append(stack.enter_context(ProgressCallback()))
            if checkpoint is not None:
                about = {
                    "parameters": model_file.plain_parameters(self),
                    "seed": self.seed_,
                    "data": fingerprint(array),
                }
                if saved is not None:
                    saved.check_same(about, Path(checkpoint))
                    training.phase, training.step = saved.phase, saved.step
                listening.append(stack.enter_context(CheckpointCallback(Path(checkpoint), about)))
            train(
                training,
                lambda phase, t: Step(
                    self.network_, rows[phase.batches[t]].to(self.device_), lambda Y: expressed(self, Y)
                ),
                listening,
                restore=saved.restore if saved is not None else None,
            )
        self.history_ = training.history.columns()
        self.gamma_ = objective.weights["self_expression"]
        training.batch = None
        self._label(rows)
        return self

    def check(self, X: Any) -> None:
        """Raise what `fit(X)` would raise or warn of for these parameters and data, without training."""
        check_parameters(self.get_params(deep=False), type(self).__name__)
        self._checked(X, reset=True, strict=True)

    def _objective(self) -> Objective[Step]:
        """The list of terms that makes the method."""
        return build_objective(self, self.gamma_)

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

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """labels_ after fit(X)."""
        return self.fit(X, **fit_params).labels_

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
        check_is_fitted(self)
        return self._outputs(self._rows(self._checked(X, reset=False)))[0].cpu().numpy()

    def affinity(self, X: Any) -> np.ndarray:
        """The n x n affinity that spectral clustering would see for these rows (by `label_affinity`)."""
        Y = self._y(X)
        return self._kernel(Y).matrix().cpu().numpy()

    def coefficients(self, X: Any) -> np.ndarray:
        """C, n x n: column j expresses row j by the others."""
        return expressed(self, self._y(X)).C.cpu().numpy()

    def save(self, path: str | Path) -> None:
        """Write model.safetensors and model.json into the folder `path`."""
        check_is_fitted(self)
        model_file.save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, *, encoder: nn.Module | None = None) -> Self:
        """The model saved in the folder `path`; a model with an encoder of your own needs that module again."""
        return model_file.load(cls, Path(path), encoder)

    # ---- the rows ------------------------------------------------------------------------------------------

    def _y(self, X: Any) -> Tensor:
        check_is_fitted(self)
        return self._outputs(self._rows(self._checked(X, reset=False)))[1]

    def _outputs(self, rows: Rows) -> tuple[Tensor, Tensor]:
        """Z and Y of all rows, in evaluation mode: batch normalisation then treats each row on its own."""
        self.network_.eval()
        parts = []
        with torch.inference_mode():
            for X in rows.chunks():
                H = self.network_.encode(X.to(self.device_))
                parts.append((self.network_.z(H), self.network_.y(H)))
        return torch.cat([Z for Z, _ in parts]), torch.cat([Y for _, Y in parts])

    def _checked(self, X: Any, reset: bool, strict: bool = False) -> np.ndarray:
        """X as an array of finite numbers of the right shape; at fit (`reset`) also learns its columns."""
        array = as_array(X)
        images = self.encoder == "conv" or (isinstance(self.encoder, nn.Module) and array.ndim > 2)
        check_shape(array, images)
        try:
            names = X if hasattr(X, "columns") else array.reshape(len(array), -1)
            validate_data(self, names, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise InputError(str(error)) from error
        if reset and len(array) < max(2, self.n_clusters):
            raise InputError(
                f"X has {len(array)} rows (n_samples={len(array)}), fewer than n_clusters={self.n_clusters} or fewer "
                "than 2. Lower n_clusters or give more rows."
            )
        summary = check_values(array)
        if summary.n_zero and array.ndim == 2 and self.scaling == "unit":
            rows = f"{summary.n_zero} {'row' if summary.n_zero == 1 else 'rows'} of zeros only"
            sentence = (
                f"X has {rows} (first: row {summary.first_zero}), which cannot be scaled to unit length. "
                "Drop them, or use scaling='standard'."
            )
            if strict:
                raise InputError(sentence)
            warnings.warn(sentence, UserWarning, stacklevel=3)  # scikit-learn's contract has such rows
        if reset:
            if summary.n_constant == summary.mean.size and len(array) > 1:
                raise InputError(
                    f"all {summary.n_constant} columns of X are constant: the {len(array)} rows are identical, so "
                    "there is nothing to cluster. Give columns that differ between rows."
                )
            self.n_constant_features_ = summary.n_constant
            self.image_shape_ = tuple(array.shape[1:]) if array.ndim > 2 else None
            self.centre_ = torch.from_numpy(summary.mean).float()
            self.spread_ = torch.from_numpy(np.where(summary.std > 0, summary.std, 1.0)).float()
        elif (tuple(array.shape[1:]) if array.ndim > 2 else None) != self.image_shape_:
            raise InputError(f"X has rows of shape {array.shape[1:]}, the model was fitted on {self.image_shape_}.")
        return array

    def _rows(self, array: np.ndarray) -> Rows:
        return Rows(array, self.scaling, self.centre_, self.spread_)  # type: ignore[arg-type]

    def _device(self) -> torch.device:
        if self.device != "auto":
            return torch.device(self.device)
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")

    @property
    def _n_features_out(self) -> int:
        return self.n_components

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # the network computes in float32
        return tags
