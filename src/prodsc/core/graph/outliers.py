"""Outlier scores: how badly a row is expressed by rows of the training data."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from prodsc.choices import CoefficientForm
from prodsc.core.graph.kernels import CoefficientKernel
from prodsc.core.graph.nystroem import chunks
from prodsc.random import Stream, sorted_subset
from prodsc.types import Rows

GRID = np.linspace(0, 1, 1001)


@dataclass(frozen=True)
class OutlierModel:
    """Rows of the training data that express any other row.

    Parameters
    ----------
    kernel : CoefficientKernel
        Coefficients of any row; its landmarks are these rows.
    Z : Tensor of shape (m, d)
        Representation of the landmarks.
    form : {"symmetric", "directed"}
        Form of the coefficients.
    quantiles : ndarray of shape (1001,)
        Quantiles of the residual among training rows (`residual_quantiles`); empty before they are known.
    """

    kernel: CoefficientKernel
    Z: Rows
    form: CoefficientForm
    quantiles: np.ndarray

    def residuals(self, Y: Rows, Z: Rows) -> Tensor:
        """||z - sum_j c_j z_j|| of each row, with coefficients c as if the row were one more landmark."""
        pairs = zip(chunks(Y), chunks(Z), strict=True)
        return torch.cat([(z - self.kernel.coefficients(y, self.form) @ self.Z).norm(dim=1) for y, z in pairs])

    def scores(self, residuals: np.ndarray) -> np.ndarray:
        """The share of training rows with a smaller residual, from 0 to 1."""
        return np.interp(residuals, self.quantiles, GRID)


def sample_dictionary(n: int, seed: int, size: int = 1024) -> Tensor:
    """Numbers of the landmarks that express other rows, ascending.

    Parameters
    ----------
    n : int
        Number of landmarks.
    seed : int
    size : int
        Number of landmarks to draw; by default a batch of the published runs. If there are fewer, all are taken.

    Returns
    -------
    Tensor of shape (min(n, size),)
    """
    return torch.from_numpy(sorted_subset(n, size, seed, Stream.OUTLIER_DICTIONARY))


def residual_quantiles(residuals: np.ndarray) -> np.ndarray:
    """Quantiles of the residuals of training rows, as `OutlierModel` needs them."""
    return np.quantile(residuals, GRID)
