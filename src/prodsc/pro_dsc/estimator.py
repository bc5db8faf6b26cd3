"""PRO-DSC as a scikit-learn estimator: resolve the parameters, train a network, fit a labeller."""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from prodsc import ranks
from prodsc.core.graph.number import KCurve
from prodsc.errors import InputError
from prodsc.estimators.capabilities import Capability
from prodsc.estimators.deep import fit_identity
from prodsc.estimators.parameters import current_names
from prodsc.estimators.scaling import AUTO, ResolvedScaling
from prodsc.pro_dsc.building import build_network
from prodsc.pro_dsc.config import Config, make_config, resolve_config
from prodsc.pro_dsc.constraints import make_constraints
from prodsc.pro_dsc.defaults import AUTO_RULES, AutoRules, is_published
from prodsc.pro_dsc.interface import LabellerInterface
from prodsc.pro_dsc.labeller import fit_labeller
from prodsc.pro_dsc.monitoring import Monitoring, make_reference, reference_state, restore_references
from prodsc.pro_dsc.number import k_of_rows
from prodsc.pro_dsc.options import OPTION_GROUPS, LabelOptions, LossOptions, NetworkOptions, TrainingOptions
from prodsc.pro_dsc.trainer import train_network
from prodsc.pro_dsc.updating import update
from prodsc.sources.checks import Summary
from prodsc.sources.rows import RowReader, as_array
from prodsc.sources.source import RowsInput
from prodsc.training import Callback
from prodsc.training.session import open_checkpoint


