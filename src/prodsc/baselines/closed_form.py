"""LSR and LRR: coefficients of all pairs that one singular value decomposition gives."""

import numpy as np

from prodsc.baselines.self_expressive import DenseSelfExpressive
from prodsc.core.graph.affinity import cosines
from prodsc.core.self_expression.closed_form import least_squares, low_rank
from prodsc.types import Affinity, Rows, Square


class LSR(DenseSelfExpressive):
    """Least squares regression (LSR, ECCV 2012), rows of X as points:

        min 1/2 ||C||_F^2 + gamma/2 ||X - C'X||_F^2,  diag(C) = 0

    (|C| + |C|')/2 with columns of length 1 is clustered spectrally. See docs/methods/lsr.md.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gamma: float = 100.0,
        scaling: str = "unit",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.scaling = scaling
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _coefficients(self, X: Rows) -> Square:
        return least_squares(X, self.gamma)


class LRR(DenseSelfExpressive):
    """Low-rank representation (LRR, ICML 2010) with Gaussian noise, rows of X as points:

        min ||C||_* + gamma/2 ||X - C'X||_F^2

    The cosines of the rows of C^1/2, to a power, are clustered spectrally. See docs/methods/lrr.md.
    """

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        gamma: float = 10.0,
        power: float = 2.0,
        scaling: str = "unit",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.gamma = gamma
        self.power = power
        self.scaling = scaling
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _coefficients(self, X: Rows) -> Square:
        return low_rank(X, self.gamma)

    def _affinity(self, C: Square) -> Affinity:
        return cosines(C) ** self.power
