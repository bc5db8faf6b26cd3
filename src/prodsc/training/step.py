"""What one batch becomes. Values are computed when a term asks for them, so no phase pays for what it does not use."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from torch import Tensor

from prodsc.nn import Network
from prodsc.selfexpression import SelfExpression
from prodsc.types import Affinity, Rows, Square


class Step:
    """X -> H -> Z, Y -> C, A of one batch."""

    def __init__(
        self,
        network: Network,
        X: Tensor,
        express: Callable[[Rows], SelfExpression],
        rows: np.ndarray | None = None,
        H: Rows | None = None,
    ):
        """`rows` are the numbers of the batch's rows in the data; a given H is that of a frozen encoder."""
        self.network, self.X, self._express, self.rows, self._H = network, X, express, rows, H

    @cached_property
    def H(self) -> Rows:
        return self.network.encode(self.X) if self._H is None else self._H

    @cached_property
    def Z(self) -> Rows:
        return self.network.z(self.H)

    @cached_property
    def Y(self) -> Rows:
        return self.network.y(self.H)

    @cached_property
    def _expressed(self) -> SelfExpression:
        return self._express(self.Y)

    @property
    def C(self) -> Square:
        return self._expressed.C

    @property
    def A(self) -> Affinity:
        return self._expressed.A

    @cached_property
    def X_hat(self) -> Tensor:
        return self.network.reconstruct(self.X)
