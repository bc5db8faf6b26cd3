"""The options of PRO-DSC that few users change, in four groups: loss, training, network and labels.

Each is a field of one frozen object, checked by the table in `estimators.parameters`. Recipes, saved models and the
command line use the same names without the groups (`beta = 200`, `--beta 200`); `PRODSC.from_flat` takes them so.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from prodsc.estimators.parameters import document_parameters

Auto = str  # the word "auto": `pro_dsc.config` finds a value from the data


@document_parameters
@dataclass(frozen=True)
class LossOptions:
    """Terms of the loss and the form of the coefficients C."""

    beta: float = 200.0
    eta: float | Auto = "auto"
    eps: float = 0.1
    normaliser: str = "softmax"
    half_steps: int = 5
    coefficient_form: str = "symmetric"
    anti_collapse: str = "coding-rate"
    regulariser: str = "block-diagonal"
    regulariser_k: int | None = None
    eigensolver: str = "auto"


@document_parameters
@dataclass(frozen=True)
class TrainingOptions:
    """Schedule and optimiser."""

    start: str = "auto"
    warmup_steps: int | Auto = "auto"
    n_neighbors: int | Auto = "auto"
    keep_weights: str = "auto"
    learning_rate: float | Auto = "auto"
    learning_rate_encoder: float | None = None
    learning_rate_h: float | None = None
    momentum: float = 0.9
    weight_decay: float = 1e-4
    weight_decay_h: float = 5e-3
    pretrain_epochs: int | Auto = "auto"
    pretrain_batch_size: int = 100
    pretrain_learning_rate: float = 1e-3


@document_parameters
@dataclass(frozen=True)
class NetworkOptions:
    """Sizes and precision of the network."""

    hidden_size: int | Auto = "auto"
    head_hidden_size: int | None = None
    channels: Sequence[int] = (10, 20, 30)
    kernel_sizes: Sequence[int] = (5, 3, 3)
    precision: str = "auto"
    compile: str = "off"

    def __post_init__(self) -> None:
        for name in ("channels", "kernel_sizes"):  # a list, as files have it, is the same as a tuple
            value = getattr(self, name)
            object.__setattr__(self, name, tuple(value) if isinstance(value, list) else value)


@document_parameters
@dataclass(frozen=True)
class LabelOptions:
    """The spectral clustering that gives the labels."""

    label_affinity: str = "auto"
    power: float | Auto = "auto"
    max_landmarks: int | Auto = "auto"
    n_init: int = 10


OPTION_GROUPS = {
    "loss": LossOptions,
    "training": TrainingOptions,
    "network": NetworkOptions,
    "labels": LabelOptions,
}
