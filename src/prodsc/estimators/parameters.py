"""The parameters of all methods: estimators check values by this table, and recipes, the command line and the
docstrings are made from it.

A name has the same meaning in every method. Defaults are not here: they are those of each `__init__`, and of the
option objects of PRO-DSC. This module does not import torch, so that `prodsc fit --help` is fast.
"""

import inspect
import math
import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from numbers import Integral, Real
from textwrap import indent, wrap
from typing import Any

import numpy as np

from prodsc.choices import COEFFICIENT_FORMS, NORMALISERS, ON_COLLAPSE, PRECISIONS, SCALINGS
from prodsc.errors import ParameterError

ENCODERS = ("auto", "mlp", "conv", "none")
ANTI_COLLAPSE = ("coding-rate", "nuclear", "none")
REGULARISERS = ("block-diagonal", "l1", "frobenius", "nuclear", "none")
LABEL_AFFINITIES = ("auto", "gram", "coefficients", "neighbours")
HEADS = ("separate", "shared")
CODE_GRAPHS = ("neighbours", "coefficients")
WEIGHT_POLICIES = ("auto", "best", "converged", "last")
STARTS = ("auto", "walk", "warm-up", "whitened")
EIGENSOLVERS = ("auto", "exact", "remembered")

RENAMED = {"neighbour_views": "n_neighbors", "keep": "keep_weights"}  # version 0.1 -> 0.2
RENAMED_VALUES = {("keep_weights", "settled"): "converged"}


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
    type_text: str = ""  # the type, as a docstring gives it

    def check(self, value: Any, owner: str, error: type[ParameterError] = ParameterError) -> None:
        """Raise `error` with one sentence when the value breaks the rule."""
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


