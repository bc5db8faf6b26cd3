"""Self-expressive deep subspace clustering without an anti-collapse term: what PRO-DSC repairs."""

from prodsc.losses import Objective
from prodsc.methods.pro_dsc import PRODSC
from prodsc.training import Step


class SEDSC(PRODSC):
    """PRO-DSC without L1, so without warm-up too. Its representation collapses; kept to show and to compare."""

    def _objective(self) -> Objective[Step]:
        terms = super()._objective().terms.values()
        return Objective(*(term for term in terms if term.name not in ("coding_rate", "nuclear_spread")))
