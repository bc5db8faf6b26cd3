"""Base of the methods whose network gives each row a probability for each cluster."""

import copy
from typing import Any

import numpy as np
import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from prodsc.core.graph import largest_first
from prodsc.estimators.capabilities import Capability
from prodsc.estimators.deep import DeepClusterer
from prodsc.random import StepStream, generator
from prodsc.sources.rows import RowReader, Scale
from prodsc.sources.source import RowsInput
from prodsc.training import Callback, Phase, Training


class SoftClusterer(DeepClusterer):
    """A method gives `_logits`, a module; the label of a row is its most probable cluster."""

    capabilities = DeepClusterer.capabilities | {Capability.PREDICT, Capability.PROBABILITIES}

    order_: list[int]  # the network's clusters, the largest first

    def _logits(self) -> nn.Module:
        """The part of the network that labels: scaled rows to logits of shape (n, k)."""
        raise NotImplementedError

    def _probabilities(self, X: Tensor) -> Tensor:
        """n x k of some rows, by the network in evaluation mode."""
        return torch.softmax(self._logits()(X), dim=1)

    def _finish(self, training: Training, rows: RowReader) -> None:
        labels = self._all_probabilities(rows).argmax(1).cpu().numpy()
        order, self.labels_ = largest_first(labels, self.n_clusters_)
        self.order_ = order.tolist()

    def predict(self, X: RowsInput) -> np.ndarray:
        """The most probable cluster of each row.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to label.

        Returns
        -------
        ndarray of int, shape (n,)
        """
        return self.predict_proba(X).argmax(1)

    def predict_proba(self, X: RowsInput) -> np.ndarray:
        """The probability of each cluster for each row.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to label.

        Returns
        -------
        ndarray of float, shape (n, n_clusters)
        """
        return self._all_probabilities(self._new_rows(X))[:, self.order_].cpu().numpy()

    @property
    def labels_by_network(self) -> bool:
        """Always: a method of this kind has one output for each cluster."""
        return True

    def label_network(self) -> nn.Module:
        """The network that labels rows, from rows as `predict` takes them to logits; on the CPU, in evaluation mode."""
        check_is_fitted(self)
        scale = Scale(self.scaling_, self.centre_, self.spread_)  # type: ignore[arg-type]
        network = LabelNetwork(scale, copy.deepcopy(self._logits()), self.order_)
        return network.cpu().eval().requires_grad_(False)

    def _all_probabilities(self, rows: RowReader) -> Tensor:
        self.network_.eval()
        with torch.inference_mode():
            return torch.cat([self._probabilities(X.to(self.device_)) for X in rows.chunks()])

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = super()._state()
        return tensors, facts | {"order": self.order_}

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.order_ = facts["order"]


class LabelNetwork(nn.Module):
    """Rows as a user has them to logits: scaled, through the network, the largest cluster first.

    Parameters
    ----------
    scale : Scale
    logits : nn.Module
        Scaled rows to logits.
    order : list of int
        The network's clusters, the largest first.
    """

    order: Tensor

    def __init__(self, scale: Scale, logits: nn.Module, order: list[int]):
        super().__init__()
        self.scale, self.logits = scale, logits
        self.register_buffer("order", torch.tensor(order))

    def forward(self, X: Tensor) -> Tensor:
        """n x k."""
        return self.logits(self.scale(X).float())[:, self.order]


class HeadLosses(Callback):
    """Adds up the loss of each head over the newest epoch with a term, in the network's `losses`."""

    def __init__(self, term: str):
        self.term = term

    def on_step(self, training: Training) -> None:
        if self.term not in training.current.terms:
            return
        losses = training.network.losses
        assert isinstance(losses, Tensor)
        if (training.step - 1) % training.current.batches.per_epoch == 0:
            losses.zero_()
        losses += training.batch.by_head.detach()


def one_of(neighbours: Tensor, batch: np.ndarray, phase: Phase, t: int) -> np.ndarray:
    """For each row of a batch one of its neighbours by chance, as a function of the seed and the step alone."""
    chosen = generator(*phase.batches.seed, t, StepStream.NEIGHBOUR).integers(neighbours.shape[1], size=len(batch))
    return neighbours.numpy()[batch, chosen]


def neighbours_within(given: int | str, n_rows: int, k: int, most: int, least: int = 5) -> int:
    """The number of neighbours of a row: as given, or for "auto" half of a cluster of equal size, within bounds.

    Parameters
    ----------
    given : int or "auto"
    n_rows : int
    k : int
        Number of clusters.
    most : int
        The published number, for large data.
    least : int

    Returns
    -------
    int
    """
    return min(most, max(least, n_rows // (2 * k))) if isinstance(given, str) else given
