"""Known labels and pairs of landmarks, as constraints on their affinity."""

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from prodsc.types import Affinity


@dataclass(frozen=True)
class LandmarkConstraints:
    """Known labels and pairs of the landmarks.

    Parameters
    ----------
    R : Tensor of shape (m, m)
        1 for two landmarks that belong together, -1 for two that do not, 0 where nothing is known.
    labels : ndarray of shape (m,)
        Codes from 0, -1 where the label is not known.
    """

    R: Tensor
    labels: np.ndarray

    def apply(self, W: Affinity) -> Affinity:
        """W with the largest affinity for pairs that belong together, and 0 for pairs that do not."""
        return W.masked_fill(self.R > 0, W.amax()).masked_fill(self.R < 0, 0.0)
