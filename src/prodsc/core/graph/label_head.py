"""Clusters by the outputs of a network, one for each cluster, in the place of a spectral partition."""

from dataclasses import dataclass, replace

import numpy as np
import torch
from scipy.optimize import brentq
from torch import Tensor

from prodsc.core.graph.kernels import Kernel
from prodsc.core.graph.spectral import largest_first
from prodsc.types import Rows


@dataclass(frozen=True)
class HeadPartition:
    """The cluster of a row is its largest output.

    Parameters
    ----------
    kernel : Kernel
        Affinities with some training rows, for what is shown of a fit; labels do not need it.
    order : Tensor of int, shape (k,)
        Outputs in the order of the clusters, the largest cluster first.
    temperature : float
        Of the softmax that gives probabilities.
    """

    kernel: Kernel
    order: Tensor
    temperature: float

    def labels(self, outputs: Rows) -> np.ndarray:
        """The largest output of each row."""
        return outputs[:, self.order].argmax(1).cpu().numpy()

    def probabilities(self, outputs: Rows) -> np.ndarray:
        """Softmax of the outputs, n x k; largest at the label."""
        return self._softmax(outputs).cpu().numpy()

    def labels_and_confidence(self, outputs: Rows) -> tuple[Tensor, Tensor]:
        """Labels and their probabilities."""
        return outputs[:, self.order].argmax(1).cpu(), self._softmax(outputs).amax(1).cpu()

    def ordered(self, labels: np.ndarray) -> "tuple[HeadPartition, np.ndarray]":
        """The same clusters, the largest first, and the labels numbered so (`largest_first`)."""
        order, renamed = largest_first(labels, len(self.order))
        return replace(self, order=self.order[torch.from_numpy(order).to(self.order.device)]), renamed

    def _softmax(self, outputs: Rows) -> Tensor:
        return torch.softmax(outputs[:, self.order].double() / self.temperature, dim=1)


def calibrated_temperature(outputs: Rows, agreement: float, max_temperature: float = 1e6) -> float:
    """The temperature, at least 1, at which the mean confidence is no higher than `agreement`.

    Parameters
    ----------
    outputs : Tensor of shape (n, k)
    agreement : float
        Share of rows whose cluster is found again (`replicated_share`).
    max_temperature : float
        Beyond it all clusters are equally probable.

    Returns
    -------
    float
    """

    def excess(log_temperature: float) -> float:
        confidence = torch.softmax(outputs.double() / np.exp(log_temperature), dim=1).amax(1)
        return float(confidence.mean()) - agreement

    end = float(np.log(max_temperature))
    if excess(0.0) <= 0:
        return 1.0
    return float(np.exp(brentq(excess, 0.0, end, xtol=1e-6))) if excess(end) < 0 else max_temperature
