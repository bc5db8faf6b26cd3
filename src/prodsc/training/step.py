"""What one batch becomes. Values are computed when a term asks for them, so no phase pays for what it does not use."""

from collections.abc import Callable
from functools import cached_property

import numpy as np
from torch import Tensor

from prodsc import ranks
from prodsc.core.self_expression import SelfExpression
from prodsc.nn import Network
from prodsc.types import Affinity, Rows, Square


class Step:
    """X -> H -> Z, Y -> C, A of one batch.

    On several ranks the network sees this rank's share of the batch, and Z and Y are gathered as they are made: every
    term is a term of the whole batch.
    """

    def __init__(
        self,
        network: Network,
        X: Tensor,
        express: Callable[[Rows], SelfExpression],
        rows: np.ndarray | None = None,
        H: Rows | None = None,
        R: Tensor | None = None,
        near: Tensor | None = None,
    ):
        """X, and H where the encoder is frozen, are this rank's share; `rows`, the numbers of its rows in the data, are
        those of the whole batch. R is what is known of its pairs (`Links.matrix`). `near` are other rows (or their H)
        that Y comes from (pro_dsc/neighbour_sampler.py)."""
        self.network, self._X, self._express, self.rows, self._H, self.R = network, X, express, rows, H, R
        self._near = near
        self.n = len(X) if rows is None else len(rows)

    @cached_property
    def X(self) -> Tensor:
        return ranks.gather(self._X, self.n)

    @cached_property
    def H(self) -> Rows:
        return self.network.encode(self._X) if self._H is None else self._H

    @cached_property
    def Z(self) -> Rows:
        return ranks.gather(self.network.z(self.H), self.n)

    @cached_property
    def Y(self) -> Rows:
        return ranks.gather(self.network.y(self._H_near), self.n)

    @property
    def _H_near(self) -> Rows:
        if self._near is None:
            return self.H
        return self.network.encode(self._near) if self._H is None else self._near

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
        return ranks.gather(self.network.reconstruct(self._X), self.n)
