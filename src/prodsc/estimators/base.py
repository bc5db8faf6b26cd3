"""What every method shares: parameters and rows that are checked, a seed, a device, files."""

import inspect
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from prodsc import ranks
from prodsc.errors import InputError, ParameterError
from prodsc.estimators import model_file
from prodsc.estimators.capabilities import Capability
from prodsc.estimators.parameters import check_parameters
from prodsc.sources.checks import check_values
from prodsc.sources.rows import RowReader, as_array, check_shape
from prodsc.training import Callback

LABELLED = 2**16  # rows labelled at a time; on several ranks, by each before they put their labels together


class Clusterer(ClusterMixin, BaseEstimator):
    """The contract. A method gives `__init__` (assign only), `_fit`, and, to be saved, `_state` and `_restore`.

    Every method has the parameters `n_clusters`, `scaling`, `random_state`, `device` and `verbose`; each of its
    parameters has its rule in `parameters.py`. A method that generalises also has `predict`, one that learns a
    representation `transform`.
    """

    n_clusters: int | str  # as it was given; `n_clusters_` is the number
    scaling: str
    random_state: Any
    device: str
    verbose: int
    capabilities: ClassVar[frozenset[Capability]] = frozenset()  # what it can do beyond `fit` and `labels_`
    n_clusters_: int  # the number of clusters of a fit, given or estimated
    labels_: np.ndarray  # the cluster of each training row; cluster 0 is the largest

    def fit(
        self, X: Any, y: Any = None, *, callbacks: Sequence[Callback] = (), checkpoint: str | Path | None = None
    ) -> Self:
        """Cluster the rows of X; `y` is ignored.

        With a `checkpoint` path the state of training is saved there every few seconds and on Ctrl-C, and a fit that
        finds the file goes on from it to the same labels; a method without training has nothing to save.
        """
        self._check_parameters()
        if ranks.size() > 1 and Capability.RANKS not in self.capabilities:
            raise ParameterError(f"{type(self).__name__} fits in one process only; start it without torchrun.")
        array = self._checked(X, reset=True)
        seed = torch.tensor(check_random_state(self.random_state).randint(2**31 - 1))
        ranks.broadcast(seed)  # random_state=None draws another one in every process
        self.seed_ = int(seed)
        self.device_ = self._device()
        self.n_clusters_ = self._number_of_clusters(array)
        self._settle(array.shape)
        self._fit(self._rows(array), callbacks, None if checkpoint is None else Path(checkpoint))
        return self

    def _number_of_clusters(self, array: Any) -> int:
        """k of this fit; a method whose n_clusters may be "auto" overrides this."""
        return int(self.n_clusters)

    def _settle(self, shape: tuple[int, ...]) -> None:
        """Find a value for every parameter that is "auto", from the shape of the data."""

    def _fit(self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        """Set `labels_` and what else the method learns."""
        raise NotImplementedError

    def fit_predict(self, X: Any, y: Any = None, **fit_params: Any) -> np.ndarray:
        """labels_ after fit(X)."""
        return self.fit(X, **fit_params).labels_

    def labelled(self, X: Any) -> Iterator[tuple[np.ndarray, ...]]:
        """Labels and how sure they are, some rows after the other: for more rows than memory has room for."""
        array = as_array(X)
        for start in range(0, len(array), LABELLED):
            proba = self.predict_proba(array[start : start + LABELLED])
            yield proba.argmax(1), proba.max(1)

    def check(self, X: Any) -> None:
        """Raise what `fit(X)` would raise or warn of for these parameters and data, without training."""
        self._check_parameters()
        self._checked(X, reset=True, strict=True)

    def _check_parameters(self) -> None:
        check_parameters(self.get_params(deep=False), type(self).__name__)
        for name, parameter in inspect.signature(type(self)).parameters.items():
            if name == "n_clusters" and Capability.K_CURVE in self.capabilities:
                continue
            if getattr(self, name) == "auto" != parameter.default and name not in ("device", "precision"):
                way_out = " Estimate one with `prodsc k FILE` or prodsc.estimate_k(X)." if name == "n_clusters" else ""
                raise ParameterError(
                    f"{type(self).__name__}: {name} must have a value, got 'auto', which means nothing to this method."
                    f"{way_out}"
                )

    # ---- files ---------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write model.safetensors and model.json into the folder `path`."""
        check_is_fitted(self)
        model_file.save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, *, encoder: nn.Module | None = None) -> Self:
        """The model saved in the folder `path`; a model with an encoder of your own needs that module again."""
        return model_file.load(cls, Path(path), encoder)

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and plain facts that a saved model needs beside its parameters and labels."""
        return {}, {}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Put back what `_state` gave."""

    # ---- the rows ------------------------------------------------------------------------------------------

    def _new_rows(self, X: Any) -> RowReader:
        """Rows for a fitted model to work on."""
        check_is_fitted(self)
        return self._rows(self._checked(X, reset=False))

    def _takes_images(self, array: Any) -> bool:
        return False

    def _checked(self, X: Any, reset: bool, strict: bool = False) -> Any:
        """X as an array of finite numbers of the right shape; at fit (`reset`) also learns its columns."""
        array = as_array(X)
        check_shape(array, self._takes_images(array))
        try:
            flat = np.broadcast_to(
                np.float32(), (len(array), int(np.prod(array.shape[1:])))
            )  # stands for X by its shape
            names = X if hasattr(X, "columns") else flat
            validate_data(self, names, reset=reset, skip_check_array=True)
        except ValueError as error:
            raise InputError(str(error)) from error
        least = 2 if isinstance(self.n_clusters, str) else max(2, self.n_clusters)
        if reset and len(array) < least:
            raise InputError(
                f"X has {len(array)} rows (n_samples={len(array)}), fewer than n_clusters={self.n_clusters} or fewer "
                "than 2. Lower n_clusters or give more rows."
            )
        summary = check_values(array, columns=reset)
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

    @property
    def _flat(self) -> bool:
        """Are images rows of features?"""
        return False

    def _rows(self, array: Any) -> RowReader:
        return RowReader(array, self.scaling, self.centre_, self.spread_, self._flat)  # type: ignore[arg-type]

    def _sample(self) -> Tensor:
        """Two rows of the fitted shape, to build a network around."""
        return self._rows(np.ones((2, *(self.image_shape_ or (self.n_features_in_,)))))[slice(0, 2)]

    def _device(self) -> torch.device:
        if self.device != "auto":
            return torch.device(self.device)
        if not torch.cuda.is_available():
            return torch.device("cpu")
        return ranks.local_device() if ranks.size() > 1 else torch.device("cuda")
