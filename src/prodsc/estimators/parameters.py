"""The parameters of all methods: one table that estimators check, recipes are read by, and the command line is made of.

A name means the same in every method that has it. Defaults are not here: they are the defaults of each `__init__`.
"""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np
from torch import nn

from prodsc.core.self_expression import COEFFICIENT_FORMS, NORMALISERS
from prodsc.errors import ParameterError
from prodsc.nn import PRECISIONS
from prodsc.sources.rows import SCALINGS
from prodsc.training.guard import ON_COLLAPSE

ENCODERS = ("auto", "mlp", "conv", "none")
ANTI_COLLAPSE = ("coding-rate", "nuclear", "none")
REGULARISERS = ("block-diagonal", "l1", "frobenius", "nuclear", "none")
LABEL_AFFINITIES = ("auto", "gram", "coefficients", "neighbours")
HEADS = ("separate", "shared")
CODE_GRAPHS = ("neighbours", "coefficients")
KEEPS = ("auto", "best", "settled", "last")
STARTS = ("auto", "warm-up", "whitened")
EIGENSOLVERS = ("auto", "exact", "remembered")
DEVICES = ("auto", "cpu", "cuda")


@dataclass(frozen=True)
class Parameter:
    """A name, the rule its value obeys (in words and as a test), and what it is for."""

    name: str
    rule: str
    holds: Callable[[Any], bool]
    help: str
    choices: tuple[str, ...] = ()
    kind: type = float  # what the command line reads: int, float, str
    many: bool = False  # a sequence of that kind

    def check(self, value: Any, owner: str, error: type[ParameterError] = ParameterError) -> None:
        try:
            fine = self.holds(value)
        except TypeError:
            fine = False
        if not fine:
            raise error(f"{owner}: {self.name} must be {self.rule}, got {value!r}.")


def _number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, (bool, np.bool_)) and math.isfinite(value)


def _whole(value: Any) -> bool:
    return isinstance(value, Integral) and not isinstance(value, (bool, np.bool_))


def _count(name: str, least: int, help: str, also: str | None = None) -> Parameter:
    """A whole number of at least `least`; `also` names a word that stands for a choice made by prodsc."""
    rule = f"a whole number of at least {least}" + (f" or '{also}'" if also else "")
    return Parameter(
        name, rule, lambda v: (_whole(v) and v >= least) or (also is not None and v == also), help, kind=int
    )


def _positive(name: str, help: str, also: str | None = None) -> Parameter:
    rule = "a number above 0" + (f" or '{also}'" if also else "")
    return Parameter(name, rule, lambda v: (_number(v) and v > 0) or (also is not None and v == also), help)


def _not_negative(name: str, help: str) -> Parameter:
    return Parameter(name, "a number of at least 0", lambda v: _number(v) and v >= 0, help)


def _fraction(name: str, help: str) -> Parameter:
    return Parameter(name, "a number in [0, 1)", lambda v: _number(v) and 0 <= v < 1, help)


def _share(name: str, help: str) -> Parameter:
    return Parameter(name, "a number in (0, 1]", lambda v: _number(v) and 0 < v <= 1, help)


def _optional(parameter: Parameter, meaning: str) -> Parameter:
    return Parameter(
        parameter.name,
        f"{parameter.rule}, or None ({meaning})",
        lambda v: v is None or parameter.holds(v),
        f"{parameter.help} (default: {meaning})",
        parameter.choices,
        parameter.kind,
    )


def _choice(name: str, choices: tuple[str, ...], help: str) -> Parameter:
    return Parameter(name, "one of " + ", ".join(map(repr, choices)), lambda v: v in choices, help, choices, str)


def _counts(name: str, help: str) -> Parameter:
    return Parameter(
        name,
        "a sequence of whole numbers of at least 1",
        lambda v: len(v) > 0 and all(_whole(x) and x >= 1 for x in v),
        help,
        kind=int,
        many=True,
    )


