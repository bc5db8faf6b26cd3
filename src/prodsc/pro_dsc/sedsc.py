"""Self-expressive deep subspace clustering without an anti-collapse term: what PRO-DSC repairs."""

from dataclasses import replace

from prodsc.pro_dsc.config import Config
from prodsc.pro_dsc.estimator import PRODSC


class SEDSC(PRODSC):
    """PRO-DSC without the anti-collapse term, and so without warm-up, as published.

    Its representation collapses; it is here to show that and to compare. Takes the parameters of PRODSC; those of the
    anti-collapse term, of neighbour views and of the weights to keep have no effect.
    """

    def _resolve_config(self, shape: tuple[int, ...]) -> Config:
        # Keeping the best weights would hide the collapse.
        return replace(super()._resolve_config(shape), anti_collapse="none", n_neighbors=0, keep_weights="last")
