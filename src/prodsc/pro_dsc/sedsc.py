"""Self-expressive deep subspace clustering without an anti-collapse term: what PRO-DSC repairs."""

from prodsc.pro_dsc.config import Config, resolve_config
from prodsc.pro_dsc.estimator import PRODSC


class SEDSC(PRODSC):
    """PRO-DSC without the anti-collapse term, and so without warm-up, as published.

    Its representation collapses; it is here to show that and to compare. Takes the parameters of PRODSC; those of the
    anti-collapse term, of neighbour views and of the weights to keep have no effect.
    """

    def _resolve_config(self, shape: tuple[int, ...], constrained: bool = False) -> Config:
        params = self.flat_params() | {"anti_collapse": "none", "n_neighbors": 0, "keep_weights": "last"}
        params["scaling"] = self.scaling_
        # Keeping the best weights would hide the collapse.
        return resolve_config(params, shape, self.n_clusters_, self.auto_rules, constrained=constrained)