def _is_module(value: Any) -> bool:
    """Whether the value is a torch.nn.Module; without torch loaded, nothing is one."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


def _count(name: str, least: int, help: str, also: str | None = None) -> Parameter:
    """A whole number of at least `least`; `also` is a word that is allowed instead."""
    rule = f"a whole number of at least {least}" + (f" or '{also}'" if also else "")
    return Parameter(
        name,
        rule,
        lambda v: (_whole(v) and v >= least) or (also is not None and v == also),
        help,
        kind=int,
        type_text="int" + (f" or '{also}'" if also else ""),
    )


def _positive(name: str, help: str, also: str | None = None) -> Parameter:
    word = f" or '{also}'" if also else ""
    return Parameter(
        name,
        f"a number above 0{word}",
        lambda v: (_number(v) and v > 0) or (also is not None and v == also),
        help,
        type_text=f"float{word}",
    )


def _not_negative(name: str, help: str) -> Parameter:
    return Parameter(name, "a number of at least 0", lambda v: _number(v) and v >= 0, help, type_text="float")


def _fraction(name: str, help: str) -> Parameter:
    return Parameter(name, "a number in [0, 1)", lambda v: _number(v) and 0 <= v < 1, help, type_text="float in [0, 1)")


def _share(name: str, help: str) -> Parameter:
    return Parameter(name, "a number in (0, 1]", lambda v: _number(v) and 0 < v <= 1, help, type_text="float in (0, 1]")


def _optional(parameter: Parameter, meaning: str) -> Parameter:
    """The same parameter with None allowed; `meaning` says what None stands for."""
    return replace(
        parameter,
        rule=f"{parameter.rule}, or None ({meaning})",
        holds=lambda v: v is None or parameter.holds(v),
        help=f"{parameter.help} (None: {meaning})",
        type_text=f"{parameter.type_text} or None",
    )


def _choice(name: str, choices: tuple[str, ...], help: str) -> Parameter:
    listed = ", ".join(map(repr, choices))
    return Parameter(name, f"one of {listed}", lambda v: v in choices, help, choices, str, type_text=f"{{{listed}}}")


def _counts(name: str, help: str) -> Parameter:
    return Parameter(
        name,
        "a sequence of whole numbers of at least 1",
        lambda v: len(v) > 0 and all(_whole(x) and x >= 1 for x in v),
        help,
        kind=int,
        many=True,
        type_text="sequence of int",
    )


PARAMETERS = (
    # what to find
    _count("n_clusters", 1, "Number of clusters k. 'auto' estimates it (PRO-DSC only)", also="auto"),
    # the input and the network
    Parameter(
        "encoder",
        "'auto', 'mlp', 'conv', 'none' or a torch.nn.Module",
        lambda v: _is_module(v) or v in ENCODERS,
        "Network before the two heads: 'mlp' for feature matrices, 'conv' (the encoder of an autoencoder) for images, "
        "'none' for the rows as they are. 'auto': 'mlp', or 'conv' for images with at most 100 of them per cluster",
        ENCODERS,
        str,
        type_text="{'auto', 'mlp', 'conv', 'none'} or torch.nn.Module",
    ),
    _count("n_components", 1, "Dimension d of the representation. 'auto': 128 for up to 128 clusters", also="auto"),
    _choice(
        "scaling",
        ("auto", *SCALINGS),
        "How feature rows are scaled: to unit length, to unit length after subtracting the mean ('centred'), to "
        "standardised columns, by their mean and one scale for all columns ('global'), or not at all. Images of bytes "
        "are divided by 255 unless it is 'raw'. 'auto': 'standard' if columns have no common unit, 'global' for fewer "
        "than 16 columns, else 'unit'",
    ),
    _count("hidden_size", 1, "Width of the mlp encoder. 'auto': 512, or n_components if that is larger", also="auto"),
    _optional(_count("head_hidden_size", 1, "Width of a hidden layer inside each head"), "no hidden layer"),
    _counts("channels", "Channels of the conv encoder, one per layer"),
    _counts("kernel_sizes", "Kernel sizes of the conv encoder, one per layer"),
    _choice("precision", PRECISIONS, "Of matrix products in the network. 'auto': bf16 or fp16 on a GPU, else float32"),
    _choice("compile", ("off", "on"), "Whether torch.compile translates the network before training"),
    # the loss
    _positive(
        "gamma", "Weight of self-expression. 'auto': 0.8 of the largest value that is safe for any data", also="auto"
    ),
    _not_negative("beta", "Weight of the regulariser of C"),
    _positive(
        "eta",
        "Temperature of |S|/eta; a smaller one makes C sparser. 'auto': 0.15, or after a whitened start the value at "
        "which a quarter of a cluster expresses a row",
        also="auto",
    ),
    _positive("eps", "Precision of the coding rate, alpha = d / (n eps)"),
    _choice("normaliser", NORMALISERS, "Of |S|/eta: a softmax of each row, or Sinkhorn iterations"),
    _count("half_steps", 1, "Half-steps of the 'sinkhorn' normaliser"),
    _choice("coefficient_form", COEFFICIENT_FORMS, "C = sign(S)*A ('symmetric') or C = sign(S)*P ('directed')"),
    _choice("anti_collapse", ANTI_COLLAPSE, "Term that keeps Z from collapsing"),
    _choice("regulariser", REGULARISERS, "The regulariser r(C)"),
    _optional(_count("regulariser_k", 1, "k of the block-diagonal regulariser"), "n_clusters"),
    _choice(
        "eigensolver",
        EIGENSOLVERS,
        "Of the block-diagonal regulariser: exact, or started from the eigenvectors of earlier steps ('remembered'). "
        "'auto': 'exact', or 'remembered' after a whitened start",
    ),
    Parameter(
        "noise",
        "None, 'auto' or a number in (0, 0.5]",
        lambda v: v is None or v == "auto" or (_number(v) and 0 < v <= 0.5),
        "Label rows that belong to no cluster -1: the given share of training rows, or with 'auto' those beyond the "
        "usual tail of outlier scores (None: every row gets a cluster)",
        type_text="float, 'auto' or None",
    ),
    _choice("on_collapse", ON_COLLAPSE, "What to do when Z collapses, or when gamma is so large that it can"),
    # training
    _count(
        "batch_size", 2, "Rows in a batch. 'auto': 1024, or 2048 for more than 128 clusters or whitened", also="auto"
    ),
    _count(
        "epochs",
        0,
        "Passes over the data in the joint phase. 'auto': about 200 + 2k steps, or after a whitened start 300 steps, "
        "at most 15000/k (CPP: 250 steps)",
        also="auto",
    ),
    _choice(
        "start",
        STARTS,
        "How the heads start: with C a random walk between nearest rows and a head that learns the labels of the walk, "
        "trained by the published warm-up, or whitened in closed form with a frozen encoder. 'auto': 'whitened' with "
        "a conv encoder, 'walk' for features, 'warm-up' with other encoders, with known labels or pairs, or if you "
        "set a parameter that 'walk' does not have",
    ),
    _count(
        "warmup_steps",
        0,
        "Steps before the joint phase, published on the anti-collapse term alone. 0: no warm-up, and f is not copied "
        "to h. 'auto': 50, or after a walk 8 epochs, at least 100",
        also="auto",
    ),
    Parameter(
        "TrainingOptions.n_neighbors",
        "a whole number of at least 0 or 'auto'",
        lambda v: (_whole(v) and v >= 0) or v == "auto",
        "In half of the rows of a batch, Y is computed from one of so many nearest rows instead of the row itself. "
        "0: never, as published. 'auto': at most 10, or 0 after a whitened start",
        kind=int,
        type_text="int or 'auto'",
    ),
    _choice(
        "keep_weights",
        WEIGHT_POLICIES,
        "Which weights a fit keeps: those whose labels nearest rows agree on best, those after which labels no longer "
        "change ('converged'), or the last, as published. 'auto': 'best', or 'converged' after a whitened start",
    ),
    _positive("learning_rate", "Of the encoder and f. 'auto': 1e-3, or 1e-2 after a whitened start", also="auto"),
    _optional(_positive("learning_rate_encoder", "Of the encoder"), "learning_rate"),
    _optional(_positive("learning_rate_h", "Of the head h"), "learning_rate"),
    _fraction("momentum", "Of SGD"),
    _not_negative("weight_decay", "Of the encoder and f"),
    _not_negative("weight_decay_h", "Of the head h"),
    _count("pretrain_epochs", 0, "Epochs of reconstruction for the conv encoder. 'auto': about 300 steps", also="auto"),
    _count("pretrain_batch_size", 1, "Rows in a batch of the reconstruction"),
    _positive("pretrain_learning_rate", "Learning rate of Adam in the reconstruction"),
    # labels
    _choice(
        "label_affinity",
        LABEL_AFFINITIES,
        "The affinity that is clustered: |YY'| ('gram'), A ('coefficients'), or A with a temperature per row at which "
        "8 rows count ('neighbours'). 'auto': 'gram', or 'neighbours' after a whitened start",
    ),
    _positive(
        "power",
        "Exponent of the entries of the affinity. A larger one allows clusters of different sizes. 'auto': 1, or 8 "
        "where sizes differ much; with 'neighbours' 1 or 2; after a whitened start with 'gram' 2",
        also="auto",
    ),
    _count(
        "max_landmarks",
        2,
        "Rows up to which spectral clustering is exact; for more it is approximated from landmarks. 'auto': 2048 or "
        "40k, at most 8192; with an affinity other than 'gram' 4096 or 128k",
        also="auto",
    ),
    _count("n_init", 1, "Number of times k-means starts"),
    # every method
    Parameter(
        "random_state",
        "a whole number of at least 0, None, or a numpy RandomState",
        lambda v: v is None or isinstance(v, np.random.RandomState) or (_whole(v) and v >= 0),
        "Seed; the same seed gives the same labels",
        kind=int,
        type_text="int, RandomState or None",
    ),
    Parameter(
        "device",
        "a torch device such as 'auto', 'cpu' or 'cuda:0'",
        lambda v: isinstance(v, str),
        "Where to train",
        kind=str,
        type_text="str",
    ),
    _count("verbose", 0, "1 shows progress"),
    # other methods
    _choice("heads", HEADS, "One head for the representation and one for the memberships, or one for both"),
    _count("n_heads", 1, "Heads trained side by side; the one with the lowest loss gives the labels"),
    _count(
        "TEMI.n_heads",
        1,
        "Heads trained side by side; the one with the lowest loss gives the labels. 'auto': one for 1,000 rows, 5 to "
        "50",
        also="auto",
    ),
    _count("TEMI.hidden_size", 1, "Width of a head. 'auto': 512 for at least 20,000 rows, else 128", also="auto"),
    _count(
        "TEMI.n_components",
        1,
        "Dimension before the prototypes. 'auto': 256 for at least 20,000 rows, else 64",
        also="auto",
    ),
    _positive(
        "TEMI.learning_rate",
        "Of AdamW. 'auto': 2e-4, or more for fewer steps than published, at most 2e-3",
        also="auto",
    ),
    _count(
        "CPP.batch_size",
        2,
        "Rows in a batch. 'auto': 1024, or for fewer than 20,000 rows 10 for each cluster, 256 to 1024",
        also="auto",
    ),
    _count(
        "CPP.n_components",
        1,
        "Dimension d of the representation. 'auto': 128, or 64 for fewer than 20,000 rows and at most 32 clusters",
        also="auto",
    ),
    _count("EDESC.pretrain_epochs", 0, "Epochs of reconstruction. 'auto': 50, or about 1000 steps", also="auto"),
    _positive("DSCNet.learning_rate", "Of Adam. 'auto': 1e-4, or 1e-3 with a conv encoder", also="auto"),
    _count("n_neighbors", 1, "Number of nearest neighbours of a row"),
    *(
        _count(
            f"{method}.n_neighbors",
            1,
            f"Number of nearest neighbours of a row. 'auto': n / (2 n_clusters), from 5 to {most}",
            also="auto",
        )
        for method, most in (("TEMI", 50), ("SCAN", 20))
    ),
    _count("SCAN.batch_size", 2, "Rows in a batch. 'auto': 512, or 10 for each cluster", also="auto"),
    _choice("code_graph", CODE_GRAPHS, "Of EnSC: the n_neighbors nearest codes of each, or (|C| + |C|')/2 itself"),
    _count("k_max", 1, "Largest number of points that express a point"),
    _positive("tolerance", "Residual, relative to the point, at which the pursuit stops"),
    _positive("temperature", "Divides the logits before the softmax; a smaller one gives sharper probabilities"),
    Parameter(
        "teacher_momentum",
        "a number in [0, 1) or 'auto'",
        lambda v: (_number(v) and 0 <= v < 1) or v == "auto",
        "Of the teacher, a moving average of the student. 'auto': 0.996 to the power that gives the published change "
        "in an epoch",
        type_text="float in [0, 1) or 'auto'",
    ),
    _share("exponent", "Of s t in the loss of TEMI"),
    _count("warmup_epochs", 0, "First epochs, in which the learning rate rises from 0"),
    _not_negative("entropy_weight", "Weight of the term that asks for clusters of equal size"),
    _count("self_label_epochs", 0, "Epochs on the model's own confident labels"),
    _fraction("confidence", "Probability above which a label counts as confident"),
    _count("steps", 0, "Steps of training"),
    _count("inner_steps", 1, "Steps of each new classifier on the current labels"),
    _positive("inner_learning_rate", "Learning rate of the classifiers"),
    _counts("hidden_sizes", "Widths of the hidden layers, one per layer"),
    _share("tau", "Share of the l1 norm in tau |c| + (1 - tau)/2 c^2"),
    _count("dictionary_size", 2, "Rows that express the others in training"),
    _positive("gradient_clip", "Largest norm of the gradient of all weights"),
    _count("max_coefficients", 1, "Largest coefficients of a row that its code keeps"),
    _share("mass_kept", "Share of the l1 norm of each column of C that its largest entries must reach"),
    _count("subspace_dim", 1, "Dimension of the subspace of a cluster"),
    _not_negative("smoothing", "Of the shares of the subspaces in a row; a larger one makes them more equal"),
    _not_negative("kl_weight", "Weight of the divergence from the sharpened target"),
    _not_negative("orthogonality", "Weight of the terms that keep the bases orthonormal and apart"),
    *(
        parameter
        for method in ("UMAPKMeans", "UMAPGMM", "UMAPHDBSCAN")
        for parameter in (
            _count(f"{method}.n_neighbors", 2, "Number of nearest neighbours in UMAP's graph"),
            _count(f"{method}.n_components", 1, "Dimension of UMAP's embedding"),
        )
    ),
    _fraction("min_dist", "Smallest distance between rows in UMAP's embedding"),
    _count(
        "UMAPHDBSCAN.n_clusters",
        1,
        "Expected number of clusters. It only sets min_cluster_size='auto'; HDBSCAN finds the number, n_clusters_",
    ),
    _count(
        "min_cluster_size",
        2,
        "Rows of the smallest cluster of HDBSCAN. 'auto': n / (14 n_clusters), at least 5",
        also="auto",
    ),
    _count("min_samples", 1, "Neighbours by which the density at a row is estimated"),
    _count("EVoC.n_clusters", 1, "Number of clusters to aim for; n_clusters_ is the number found"),
    Parameter(
        "noise_level",
        "a number in [0, 1]",
        lambda v: _number(v) and 0 <= v <= 1,
        "Of EVoC: 0 clusters more rows, 1 calls more rows noise",
        type_text="float in [0, 1]",
    ),
    _count(
        "Leiden.n_clusters", 1, "Number of clusters to aim for if resolution='auto'; n_clusters_ is the number found"
    ),
    _positive(
        "resolution",
        "Of modularity: a larger one gives more clusters. 'auto': one that gives n_clusters, or the nearest number",
        also="auto",
    ),
)
PARAMETER_BY_NAME = {
    parameter.name: replace(parameter, name=parameter.name.rpartition(".")[2]) for parameter in PARAMETERS
}


def find_parameter(owner: type, name: str) -> Parameter:
    """The parameter of that name of a class; the same name may have a rule of its own in one class."""
    return PARAMETER_BY_NAME.get(f"{owner.__name__}.{name}") or PARAMETER_BY_NAME[name]


# ---- flat names: the option objects of a method spread out, as recipes, files and the command line have them ---------


def option_groups(estimator: type) -> Mapping[str, type]:
    """The constructor arguments of a method that are option objects, and their classes."""
    return getattr(estimator, "option_groups", {})


def _flat(estimator: type) -> dict[str, tuple[type, Any]]:
    """Class and default of every parameter by its flat name, in the order of the constructor."""
    groups = option_groups(estimator)
    flat: dict[str, tuple[type, Any]] = {}
    for name, argument in inspect.signature(estimator).parameters.items():
        if name in groups:
            flat |= {field.name: (groups[name], field.default) for field in fields(groups[name])}
        else:
            flat[name] = (estimator, argument.default)
    return flat


def parameters_of(estimator: type) -> list[Parameter]:
    """All parameters of a method by their flat names, in the order of its constructor."""
    return [find_parameter(owner, name) for name, (owner, _) in _flat(estimator).items()]


def defaults_of(estimator: type) -> dict[str, Any]:
    """The default of every parameter of a method, by flat name."""
    return {name: default for name, (_, default) in _flat(estimator).items()}


def flatten(estimator: type, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor arguments with every option object spread out into its fields."""
    groups = option_groups(estimator)
    flat: dict[str, Any] = {}
    for name, value in arguments.items():
        if name in groups:
            options = as_options(groups[name], value, f"{estimator.__name__}: {name}")
            flat |= {field.name: getattr(options, field.name) for field in fields(options)}
        else:
            flat[name] = value
    return flat


