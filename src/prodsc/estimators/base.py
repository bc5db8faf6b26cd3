"""The contract of every method: its parameters and rows are checked, it has a seed and a device, it can be saved."""

import copy
import inspect
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils import Tags, check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data
from torch import Tensor, nn

from prodsc import ranks
from prodsc.errors import InputError, ParameterError
from prodsc.estimators import model_file
from prodsc.estimators.capabilities import Capability, can, method_of, require_capability
from prodsc.estimators.fit_tasks import FitTasks
from prodsc.estimators.naming import DescribedClusters
from prodsc.estimators.parameters import (
    as_options,
    check_parameters,
    current_names,
    defaults_of,
    document_parameters,
    flatten,
    unflatten,
)
from prodsc.estimators.scaling import AUTO, ResolvedScaling, resolve_scaling
from prodsc.estimators.sklearn_types import BaseEstimator, CallbackSupportMixin, ClusterMixin, with_callbacks
from prodsc.sources.checks import Summary, check_values
from prodsc.sources.limits import check_memory
from prodsc.sources.remarks import remarks_on
from prodsc.sources.rows import RowReader, as_array, check_shape, column_names, column_scale, opened_unless_plain
from prodsc.sources.source import RowsInput, Source
from prodsc.sources.sparse_rows import SparseRows
from prodsc.system import usable_device
from prodsc.training import Callback

ROWS_AT_ONCE = 2**16  # rows labelled together, on each rank


