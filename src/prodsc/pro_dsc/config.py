"""The configuration of one fit: all parameters of PRO-DSC with a value in place of every "auto"."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from torch import nn

from prodsc.choices import CoefficientForm, Normaliser, OnCollapse
from prodsc.pro_dsc.defaults import AUTO, AUTO_RULES, AutoRules, resolve_auto


@dataclass(frozen=True)
class Config:
    """What a fit does, independent of the estimator: `trainer` and `labeller` read nothing else.

    The fields are the flat parameters of PRODSC; their meaning is in `estimators.parameters`.
    """

    n_clusters: int
    scaling: str  # of the rows
    noise: float | str | None
    # network
    encoder: str | nn.Module
    n_components: int
    hidden_size: int
    head_hidden_size: int | None
    channels: tuple[int, ...]
    kernel_sizes: tuple[int, ...]
    precision: str
    # loss
    gamma: float
    beta: float
    eta: float | None  # None until training has the whitened features that it depends on
    eps: float
    normaliser: Normaliser
    half_steps: int
    coefficient_form: CoefficientForm
    anti_collapse: str
    regulariser: str
    regulariser_k: int | None
    eigensolver: str
    on_collapse: OnCollapse
    # training
    batch_size: int
    epochs: int
    start: str
    warmup_steps: int
    n_neighbors: int
    keep_weights: str
    learning_rate: float
    learning_rate_encoder: float | None
    learning_rate_h: float | None
    momentum: float
    weight_decay: float
    weight_decay_h: float
    pretrain_epochs: int
    pretrain_batch_size: int
    pretrain_learning_rate: float
    # labels
    label_affinity: str
    power: float
    max_landmarks: int
    n_init: int
    compile: str = "off"
    automatic: frozenset[str] = frozenset()  # parameters that were "auto"
    rules: AutoRules = AUTO_RULES  # by which they got their values

    @property
    def flat_images(self) -> bool:
        """Whether the network sees images as vectors."""
        return isinstance(self.encoder, str) and self.encoder == "mlp"

    @property
    def whitened(self) -> bool:
        return self.start == "whitened"

    @property
    def from_walk(self) -> bool:
        """Whether the fit starts from a walk, so that a head of the network gives the labels."""
        return self.start == "walk"

    @property
    def resolved_params(self) -> dict[str, Any]:
        """The value of each parameter that was "auto", except gamma."""
        return {name: getattr(self, name) for name in sorted(self.automatic - {"gamma"})}


def resolve_config(
    params: Mapping[str, Any],
    shape: tuple[int, ...],
    n_clusters: int,
    rules: AutoRules = AUTO_RULES,
    *,
    constrained: bool = False,
) -> Config:
    """Find a value for every parameter that is "auto".

    Parameters
    ----------
    params : mapping
        Parameters by their flat names, as `Clusterer.flat_params` gives them.
    shape : tuple of int
        Shape of the data.
    n_clusters : int
        Number of clusters, given or estimated.
    rules : AutoRules
        The numbers behind "auto".
    constrained : bool
        Whether labels or pairs are known.

    Returns
    -------
    Config
    """
    return make_config(
        params, resolve_auto(params, shape, n_clusters, rules, constrained=constrained), n_clusters, rules
    )


def make_config(
    params: Mapping[str, Any], resolved: Mapping[str, Any], n_clusters: int, rules: AutoRules = AUTO_RULES
) -> Config:
    """A configuration from parameters and the values of those that were "auto"."""
    values = {**params, **resolved, "n_clusters": n_clusters}
    names = {field.name for field in fields(Config)} - {"automatic", "rules"}
    known = {name: value for name, value in values.items() if name in names}
    known |= {name: tuple(known[name]) for name in ("channels", "kernel_sizes")}
    if isinstance(known["eta"], str):
        assert known["eta"] == AUTO
        known["eta"] = None
    return Config(**known, automatic=frozenset(resolved), rules=rules)