def unflatten(estimator: type, flat: Mapping[str, Any]) -> dict[str, Any]:
    """Constructor arguments from flat names: those of an option object are gathered in it."""
    arguments: dict[str, Any] = {}
    group_of = {field.name: group for group, cls in option_groups(estimator).items() for field in fields(cls)}
    gathered: dict[str, dict[str, Any]] = {}
    for name, value in flat.items():
        if name in group_of:
            gathered.setdefault(group_of[name], {})[name] = value
        else:
            arguments[name] = value
    for group, values in gathered.items():
        cls = option_groups(estimator)[group]
        arguments[group] = None if cls(**values) == cls() else cls(**values)
    return arguments


def as_options(cls: type, value: Any, owner: str) -> Any:
    """An option object from None (all defaults), a mapping of its fields, or itself."""
    if value is None:
        return cls()
    if isinstance(value, cls):
        return value
    if not isinstance(value, Mapping):
        raise ParameterError(f"{owner} must be a {cls.__name__}, a mapping of its fields or None, got {value!r}.")
    known = [field.name for field in fields(cls)]
    for name in value:
        if name not in known:
            raise ParameterError(f"{owner} has no option '{name}'. It has: {', '.join(known)}.")
    return cls(**value)


def current_names(flat: Mapping[str, Any], origin: str) -> dict[str, Any]:
    """Parameters of version 0.1 under the names they have now; an old name warns."""
    renamed = {}
    for name, value in flat.items():
        new = RENAMED.get(name, name)
        new_value = RENAMED_VALUES.get((new, value), value) if isinstance(value, str) else value
        if (new, new_value) != (name, value):
            warnings.warn(
                f"{origin}: {name}={value!r} is now called {new}={new_value!r}; the old name will go in 0.4.",
                FutureWarning,
                stacklevel=3,
            )
        renamed[new] = new_value
    return renamed


