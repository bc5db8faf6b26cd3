"""What one batch becomes. Values are computed when a term asks for them, so no phase pays for what it does not use."""

from collections.abc import Callable
from functools import cached_property

from torch import Tensor

from prodsc.nn import Network
from prodsc.selfexpression import SelfExpression
from prodsc.types import Affinity, Rows, Square


class Step:
    """X -> H -> Z, Y -> C, A of one batch."""

    def __init__(self, network: Network, X: Tensor, express: Callable[[Rows], SelfExpression]):
        self.network, self.X, self._express = network, X, express

    @cached_property
    def H(self) -> Rows:
        return self.network.encode(self.X)

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
        assert self.network.decoder is not None  # only a phase on reconstruction asks, and only with a decoder
        return self.network.decoder(self.H)
