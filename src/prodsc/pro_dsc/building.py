"""From a configuration to the pieces of a fit: network, coefficients, objective and phases."""

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from prodsc.core import losses
from prodsc.core.losses import Objective, Term
from prodsc.core.self_expression import SelfExpression, self_expression
from prodsc.errors import ParameterError
from prodsc.nn import (
    ConvDecoder,
    ConvEncoder,
    Network,
    PrincipalCoordinates,
    Whitening,
    build_seeded,
    head,
    identity_head,
    initialise_autoencoder,
    mlp,
    reinit_dead_layers,
    resolve_dtype,
)
from prodsc.pro_dsc.config import Config
from prodsc.pro_dsc.constraints import Constraints
from prodsc.random import Stream
from prodsc.training import Batches, Phase, Step
from prodsc.types import Rows, Scalar

UNIT_LENGTH = ("unit", "centred")  # scalings that leave only the direction of a row


def build_network(config: Config, sample: Tensor, seed: int, device: torch.device) -> Network:
    """The network before training.

    Parameters
    ----------
    config : Config
    sample : tensor
        Some rows as the network will see them.
    seed : int
        Seed of the initial weights.
    device : torch.device
        Where it will be trained, which decides its precision. The weights stay on the CPU.
    """
    generator = torch.Generator().manual_seed(seed)
    encoder, decoder = _build_encoder(config, sample, generator)
    with torch.no_grad():
        width = encoder.eval()(sample).flatten(1).shape[1]
    if config.whitened:
        if config.flat_images:
            raise ParameterError(
                "start='whitened' freezes the encoder, and an mlp has not learned anything yet. "
                "Use it with encoder='conv', 'none' or a module of your own."
            )
        size = config.n_components
        network = Network(encoder, identity_head(size), identity_head(size), decoder, Whitening(width, size))
    else:
        f, h = (
            build_seeded(lambda: head(width, config.n_components, config.head_hidden_size), generator) for _ in "fh"
        )
        g = build_seeded(lambda: nn.Linear(width, config.n_clusters), generator) if config.from_walk else None
        network = Network(encoder, f, h, decoder, g=g)
    network.dtype = resolve_dtype(config.precision, device)
    return network


def _build_encoder(config: Config, sample: Tensor, generator: torch.Generator) -> tuple[nn.Module, nn.Module | None]:
    """The encoder, and the decoder of a conv encoder."""
    if isinstance(config.encoder, nn.Module):
        return copy.deepcopy(config.encoder), None  # the caller's module keeps its weights
    if config.from_walk:
        n_directions = min(config.rules.walk_directions, sample.shape[1])
        coordinates = PrincipalCoordinates(sample.shape[1], n_directions, keep_length=config.scaling not in UNIT_LENGTH)
        layers = build_seeded(lambda: mlp(coordinates.n_outputs, config.hidden_size), generator)
        return nn.Sequential(coordinates, layers), None
    if config.encoder == "mlp":
        return build_seeded(lambda: mlp(sample.shape[1], config.hidden_size), generator), None
    if config.encoder == "none":
        return nn.Identity(), None
    channels, kernel_sizes = config.channels, config.kernel_sizes
    if len(channels) != len(kernel_sizes):
        raise ParameterError(
            f"channels and kernel_sizes must have one entry per layer, got {len(channels)} and {len(kernel_sizes)}."
        )
    shape = (sample.shape[1], sample.shape[2], sample.shape[3])
    encoder = build_seeded(lambda: ConvEncoder(shape, channels, kernel_sizes), generator, initialise_autoencoder)
    decoder = build_seeded(lambda: ConvDecoder(shape, channels, kernel_sizes), generator, initialise_autoencoder)
    reinit_dead_layers(nn.Sequential(encoder, decoder), sample, generator)
    return encoder, decoder


def self_expression_of(config: Config, Y: Rows, relation: Tensor | None = None) -> SelfExpression:
    """S, A and C of some rows; `relation` says which pairs are known to belong together or not."""
    assert config.eta is not None
    return self_expression(Y, config.eta, config.normaliser, config.half_steps, config.coefficient_form, relation)


def build_objective(config: Config, n_rows: int, constrained: bool = False) -> Objective[Step]:
    """The terms of the loss; a term called 'none' is left out, and the one of constraints when there are none."""
    k = config.regulariser_k or config.n_clusters
    memory = losses.RememberedBlockDiagonal(n_rows, min(k, n_rows)) if config.eigensolver == "remembered" else None
    anti_collapse: dict[str, Term[Step]] = {
        "coding-rate": Term(
            "coding_rate",
            1.0,
            lambda s: losses.coding_rate(s.Z, losses.scale(len(s.Z), config.n_components, config.eps)),
        ),
        "nuclear": Term("nuclear_spread", 1.0, lambda s: losses.nuclear_spread(s.Z)),
    }
    regulariser: dict[str, Term[Step]] = {
        "block-diagonal": Term("block_diagonal", config.beta, _block_diagonal_term(k, memory), memory),
        "l1": Term("l1", config.beta, lambda s: losses.l1(s.C)),
        "frobenius": Term("frobenius", config.beta, lambda s: losses.frobenius(s.C)),
        "nuclear": Term("nuclear", config.beta, lambda s: losses.nuclear(s.C)),
    }
    reconstruction = isinstance(config.encoder, str) and config.encoder == "conv"
    terms = [
        Term("reconstruction", 1.0, lambda s: losses.reconstruction(s.X, s.X_hat)) if reconstruction else None,
        anti_collapse.get(config.anti_collapse),
        Term("self_expression", config.gamma, lambda s: losses.self_expression(s.Z, s.C)),
        None if config.from_walk else regulariser.get(config.regulariser),
        # The weight of the constraints is gamma, as both weigh how rows are expressed.
        Term("links", config.gamma, lambda s: losses.links(s.Y, s.C, s.R)) if constrained else None,  # type: ignore[arg-type]
    ]
    if config.from_walk:
        terms += _walk_terms(config)
    return Objective(*(term for term in terms if term is not None))