def check_parameters(
    estimator: type, flat: Mapping[str, Any], owner: str, error: type[ParameterError] = ParameterError
) -> None:
    """Check values of a method by their rules."""
    owners = _flat(estimator)
    for name, value in flat.items():
        find_parameter(owners[name][0], name).check(value, owner, error)


# ---- docstrings ------------------------------------------------------------------------------------------------------


def parameters_section(cls: type) -> str:
    """The numpydoc section `Parameters` of an estimator or an option class, made from the table."""
    lines = ["Parameters", "----------"]
    if is_dataclass(cls):
        defaults = {field.name: field.default for field in fields(cls)}
    else:
        defaults = {name: argument.default for name, argument in inspect.signature(cls).parameters.items()}
    groups = option_groups(cls)
    for name, default in defaults.items():
        if name in groups:
            group = groups[name].__name__
            lines.append(f"{name} : {group}, dict or None, default=None")
            text = f"{(inspect.getdoc(groups[name]) or '').splitlines()[0]} None: all defaults."
        else:
            parameter = find_parameter(cls, name)
            lines.append(f"{name} : {parameter.type_text}, default={default!r}")
            text = f"{parameter.help}."
        lines += wrap(text, 100, initial_indent="    ", subsequent_indent="    ")
    return "\n".join(lines)


def document_parameters(cls: type) -> type:
    """Put the `Parameters` section into the docstring of a class, after its description."""
    doc = inspect.cleandoc(cls.__dict__.get("__doc__") or "")
    description, divider, rest = doc.partition("Attributes\n----------")
    parts = [description.rstrip(), parameters_section(cls)]
    if divider:
        parts.append(divider + rest.rstrip())
    first, *others = "\n\n".join(parts).split("\n")
    cls.__doc__ = "\n".join([first, indent("\n".join(others), "    ")]) + "\n    "
    return cls
