"""How badly a row is expressed by rows of the training data: the self-expressive residual of each row on its own."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from prodsc.core.graph.kernels import CoefficientKernel
from prodsc.core.graph.nystroem import chunks
from prodsc.core.self_expression import CoefficientForm
from prodsc.random import Stream, sorted_subset
from prodsc.types import Rows

EXPRESSING = 1024  # landmarks that express a row, a batch of the published runs
GRID = np.linspace(0, 1, 1001)


@dataclass(frozen=True)
class Expression:
    """Rows of the training data that express any other row."""

    kernel: CoefficientKernel
    Z: Rows  # of the kernel's landmarks
    form: CoefficientForm
    quantiles: np.ndarray  # of the residual among training rows, at GRID; none before they are known

    def residuals(self, Y: Rows, Z: Rows) -> Tensor:
        """||z - sum_j c_j z_j|| of each row, c as in training with the row as one more landmark."""
        pairs = zip(chunks(Y), chunks(Z), strict=True)
        return torch.cat([(z - self.kernel.coefficients(y, self.form) @ self.Z).norm(dim=1) for y, z in pairs])

    def scores(self, residuals: np.ndarray) -> np.ndarray:
        """The share of training rows with a smaller residual: 0 for the best expressed, 1 for none that is worse."""
        return np.interp(residuals, self.quantiles, GRID)


def expressing(n: int, seed: int) -> Tensor:
    """Which of n landmarks express: all, or EXPRESSING of them drawn at random, ascending."""
    return torch.from_numpy(sorted_subset(n, EXPRESSING, seed, Stream.OUTLIER_DICTIONARY))


def quantiles(residuals: np.ndarray) -> np.ndarray:
    return np.quantile(residuals, GRID)