def _walk_terms(config: Config) -> list[Term[Step]]:
    """Terms of a start from a walk: self-expression by the walk, and what the label head learns.

    The labels weigh as much as the coding rate of d directions. The regulariser of C is left out: the walk has the
    structure that it looks for, and its eigenvectors would cost more than the rest of a step.
    """
    d = float(config.n_components)
    return [
        Term("walk_expression", config.gamma, lambda s: losses.walk_expression(s.Z, s.Z_near)),
        Term("cross_entropy", d, lambda s: cross_entropy(torch.cat([s.outputs, s.outputs_near]), s.targets.repeat(2))),
        Term(
            "negative_information",
            d,
            lambda s: losses.negative_information(s.outputs.softmax(1), s.outputs_near.softmax(1)),
        ),
    ]


def _block_diagonal_term(k: int, memory: losses.RememberedBlockDiagonal | None) -> Callable[[Step], Scalar]:
    """The regulariser with an exact eigensolver, or with one that starts from remembered eigenvectors."""
    if memory is None:
        return lambda s: losses.block_diagonal(s.A, k)
    return lambda s: memory(s.A, torch.from_numpy(s.rows))


def build_phases(
    config: Config,
    objective: Objective[Step],
    n_rows: int,
    seed: int,
    whiten: Callable[[Network], None],
    constraints: Constraints | None = None,
    uneven: bool = False,
) -> list[Phase]:
    """Reconstruction for a conv encoder, warm-up on the anti-collapse term or `whiten`, then all terms together."""
    sizes = (config.pretrain_batch_size, config.batch_size, config.batch_size)
    streams = (Stream.FIRST_PHASE, Stream.SECOND_PHASE, Stream.THIRD_PHASE)
    pretrain, warm_up, joint = (
        Batches(n_rows, size, (seed, stream), constraints if stream == Stream.THIRD_PHASE else None)
        for size, stream in zip(sizes, streams, strict=True)
    )
    warm_terms = tuple(name for name in ("coding_rate", "nuclear_spread") if name in objective.terms)
    joint_terms = tuple(name for name in objective.terms if name != "reconstruction")
    steps = config.epochs * joint.per_epoch
    phases = []
    if config.from_walk:
        # Information prefers clusters of like size, so it does not refine uneven ones.
        learned = "cross_entropy" if uneven else "negative_information"
        terms = ("coding_rate", "walk_expression", "cross_entropy")
        return [
            Phase("warm-up", config.warmup_steps, terms, warm_up, partial(_adamw, config)),
            Phase("joint", steps, ("coding_rate", "self_expression", learned), joint, on_enter=Network.copy_z_to_y),
        ]
    if "reconstruction" in objective.terms and config.pretrain_epochs:
        pretrain_steps = config.pretrain_epochs * pretrain.per_epoch
        phases.append(Phase("pre-train", pretrain_steps, ("reconstruction",), pretrain, partial(_adam, config)))
    if warm_terms and config.warmup_steps and not config.whitened:
        phases.append(Phase("warm-up", config.warmup_steps, warm_terms, warm_up, partial(_sgd, config)))
        phases.append(Phase("joint", steps, joint_terms, joint, on_enter=Network.copy_z_to_y))
    else:  # without a warm-up the paper does not copy the weights either
        on_enter = whiten if config.whitened else None
        phases.append(Phase("joint", steps, joint_terms, joint, partial(_sgd, config), on_enter))
    return phases


def _adam(config: Config, network: Network) -> torch.optim.Optimizer:
    return torch.optim.Adam(network.parameters(), lr=config.pretrain_learning_rate)


def _adamw(config: Config, network: Network) -> torch.optim.Optimizer:
    fused = network.dtype != torch.float16  # as in _sgd
    decay = 1e-2  # PyTorch's default
    return torch.optim.AdamW(network.parameters(), lr=config.learning_rate, weight_decay=decay, fused=fused)


def _sgd(config: Config, network: Network) -> torch.optim.Optimizer:
    lr = config.learning_rate
    frozen = network.whitening is not None
    groups: list[dict[str, Any]] = [
        {
            "params": [] if frozen else [*network.encoder.parameters()],
            "lr": lr if config.learning_rate_encoder is None else config.learning_rate_encoder,
        },
        {"params": [*network.f.parameters()]},
        {
            "params": [*network.h.parameters()],
            "lr": lr if config.learning_rate_h is None else config.learning_rate_h,
            "weight_decay": config.weight_decay_h,
        },
    ]
    fused = network.dtype != torch.float16  # the scaler may skip the first step, and fused SGD then loses momentum
    return torch.optim.SGD(groups, lr=lr, momentum=config.momentum, weight_decay=config.weight_decay, fused=fused)