class Clusterer(CallbackSupportMixin, DescribedClusters, ClusterMixin, BaseEstimator):
    """Base of all methods.

    A method gives `__init__` (which only assigns), `_fit` (which sets `labels_` and what else it learns) and, to be
    saved, `_state` and `_restore`. Every method has the parameters `n_clusters`, `scaling`, `random_state`, `device`
    and `verbose`; the rule of each parameter is in `estimators.parameters`, which also writes the docstrings. What a
    method can do beyond `fit` is declared in `capabilities`.
    """

    capabilities: ClassVar[frozenset[Capability]] = frozenset()
    departures: ClassVar[str] = ""  # how the defaults differ from the authors' settings; tables print it
    option_groups: ClassVar[dict[str, type]] = {}  # constructor arguments that are option objects

    n_clusters: int | str  # as it was given; `n_clusters_` is the number
    scaling: str
    random_state: Any
    device: str
    verbose: int
    seed_: int  # what `random_state` gave this fit
    device_: torch.device
    n_features_in_: int
    feature_names_in_: np.ndarray  # only if the fitted rows had column names
    n_clusters_: int  # the number of clusters of a fit, given or estimated
    scaling_: str  # the scaling of a fit, given or chosen
    scaling_reason_: str  # why it was chosen; empty if it was given
    remarks_: list[str]  # what is unusual about the rows of the fit
    labels_: np.ndarray  # the cluster of each training row; cluster 0 is the largest

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "n_clusters" in inspect.signature(cls).parameters:  # not a base class that only methods derive from
            document_parameters(cls)

    @classmethod
    def from_flat(cls, n_clusters: int | str | None = None, **parameters: Any) -> Self:
        """An estimator from parameters by their flat names, as recipes, saved models and the command line have them.

        Parameters
        ----------
        n_clusters : int, 'auto' or None
            Number of clusters; None for the default of the method.
        **parameters
            Any parameter of the method, including the fields of its option objects (`beta=200`).

        Returns
        -------
        Clusterer
            The estimator, not fitted.
        """
        given = {} if n_clusters is None else {"n_clusters": n_clusters}
        return cls(**unflatten(cls, {**given, **current_names(parameters, cls.__name__)}))

    def flat_params(self) -> dict[str, Any]:
        """All parameters by their flat names: the fields of option objects stand beside the others."""
        return flatten(type(self), self.get_params(deep=False))

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Parameters by name; `deep` adds the fields of option objects as `loss__beta`.

        Parameters
        ----------
        deep : bool
            Whether to add the fields of option objects.

        Returns
        -------
        dict
        """
        params: dict[str, Any] = super().get_params(deep=False)
        for group, cls in self.option_groups.items() if deep else ():
            with suppress(ParameterError):  # `fit` reports what is wrong with an option object
                options = as_options(cls, params[group], group)
                params |= {f"{group}__{field.name}": getattr(options, field.name) for field in fields(options)}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; `loss__beta=100` sets a field of an option object.

        Parameters
        ----------
        **params
            Values by name, as `get_params` gives them.

        Returns
        -------
        self
        """
        nested = {name: value for name, value in params.items() if name.partition("__")[0] in self.option_groups}
        nested = {name: value for name, value in nested.items() if "__" in name}
        super().set_params(**{name: value for name, value in params.items() if name not in nested})
        for name, value in nested.items():
            group, _, field_name = name.partition("__")
            options = as_options(self.option_groups[group], getattr(self, group), group)
            setattr(self, group, as_options(type(options), {**vars(options), field_name: value}, group))
        return self

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    # ---- fit -----------------------------------------------------------------------------------------------------

    def fit(
        self, X: RowsInput, y: Any = None, *, callbacks: Sequence[Callback] = (), checkpoint: str | Path | None = None
    ) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            The rows to cluster.
        y : ignored
            Present because scikit-learn's interface has it.
        callbacks : sequence of Callback
            Called during training, by methods that train.
        checkpoint : path or None
            Where the state of training is saved every few seconds and on Ctrl-C. A fit that finds the file continues
            from it to the same labels.

        Returns
        -------
        self
        """
        return self._fit_copy(X, y, callbacks, checkpoint)

    @with_callbacks
    def _fit_copy(
        self, X: RowsInput, y: Any, callbacks: Sequence[Callback], checkpoint: str | Path | None, **constraints: Any
    ) -> Self:
        """Fit a copy without fitted attributes and take over what it learned.

        So a fit never depends on an earlier one, and one that fails or is interrupted changes nothing.
        """
        self._check_parameters()
        if ranks.size() > 1 and not can(self, Capability.RANKS):
            raise ParameterError(f"{type(self).__name__} fits in one process only; start it without torchrun.")
        tasks = FitTasks.of(self, X, y)
        attempt = self._unfitted_copy()
        array = attempt._check_rows(X, learn=True)
        seed = torch.tensor(check_random_state(self.random_state).randint(2**31 - 1))
        ranks.broadcast(seed)  # random_state=None draws another one in every process
        attempt.seed_ = int(seed)
        attempt.device_ = attempt._choose_device()
        rows = attempt._reader(array)
        attempt.n_clusters_ = attempt._choose_n_clusters(rows)
        heard = callbacks if tasks is None else [*callbacks, tasks]
        attempt._fit(rows, heard, None if checkpoint is None else Path(checkpoint), **constraints)
        attempt._describe(rows, attempt._column_names())
        self.__dict__ = attempt.__dict__
        if tasks is not None:
            tasks.end()
        return self

    def _unfitted_copy(self) -> Self:
        fresh = copy.copy(self)
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(fresh, name)
        return fresh

    @property
    def clusters_(self) -> np.ndarray:
        """The cluster of each training row, noise or not; `labels_` has -1 for noise."""
        return np.asarray(self.__dict__.get("_clusters_", self.labels_))

    @property
    def labels_by_network(self) -> bool:
        """Whether `label_network` gives one output for each cluster, which an ONNX file can hold."""
        return False

    def label_network(self) -> nn.Module:
        """The network that labels rows, for methods whose `labels_by_network` is True.

        Returns
        -------
        torch.nn.Module
            On the CPU, in evaluation mode: rows as `predict` takes them, of shape (n, d), to logits of shape
            (n, n_clusters) whose largest is at the label.
        """
        raise ParameterError(
            f"{type(self).__name__} does not label rows by a network with one output for each cluster."
        )

    def _choose_n_clusters(self, rows: RowReader) -> int:
        """k of this fit; a method that takes n_clusters="auto" overrides this."""
        return int(self.n_clusters)

    def _fit(self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        """Set `labels_` and what else the method learns."""
        raise NotImplementedError

    def fit_predict(self, X: RowsInput, y: Any = None, **fit_params: Any) -> np.ndarray:
        """Fit, and return the labels of the rows.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            The rows to cluster.
        y : ignored
            Present because scikit-learn's interface has it.
        **fit_params
            Further arguments of `fit`.

        Returns
        -------
        ndarray of int, shape (n,)
        """
        return self.fit(X, **fit_params).labels_

    def check(self, X: RowsInput) -> None:
        """Raise what `fit(X)` would raise or warn about for these parameters and rows, without training.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            The rows to cluster.
        """
        self._check_parameters()
        self._unfitted_copy()._check_rows(X, learn=True, strict=True)

    def labelled(self, X: RowsInput, *, with_outliers: bool = True) -> Iterator[tuple[np.ndarray, ...]]:
        """Labels of more rows than memory can hold, a part at a time.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to label.
        with_outliers : bool
            Whether to score outliers too, where the method can.

        Yields
        ------
        tuple of arrays
            Labels and, where the method gives probabilities, the confidence of each label.
        """
        require_capability(self, Capability.PREDICT, "predict")
        array = as_array(X, columns=self._column_names())
        for start in range(0, len(array), ROWS_AT_ONCE):
            part = Source("X", array[start : start + ROWS_AT_ONCE], columns=self._column_names())
            if can(self, Capability.PROBABILITIES):
                proba = method_of(self, Capability.PROBABILITIES)(part)
                yield proba.argmax(1), proba.max(1)
            else:
                yield (method_of(self, Capability.PREDICT)(part),)

    def _check_parameters(self) -> None:
        name_of_class, flat = type(self).__name__, self.flat_params()
        check_parameters(type(self), flat, name_of_class)
        self._choose_device()  # raises if there is no such device
        defaults = defaults_of(type(self))
        for name, value in flat.items():
            if name == "n_clusters" and can(self, Capability.K_CURVE):
                continue
            always = name in ("device", "precision", "noise")  # where "auto" is a value as any other
            if isinstance(value, str) and value == "auto" != defaults[name] and not always:
                way_out = " Estimate one with `prodsc k FILE` or prodsc.estimate_k(X)." if name == "n_clusters" else ""
                raise ParameterError(
                    f"{name_of_class}: {name} must have a value, got 'auto', which this method does not support."
                    f"{way_out}"
                )

    # ---- files ---------------------------------------------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write model.safetensors and model.json into a folder.

        Parameters
        ----------
        path : path
            The folder; it is made if it does not exist.
        """
        check_is_fitted(self)
        model_file.save(self, Path(path))

    @classmethod
    def load(cls, path: str | Path, *, encoder: nn.Module | None = None) -> Self:
        """Read a model that `save` wrote.

        Parameters
        ----------
        path : path
            The folder.
        encoder : torch.nn.Module or None
            The encoder of your own that the model was fitted with, if it was.

        Returns
        -------
        Clusterer
            The fitted estimator.
        """
        return model_file.load(cls, Path(path), encoder)

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """Tensors and plain values that a saved model needs beside its parameters and labels."""
        return {}, {}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        """Put back what `_state` gave."""

    # ---- the rows ------------------------------------------------------------------------------------------------

    def _new_rows(self, X: RowsInput) -> RowReader:
        """Rows for a fitted model to work on."""
        check_is_fitted(self)
        return self._reader(self._check_rows(X, learn=False))

    def _takes_images(self, array: Any) -> bool:
        return False

    def _column_names(self) -> list[str] | None:
        names = getattr(self, "feature_names_in_", None)
        return None if names is None else [*names]

    def _check_rows(self, X: RowsInput, learn: bool, strict: bool = False) -> Any:
        """X as an array of finite numbers of the right shape; `learn` also takes over its columns and scale."""
        X = opened_unless_plain(X)
        is_frame = hasattr(X, "columns") and not isinstance(X, Source)
        array = as_array(X, columns=None if learn or is_frame else self._column_names())
        check_shape(array, self._takes_images(array))
        if isinstance(array, SparseRows) and not can(self, Capability.RANKS):  # it takes all rows at once
            check_memory(4 * int(np.prod(array.shape, dtype=object)), "X is sparse; as the dense float32 rows that "
                         f"{type(self).__name__} needs, it")  # fmt: skip
        self._check_columns(X, array, learn, is_frame)
        least = 2 if isinstance(self.n_clusters, str) else max(2, self.n_clusters)
        if learn and len(array) < least:
            raise InputError(
                f"X has {len(array)} rows (n_samples={len(array)}), fewer than n_clusters={self.n_clusters} or fewer "
                "than 2. Lower n_clusters or give more rows."
            )
        summary = check_values(array, columns=learn, names=column_names(X))
        if learn:
            chosen = self._choose_scaling(summary, array.shape)
            self.scaling_, self.scaling_reason_ = chosen.scaling, chosen.reason
        if summary.n_zero and array.ndim == 2 and self.scaling_ == "unit":
            self._report_zero_rows(summary, strict)
        if learn:
            self._learn_columns(array, summary)
            k = None if isinstance(self.n_clusters, str) else self.n_clusters
            self.remarks_ = remarks_on(array, column_names(X), k, from_file=isinstance(X, Source))
        elif (tuple(array.shape[1:]) if array.ndim > 2 else None) != self.image_shape_:
            raise InputError(f"X has rows of shape {array.shape[1:]}, the model was fitted on {self.image_shape_}.")
        return array

    def _choose_scaling(self, summary: Summary, shape: tuple[int, ...]) -> ResolvedScaling:
        if self.scaling == AUTO:
            return resolve_scaling(summary, shape)
        return ResolvedScaling(self.scaling, "")  # type: ignore[arg-type]

    def _check_columns(self, X: RowsInput, array: Any, learn: bool, is_frame: bool) -> None:
        """Number and names of the columns: those of a file are matched by name, those of a frame must also be in the
        order of the fit, as in all of scikit-learn, and an array has no names to check."""
        n_features = int(np.prod(array.shape[1:]))
        if learn or is_frame:
            shape_only = np.broadcast_to(np.float32(), (len(array), n_features))
            try:
                validate_data(self, X if is_frame else shape_only, reset=learn, skip_check_array=True)
            except ValueError as error:
                raise InputError(str(error)) from error
        elif n_features != self.n_features_in_:
            name = type(self).__name__
            raise InputError(
                f"X has {n_features} features, but {name} is expecting {self.n_features_in_} features as input."
            )
        if learn and not is_frame and array.ndim == 2 and (names := column_names(X)) is not None:
            self.feature_names_in_ = np.array(names, dtype=object)

    def _report_zero_rows(self, summary: Summary, strict: bool) -> None:
        """Rows of zeros cannot have unit length: an error where `strict`, else (as scikit-learn asks) a warning."""
        rows = f"{summary.n_zero} {'row' if summary.n_zero == 1 else 'rows'} of zeros only"
        sentence = (
            f"X has {rows} (first: row {summary.first_zero}), which cannot be scaled to unit length. "
            "Drop them, or use scaling='standard'."
        )
        if strict:
            raise InputError(sentence)
        warnings.warn(sentence, UserWarning, stacklevel=6)

    def _learn_columns(self, array: Any, summary: Summary) -> None:
        if summary.n_constant == summary.mean.size and len(array) > 1:
            raise InputError(
                f"all {summary.n_constant} columns of X are constant: the {len(array)} rows are identical, so "
                "there is nothing to cluster. Give columns that differ between rows."
            )
        self._report_lost_spread(summary)
        self.n_constant_features_ = summary.n_constant
        self.image_shape_ = tuple(array.shape[1:]) if array.ndim > 2 else None
        self.centre_, self.spread_ = column_scale(summary)

    def _report_lost_spread(self, summary: Summary, most: float = 2.0**12) -> None:
        """Warn if a scaling that subtracts no mean makes all rows almost the same; float32 has 24 bits."""
        largest = np.abs(summary.mean).max() or 1.0  # squares of the numbers themselves could overflow
        with np.errstate(divide="ignore", under="ignore"):
            ratio = np.linalg.norm(summary.mean / largest) / np.linalg.norm(summary.std / largest)
        if self.scaling_ in ("unit", "none", "raw") and ratio > most:
            sentence = (
                f"the mean of the columns of X is {ratio:,.0f} times as large as their spread, so that rows are almost "
                f"the same under scaling='{self.scaling_}'. Use scaling='standard'."
            )
            warnings.warn(sentence, UserWarning, stacklevel=7)

    def _reader(self, array: Any, flat: bool = False) -> RowReader:
        """The rows as the method sees them: scaled; images as vectors if `flat`."""
        return RowReader(array, self.scaling_, self.centre_, self.spread_, flat)  # type: ignore[arg-type]

    def _sample(self, flat: bool = False) -> Tensor:
        """Two rows of the fitted shape, to build a network around."""
        shape = self.image_shape_ or (self.n_features_in_,)
        return self._reader(np.ones((2, *shape)), flat)[slice(0, 2)]

    def _choose_device(self) -> torch.device:
        if self.device != "auto":
            return usable_device(self.device)
        if not torch.cuda.is_available():
            return torch.device("cpu")
        return ranks.local_device() if ranks.size() > 1 else torch.device("cuda")
