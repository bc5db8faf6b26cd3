"""Self-expressive deep subspace clustering without an anti-collapse term: what PRO-DSC repairs."""

from torch import Tensor

from prodsc.core.losses import Objective
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.sources.rows import RowReader
from prodsc.training import Callback, Phase, Step


class SEDSC(PRODSC):
    """PRO-DSC without L1, so without warm-up too. Its representation collapses; kept to show and to compare."""

    def _listeners(self) -> list[Callback]:
        guard, *_ = super()._listeners()
        return [guard]  # keeping the best state would hide the collapse

    def _near(self, rows: RowReader, phase: Phase, t: int, X: Tensor) -> Tensor | None:
        return None  # it is here as published

    def _objective(self) -> Objective[Step]:
        terms = super()._objective().terms.values()
        return Objective(*(term for term in terms if term.name not in ("coding_rate", "nuclear_spread")))
