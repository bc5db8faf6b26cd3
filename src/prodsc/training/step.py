"""The values of one batch, each computed when a term first needs it."""

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

    With several processes the network gets the share of the batch of this process. Z and Y are gathered, so that every
    term sees the whole batch.

    Parameters
    ----------
    network : Network
    X : Tensor of shape (m, ...)
        Input rows of this process.
    express : callable
        Makes coefficients and affinity from Y.
    rows : ndarray of shape (n,), optional
        Row numbers of the whole batch in the data.
    H : Tensor of shape (m, d), optional
        Features of this process, if the encoder is frozen.
    R : Tensor of shape (n, n), optional
        Known pairs of the batch: 1 together, -1 apart, 0 unknown.
    near : Tensor of shape (m, ...), optional
        Rows (or their features, if the encoder is frozen) that Y comes from instead, see pro_dsc/neighbour_sampler.py.
    targets : Tensor of int, shape (n,), optional
        Labels of the whole batch that the label head learns.
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
        targets: Tensor | None = None,
    ):
        self.network, self._X, self._express, self.rows, self._H, self.R = network, X, express, rows, H, R
        self._near, self._targets = near, targets
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

    @cached_property
    def Z_near(self) -> Rows:
        return ranks.gather(self.network.z(self._H_near), self.n)

    @cached_property
    def outputs(self) -> Rows:
        return ranks.gather(self.network.outputs(self.H), self.n)

    @cached_property
    def outputs_near(self) -> Rows:
        return ranks.gather(self.network.outputs(self._H_near), self.n)

    @property
    def targets(self) -> Tensor:
        assert self._targets is not None  # only a start from a walk has them
        return self._targets

    @cached_property
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