PARAMETERS = (
    _count(
        "n_clusters", 1, "number of clusters k; 'auto' (PRO-DSC only): estimated", also="auto"
    ),  # scikit-learn's contract asks for 1 to work; the CLI for 2
    Parameter(
        "encoder",
        "'auto', 'mlp', 'conv', 'none' or a torch.nn.Module",
        lambda v: isinstance(v, nn.Module) or v in ENCODERS,
        "pre-feature: mlp for feature matrices, conv (an autoencoder's) for images, none for the raw rows; auto: mlp, "
        "or conv for images of which there are at most 100 to a cluster",
        ENCODERS,
        str,
    ),
    _count("hidden_size", 1, "width of the mlp pre-feature (d_pre); auto: 512, or d if that is more", also="auto"),
    _optional(_count("head_hidden_size", 1, "width of a hidden layer inside each head"), "no hidden layer"),
    _count(
        "n_components",
        1,
        "dimension of the representation (d); auto: 128, for more clusters a power of two up to 1024, or if whitened "
        "N/5 up to 256",
        also="auto",
    ),
    _counts("channels", "channels of the conv pre-feature, one per layer"),
    _counts("kernel_sizes", "kernel sizes of the conv pre-feature, one per layer"),
    _count("pretrain_epochs", 0, "epochs of reconstruction for the conv pre-feature; auto: 300 steps", also="auto"),
    _count("pretrain_batch_size", 1, "rows in a batch of pre-training"),
    _positive("pretrain_learning_rate", "Adam's learning rate in pre-training"),
    _choice(
        "scaling",
        SCALINGS,
        "of feature rows: unit length, the same after subtracting the mean (centred), standardised columns, or none; "
        "raw: images keep 0 to 255",
    ),
    _positive(
        "eta",
        "temperature of |S|/eta: smaller is sparser; auto: 0.15, or if whitened such that n/(4k) rows express a row",
        also="auto",
    ),
    _choice("normaliser", NORMALISERS, "of |S|/eta: row softmax, or Sinkhorn with `half_steps`"),
    _count("half_steps", 1, "half-steps of the sinkhorn normaliser"),
    _choice("coefficient_form", COEFFICIENT_FORMS, "C = sign(S)*A (symmetric) or sign(S)*P (directed)"),
    _positive("gamma", "weight of self-expression; 'auto': 0.8 of what theory calls safe for any data", also="auto"),
    _not_negative("beta", "weight of the regulariser of C"),
    _positive("eps", "precision of the coding rate, alpha = d / (n eps)"),
    _choice("anti_collapse", ANTI_COLLAPSE, "term that keeps Z from collapsing"),
    _choice("regulariser", REGULARISERS, "r(C)"),
    _optional(_count("regulariser_k", 1, "k of the block-diagonal regulariser"), "n_clusters"),
    _count(
        "batch_size", 2, "rows in a batch (n); auto: 1024, for more than 128 clusters or if whitened 2048", also="auto"
    ),
    _count(
        "epochs",
        0,
        "passes over the data in the joint phase; auto: 200 + 2k steps, or if whitened 300, at most 15000/k (CPP: 250)",
        also="auto",
    ),
    _count(
        "neighbour_views",
        0,
        "nearest rows of which one may make a row's coefficients; 0: as published; auto: at most 10, or if whitened 0",
        also="auto",
    ),
    _choice(
        "keep",
        KEEPS,
        "the state in which neighbours agree best on their labels, the one after which labels hardly change (settled), "
        "or the last one, as published; auto: best, or if whitened settled",
    ),
    _count("warmup_steps", 0, "steps on the anti-collapse term alone; 0: no warm-up and no weight copy"),
    _choice(
        "start",
        STARTS,
        "of the heads: trained by warm-up, or whitened in closed form, the encoder then frozen; auto: whitened "
        "after conv",
    ),
    _choice(
        "eigensolver",
        EIGENSOLVERS,
        "of the regulariser: exact, or refined from what is remembered of each row; auto: exact, or if whitened "
        "remembered",
    ),
    _positive("learning_rate", "of the pre-feature and f; auto: 1e-3, or if whitened 1e-2", also="auto"),
    _optional(_positive("learning_rate_encoder", "of the pre-feature"), "learning_rate"),
    _optional(_positive("learning_rate_h", "of h"), "learning_rate"),
    _fraction("momentum", "of SGD"),
    _not_negative("weight_decay", "of the pre-feature and f"),
    _not_negative("weight_decay_h", "of h"),
    _choice("on_collapse", ON_COLLAPSE, "when Z collapses or gamma allows it: warn, adjust gamma, raise, or ignore"),
    _choice(
        "label_affinity",
        LABEL_AFFINITIES,
        "what is clustered: |YY'| (gram), A (coefficients), or A with an eta of its own for each row, so that 8 others "
        "count (neighbours); auto: gram, or if whitened neighbours",
    ),
    _count(
        "max_landmarks",
        2,
        "rows clustered exactly; of more, some tell the affinities of all; auto: 2048, or 40k, up to 8192 (with an "
        "affinity other than gram 4096, or 128k)",
        also="auto",
    ),
    _count("n_init", 1, "starts of k-means"),
    Parameter(
        "random_state",
        "a whole number of at least 0, None, or a numpy RandomState",
        lambda v: v is None or isinstance(v, np.random.RandomState) or (_whole(v) and v >= 0),
        "seed; the same seed gives the same labels",
        kind=int,
    ),
    Parameter(
        "device",
        "a torch device such as 'auto', 'cpu' or 'cuda:0'",
        lambda v: isinstance(v, str),
        "where to train",
        kind=str,
    ),
    _choice("precision", PRECISIONS, "of products in the network; auto: bf16 or fp16 on a GPU, float32 elsewhere"),
    _count("verbose", 0, "1 shows progress"),
    # deep baselines
    _choice("heads", HEADS, "one head for the representation and one for the memberships, or one for both"),
    _count("n_heads", 1, "heads trained side by side; the one with the lowest loss labels"),
    _count("n_neighbors", 1, "nearest neighbours of a row"),
    _choice("code_graph", CODE_GRAPHS, "of EnSC: the n_neighbors nearest codes of each, or (|C| + |C|')/2 itself"),
    _count("k_max", 1, "points that may express a point"),
    _positive("tolerance", "residual, relative to the point, at which it is expressed well enough"),
    _positive("temperature", "that logits are divided by before the softmax: smaller is surer"),
    _fraction("teacher_momentum", "of the teacher, a moving average of the student"),
    _share("exponent", "of s t in TEMI's loss"),
    _count("warmup_epochs", 0, "first epochs, in which the learning rate rises from 0"),
    _not_negative("entropy_weight", "of the term that asks for clusters of like size"),
    _count("self_label_epochs", 0, "epochs on the model's own sure labels"),
    _fraction("confidence", "a label is sure when its probability is above this"),
    _count("steps", 0, "steps of training"),
    _count("inner_steps", 1, "of each new classifier on the labels of the moment"),
    _positive("inner_learning_rate", "of the classifiers"),
    _counts("hidden_sizes", "widths of the hidden layers, one per layer"),
    _share("tau", "share of the l1 norm in tau |c| + (1 - tau)/2 c^2"),
    _count("dictionary_size", 2, "rows by which the others are expressed in training"),
    _positive("gradient_clip", "longest gradient, as a norm over all weights"),
    _count("max_coefficients", 1, "largest coefficients of a row that its code keeps"),
    _share("mass_kept", "share of the l1 norm of each column of C that its largest entries must reach; others go"),
    _count("subspace_dim", 1, "dimension of the subspace of a cluster"),
    _positive(
        "power",
        "to which entries of the affinity are raised: larger is cleaner, and clusters may differ in size; auto: 1, 8 "
        "if sizes differ much; of neighbours 1 or 2; if whitened 2",
        also="auto",
    ),
    _not_negative("smoothing", "of the shares of the subspaces in a row: larger is more even"),
    _not_negative("kl_weight", "weight of the divergence from the sharpened target"),
    _not_negative("orthogonality", "weight of the terms that keep bases orthonormal and apart"),
)
PARAMETER_BY_NAME = {parameter.name: parameter for parameter in PARAMETERS}


def parameters_of(estimator: type) -> list[Parameter]:
    """Those of one method, in the order of its constructor."""
    return [PARAMETER_BY_NAME[name] for name in inspect.signature(estimator).parameters]


def check_parameters(values: dict[str, Any], owner: str, error: type[ParameterError] = ParameterError) -> None:
    for name, value in values.items():
        PARAMETER_BY_NAME[name].check(value, owner, error)
