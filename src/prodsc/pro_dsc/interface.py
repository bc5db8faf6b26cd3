"""What an estimator with a labeller offers to its user: labels of new rows, representation, affinity, files."""

import copy
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from prodsc.core.graph import HeadPartition, Partition
from prodsc.errors import ModelFileError
from prodsc.estimators import model_file
from prodsc.estimators.base import Clusterer
from prodsc.estimators.sklearn_types import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from prodsc.estimators.soft import LabelNetwork
from prodsc.nn import Network
from prodsc.pro_dsc.building import self_expression_of
from prodsc.pro_dsc.config import Config
from prodsc.pro_dsc.labeller import Labeller, RowLabels, make_kernel, mark_noise
from prodsc.sources.rows import RowReader, Scale
from prodsc.sources.source import RowsInput


class LabellerInterface(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Clusterer):
    """Methods of an estimator that has a `labeller_`. PRO-DSC and CPP share them."""

    labeller_: Labeller
    history_: dict[str, np.ndarray]
    confidence_: np.ndarray
    outlier_score_: np.ndarray

    @property
    def config_(self) -> Config:
        """The configuration of the fit."""
        return self.labeller_.config

    @property
    def probabilities_(self) -> np.ndarray:
        """The confidence of each training row in its label, 0 for noise, as HDBSCAN has it."""
        return np.where(self.labels_ < 0, 0.0, self.confidence_)

    @property
    def network_(self) -> Network:
        """The trained network."""
        return self.labeller_.network

    @property
    def partition_(self) -> Partition | HeadPartition:
        """The spectral clustering (landmarks, eigenvectors and centres), or the clusters of a label head."""
        return self.labeller_.partition

    def _set_labels(self, labeller: Labeller, row_labels: RowLabels) -> None:
        self.labeller_ = labeller
        self.labels_, self._clusters_ = row_labels.labels, row_labels.clusters
        self._strays_ = row_labels.strays
        self.confidence_ = row_labels.confidence
        self.outlier_score_ = row_labels.outlier_score

    def _new_rows(self, X: RowsInput) -> RowReader:
        check_is_fitted(self)
        return self._reader(self._check_rows(X, learn=False), self.config_.flat_images)

    def predict(self, X: RowsInput) -> np.ndarray:
        """Label rows; the label of a row does not depend on the other rows.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to label.

        Returns
        -------
        ndarray of int, shape (n,)
            The cluster of each row; -1 for noise if the model was fitted with `noise`.
        """
        rows = self._new_rows(X)
        with_noise = bool(np.isfinite(self.labeller_.threshold))
        parts = [*self.labeller_.label(rows, with_noise)]
        clusters = np.concatenate([part[0] for part in parts])
        if not with_noise:
            return clusters
        return mark_noise(clusters, np.concatenate([part[2] for part in parts]), self.labeller_.threshold)

    def nearest_clusters(self, X: RowsInput) -> np.ndarray:
        """The cluster of each row, noise or not; without noise it is what `predict` gives.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to label.

        Returns
        -------
        ndarray of int, shape (n,)
        """
        return np.concatenate([part[0] for part in self.labeller_.label(self._new_rows(X))])

    def predict_proba(self, X: RowsInput) -> np.ndarray:
        """Probability of each cluster for each row.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to label.

        Returns
        -------
        ndarray of float, shape (n, n_clusters)
            Rows sum to 1 and are largest where `predict` puts the row.
        """
        rows = self._new_rows(X)
        return self.labeller_.probabilities(rows)

    def outlier_score(self, X: RowsInput, *, raw: bool = False) -> np.ndarray:
        """How strange each row is among the training rows.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to score.
        raw : bool
            Give the strangeness itself, which also orders rows that are stranger than all training rows.

        Returns
        -------
        ndarray of float, shape (n,)
            The share of training rows that are less strange.
        """
        rows = self._new_rows(X)
        outliers = self.labeller_.outliers
        if outliers is None:
            raise ModelFileError("this model was saved before rows had these outlier scores. Fit it again.")
        parts = self.labeller_.label(rows, with_outliers=True)
        strangeness = np.concatenate([part[2] for part in parts])
        return strangeness if raw else outliers.scores(strangeness)

    def labelled(self, X: RowsInput, *, with_outliers: bool = True) -> Iterator[tuple[np.ndarray, ...]]:
        """Labels of more rows than memory can hold, a part at a time.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to label.
        with_outliers : bool
            Whether to score outliers too, which takes several times as long as the labels.

        Yields
        ------
        tuple of arrays
            Labels, their confidence and the outlier scores.
        """
        rows = self._new_rows(X)
        outliers = self.labeller_.outliers if with_outliers else None
        for labels, confidence, *strangeness in self.labeller_.label(rows, outliers is not None):
            for part in strangeness:
                labels = mark_noise(labels, part, self.labeller_.threshold)
            yield labels, confidence, *(outliers.scores(part) for part in strangeness if outliers is not None)

    def transform(self, X: RowsInput) -> np.ndarray:
        """The representation Z of rows.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to transform.

        Returns
        -------
        ndarray of float32, shape (n, n_components)
            Unit rows; each cluster is close to a subspace of its own.
        """
        rows = self._new_rows(X)
        return self.labeller_.Z(rows).cpu().numpy()

    def affinity(self, X: RowsInput) -> np.ndarray:
        """The affinity that spectral clustering would use for these rows.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            The rows.

        Returns
        -------
        ndarray of float, shape (n, n)
        """
        rows = self._new_rows(X)
        return make_kernel(self.config_, self.labeller_.Y(rows)).matrix().cpu().numpy()

    def coefficients(self, X: RowsInput) -> np.ndarray:
        """The self-expressive coefficients C of rows.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            The rows.

        Returns
        -------
        ndarray of float, shape (n, n)
            Column j expresses row j by the others.
        """
        rows = self._new_rows(X)
        return self_expression_of(self.config_, self.labeller_.Y(rows)).C.cpu().numpy()

    @property
    def labels_by_network(self) -> bool:
        """Whether a head of the network gives the labels, as after a start from a walk."""
        return hasattr(self, "labeller_") and self.config_.from_walk

    def label_network(self) -> nn.Module:
        """The network that labels rows, from rows as `predict` takes them to logits; on the CPU, in evaluation mode."""
        check_is_fitted(self)
        if not isinstance(self.partition_, HeadPartition):
            return super().label_network()
        scale = Scale(self.scaling_, self.centre_, self.spread_)  # type: ignore[arg-type]
        logits = LabelHead(copy.deepcopy(self.network_), self.partition_.temperature)
        network = LabelNetwork(scale, logits, self.partition_.order.tolist())
        return network.cpu().eval().requires_grad_(False)

    # ---- files ---------------------------------------------------------------------------------------------------

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = model_file.training_state(self.network_, self.history_)
        of_partition, about_partition = model_file.partition_state(self.partition_)
        of_outliers = model_file.outlier_state(self.labeller_.outliers)
        tensors |= of_partition | of_outliers | {"clusters": torch.from_numpy(self.clusters_)}
        threshold = self.labeller_.threshold
        return tensors, facts | about_partition | {"noise_threshold": threshold if np.isfinite(threshold) else None}

    def _restore_labeller(
        self, network: Network, config: Config, tensors: dict[str, Tensor], facts: dict[str, Any]
    ) -> None:
        network.load_state_dict(model_file.under("network", tensors))
        network.to(self.device_).eval()
        restore = model_file.restore_head_partition if config.from_walk else model_file.restore_partition
        partition = restore(lambda Y: make_kernel(config, Y), tensors, facts, self.device_)
        outliers = model_file.restore_outliers(tensors, self.device_)
        self.history_ = model_file.restore_history(tensors, facts)
        threshold = facts.get("noise_threshold")
        limit = np.inf if threshold is None or outliers is None else float(threshold)
        self.labeller_ = Labeller(network, config, self.device_, partition, outliers, limit)
        if "clusters" in tensors:
            self._clusters_ = tensors["clusters"].numpy()

    @property
    def _n_features_out(self) -> int:
        return self.config_.n_components

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # the network computes in float32
        return tags


class LabelHead(nn.Module):
    """Scaled rows to logits, divided by the temperature of the probabilities.

    Parameters
    ----------
    network : Network
    temperature : float
    """

    def __init__(self, network: Network, temperature: float):
        super().__init__()
        self.network, self.temperature = network, temperature

    def forward(self, X: Tensor) -> Tensor:
        """n x k."""
        return self.network.outputs(self.network.encode(X.flatten(1))) / self.temperature