class PRODSC(LabellerInterface):
    """Deep subspace clustering that keeps its representation from collapsing (PRO-DSC, ICLR 2025).

    Learns unit rows Z in a union of orthogonal subspaces, and coefficients C by which the rows express each
    other, by minimising over batches

        -1/2 logdet(I + alpha Z'Z) + gamma/2 ||Z - ZC||^2 / n + beta * r(C)

    then clusters the affinity spectrally. Labels are never needed.

    Attributes
    ----------
    labels_ : ndarray of int
        The cluster of each training row; cluster 0 is the largest. -1 is noise, if `noise` is set.
    clusters_ : ndarray of int
        The same without noise: the nearest cluster of every row.
    probabilities_ : ndarray of float
        The confidence, 0 for noise.
    confidence_ : ndarray of float
        Confidence of each of these labels (after `fit`; not part of a saved model).
    outlier_score_ : ndarray of float
        `outlier_score` of the training rows (likewise).
    n_clusters_ : int
        The number of clusters, given or estimated.
    k_curve_ : KCurve or None
        How good each number of clusters is, if it was estimated.
    known_clusters_ : dict
        From cluster to the known label it stands for; empty without `known_labels`.
    resolved_params_ : dict
        The value of each parameter that was "auto" (gamma and n_clusters: `gamma_` and `n_clusters_`).
    gamma_ : float
        The weight of self-expression at the end of training; `on_collapse="adjust"` may have lowered it.
    history_ : dict of ndarray
        Columns with one row per training step.
    n_features_in_, feature_names_in_
        As in scikit-learn.

    Examples
    --------
    >>> from prodsc import PRODSC
    >>> model = PRODSC(n_clusters=10).fit(X)  # doctest: +SKIP
    >>> model.labels_, model.predict(X_new), model.transform(X_new)  # doctest: +SKIP
    """

    capabilities = frozenset(Capability)
    option_groups = OPTION_GROUPS
    auto_rules: ClassVar[AutoRules] = AUTO_RULES  # the numbers behind "auto"

    k_curve_: KCurve | None
    known_clusters_: dict[int, Any]
    gamma_: float

    def __init__(
        self,
        n_clusters: int | str = "auto",
        *,
        encoder: str | nn.Module = "auto",
        n_components: int | str = "auto",
        scaling: str = "auto",
        gamma: float | str = "auto",
        epochs: int | str = "auto",
        batch_size: int | str = "auto",
        noise: float | str | None = None,
        on_collapse: str = "warn",
        loss: LossOptions | dict[str, Any] | None = None,
        training: TrainingOptions | dict[str, Any] | None = None,
        network: NetworkOptions | dict[str, Any] | None = None,
        labels: LabelOptions | dict[str, Any] | None = None,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.encoder = encoder
        self.n_components = n_components
        self.scaling = scaling
        self.gamma = gamma
        self.epochs = epochs
        self.batch_size = batch_size
        self.noise = noise
        self.on_collapse = on_collapse
        self.loss = loss
        self.training = training
        self.network = network
        self.labels = labels
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def fit(
        self,
        X: RowsInput,
        y: Any = None,
        *,
        known_labels: Any = None,
        must_link: Any = None,
        cannot_link: Any = None,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Cluster the rows of X.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            The rows to cluster; images as n x height x width (x channels).
        y : ignored
            Present because scikit-learn's interface has it.
        known_labels : array, mapping or None
            One label for each row (-1, None or NaN where it is not known), or a mapping from row to label.
        must_link, cannot_link : pairs (i, j) of rows, or None
            Pairs that belong to one cluster, and pairs that do not.
        callbacks : sequence of Callback
            Called during training.
        checkpoint : path or None
            Where the state of training is saved every few seconds and on Ctrl-C. A fit that finds the file continues
            from it to the same labels.

        Returns
        -------
        self
        """
        constraints = {"known_labels": known_labels, "must_link": must_link, "cannot_link": cannot_link}
        return self._fit_copy(X, y, callbacks, checkpoint, **constraints)

    def check(self, X: RowsInput, *, known_labels: Any = None, must_link: Any = None, cannot_link: Any = None) -> None:
        """Raise what `fit` would raise or warn about for these parameters and rows, without training.

        Parameters
        ----------
        X, known_labels, must_link, cannot_link
            As for `fit`.
        """
        super().check(X)
        n_rows = len(as_array(X))
        most = n_rows if isinstance(self.n_clusters, str) else self.n_clusters
        make_constraints(n_rows, most, known_labels, must_link, cannot_link)

    def _fit(
        self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None, **constraints_given: Any
    ) -> None:
        constraints = make_constraints(len(rows), self.n_clusters_, **constraints_given)
        saved = open_checkpoint(checkpoint)
        if saved is not None:
            self.seed_ = saved.about["seed"]  # random_state=None drew another one just now
        config = self._resolve_config(rows.array.shape, constraints is not None)
        rows = self._reader(rows.array, config.flat_images)
        identity = {} if checkpoint is None else fit_identity(self, self.seed_, rows)
        trained = train_network(
            config,
            rows,
            seed=self.seed_,
            device=self.device_,
            constraints=constraints,
            callbacks=callbacks,
            identity=identity | ({} if constraints is None else {"links": constraints.digest()}),
            checkpoint=checkpoint,
            saved=saved,
            show_progress=bool(self.verbose),
        )
        self._set_labels(
            *fit_labeller(
                trained.network,
                trained.config,
                rows,
                seed=self.seed_,
                device=self.device_,
                constraints=constraints,
            )
        )
        self.references_ = [make_reference(self, rows)]
        self.history_ = trained.history
        self.gamma_ = trained.config.gamma
        self.known_clusters_ = {} if constraints is None else constraints.name_clusters(self.clusters_)

    def update(self, X: RowsInput, *, false_alarms: float = 0.01, reference: RowsInput | None = None) -> Monitoring:
        """Take new rows into account: add a cluster for each group of them that lies where the model has seen none.

        The network stays as it is, and at least 99 % of the rows of the fit keep their label. Clusters without new rows
        keep their number and name. When rows have changed in another way, the result is an alarm: fit again, and give
        the clusters their old numbers with `prodsc.align`.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            New rows.
        false_alarms : float
            How often a batch of rows that fit may be an alarm.
        reference : array, tensor, frame, memory map or path, optional
            Rows that are known to fit and were not part of the fit, to compare with instead of training rows.

        Returns
        -------
        Monitoring
            What `prodsc.monitor` finds in the rows; `new_clusters` are the numbers of the added clusters.
        """
        check_is_fitted(self)
        return update(self, X, false_alarms, reference)

    def _resolve_config(self, shape: tuple[int, ...], constrained: bool = False) -> Config:
        params = self.flat_params() | {"scaling": self.scaling_}
        return resolve_config(params, shape, self.n_clusters_, self.auto_rules, constrained=constrained)

    @property
    def resolved_params_(self) -> dict[str, Any]:
        """The value of each parameter that was "auto" (gamma and n_clusters: `gamma_` and `n_clusters_`)."""
        chosen = {"scaling": self.scaling_} if self.scaling_reason_ else {}
        return self.config_.resolved_params | chosen

    @property
    def settled_(self) -> dict[str, Any]:
        """The old name of `resolved_params_`."""
        warnings.warn("settled_ is now called resolved_params_; the old name will go in 0.4.", FutureWarning, 2)
        return self.resolved_params_

    def _choose_n_clusters(self, rows: RowReader) -> int:
        self.k_curve_ = None
        if not isinstance(self.n_clusters, str):
            return super()._choose_n_clusters(rows)
        self.k_curve_ = curve = k_of_rows(rows)
        if not curve.clear:
            raise InputError(
                f"n_clusters='auto': {curve.summary()} Give a number, for example "
                f"{' or '.join(map(str, curve.near[:3]))}; `prodsc k` or prodsc.estimate_k(X) shows the curve."
            )
        k = torch.tensor(curve.k)
        ranks.broadcast(k)
        return int(k)

    def _choose_scaling(self, summary: Summary, shape: tuple[int, ...]) -> ResolvedScaling:
        if self.scaling == AUTO and is_published(self.flat_params()):
            return ResolvedScaling("unit", "the published start compares directions")
        return super()._choose_scaling(summary, shape)

    def _takes_images(self, array: Any) -> bool:
        if isinstance(self.encoder, nn.Module) or self.encoder == "auto":
            return array.ndim > 2
        return self.encoder == "conv"

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = super()._state()
        tensors |= reference_state(getattr(self, "references_", []))
        return tensors, facts | {
            "gamma": self.gamma_,
            "resolved": self.resolved_params_,
            "known_clusters": sorted(self.known_clusters_.items()),
            "k_curve": None if self.k_curve_ is None else self.k_curve_.to_dict(),
        }

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # the names are ours, not the user's
            resolved = current_names(facts.get("resolved", facts.get("settled", {})), "model.json")
        params = self.flat_params() | {"scaling": self.scaling_}
        config = make_config(params, {**resolved, "gamma": facts["gamma"]}, self.n_clusters_)
        network = build_network(config, self._sample(config.flat_images), self.seed_, self.device_)
        self._restore_labeller(network, config, tensors, facts)
        self.references_ = restore_references(tensors, self.device_)
        self.gamma_ = facts["gamma"]
        self.known_clusters_ = dict(facts.get("known_clusters", []))
        curve = facts.get("k_curve")
        self.k_curve_ = None if curve is None else KCurve(**curve)
