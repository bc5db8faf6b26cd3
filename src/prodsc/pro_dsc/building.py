"""From settings to the pieces of a fit: network, objective, phases. Pure functions of the settings `p` of an estimator:
its parameters with a value in place of every "auto" (defaults.py) but that of gamma."""

import copy
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from prodsc.core import losses
from prodsc.core.losses import Objective, Term
from prodsc.core.self_expression import SelfExpression, self_expression
from prodsc.core.theory import gamma_safe
from prodsc.errors import ParameterError
from prodsc.nn import (
    ConvDecoder,
    ConvEncoder,
    Network,
    Whitening,
    build_seeded,
    head,
    identity_head,
    initialise_autoencoder,
    mlp,
    reinit_dead_layers,
)  # fmt: skip
from prodsc.pro_dsc.constraints import Links
from prodsc.training import Batches, Phase, Step
from prodsc.types import Rows, Scalar

Settings = SimpleNamespace
LINKS = 1.0  # of gamma is the weight of the term for known pairs: both weigh how rows are expressed
AUTO_GAMMA = 0.8  # of gamma_safe, when gamma="auto"


def build_network(p: Settings, sample: Tensor, seed: int) -> Network:
    """`sample` is some rows as the network will see them."""
    generator = torch.Generator().manual_seed(seed)
    decoder: nn.Module | None = None
    if isinstance(p.encoder, nn.Module):
        encoder = copy.deepcopy(p.encoder)  # the caller's module, with its weights, is not ours to train
    elif p.encoder == "mlp":
        encoder = build_seeded(lambda: mlp(sample.shape[1], p.hidden_size), generator)
    elif p.encoder == "conv":
        if len(p.channels) != len(p.kernel_sizes):
            raise ParameterError(
                f"channels and kernel_sizes must have one entry per layer, got {len(p.channels)} and "
                f"{len(p.kernel_sizes)}."
            )
        shape = (sample.shape[1], sample.shape[2], sample.shape[3])
        encoder = build_seeded(
            lambda: ConvEncoder(shape, p.channels, p.kernel_sizes), generator, initialise_autoencoder
        )
        decoder = build_seeded(
            lambda: ConvDecoder(shape, p.channels, p.kernel_sizes), generator, initialise_autoencoder
        )
        reinit_dead_layers(nn.Sequential(encoder, decoder), sample, generator)
    else:
        encoder = nn.Identity()
    with torch.no_grad():
        width = encoder.eval()(sample).flatten(1).shape[1]
    if p.start == "whitened":
        if p.encoder == "mlp":
            raise ParameterError(
                "start='whitened' freezes the encoder, and an mlp has not learned anything yet. "
                "Use it with encoder='conv', 'none' or a module of your own."
            )
        size = p.n_components
        return Network(encoder, identity_head(size), identity_head(size), decoder, Whitening(width, size))
    f, h = (build_seeded(lambda: head(width, p.n_components, p.head_hidden_size), generator) for _ in "fh")
    return Network(encoder, f, h, decoder)


def expressed(p: Settings, Y: Rows, R: Tensor | None = None) -> SelfExpression:
    """S, A and C by the estimator's parameters; R is what is known of pairs."""
    return self_expression(Y, p.eta, p.normaliser, p.half_steps, p.coefficient_form, R)


def used_gamma(p: Settings, n: int) -> float:
    """gamma, or for 'auto' a fixed share of the bound below which no data can collapse."""
    return AUTO_GAMMA * gamma_safe(n, p.n_components, p.eps) if isinstance(p.gamma, str) else float(p.gamma)


def build_objective(
    p: Settings, gamma: float, linked: bool = False, memory: losses.RememberedBlockDiagonal | None = None
) -> Objective[Step]:
    """The list of terms that makes the method; a term called 'none' is not in it, nor links when there are none."""
    k = p.regulariser_k or p.n_clusters
    anti_collapse: dict[str, Term[Step]] = {
        "coding-rate": Term(
            "coding_rate", 1.0, lambda s: losses.coding_rate(s.Z, losses.scale(len(s.Z), p.n_components, p.eps))
        ),
        "nuclear": Term("nuclear_spread", 1.0, lambda s: losses.nuclear_spread(s.Z)),
    }
    regulariser: dict[str, Term[Step]] = {
        "block-diagonal": Term("block_diagonal", p.beta, block_term(k, memory), memory),
        "l1": Term("l1", p.beta, lambda s: losses.l1(s.C)),
        "frobenius": Term("frobenius", p.beta, lambda s: losses.frobenius(s.C)),
        "nuclear": Term("nuclear", p.beta, lambda s: losses.nuclear(s.C)),
    }
    terms = [
        Term("reconstruction", 1.0, lambda s: losses.reconstruction(s.X, s.X_hat)) if p.encoder == "conv" else None,
        anti_collapse.get(p.anti_collapse),
        Term("self_expression", gamma, lambda s: losses.self_expression(s.Z, s.C)),
        regulariser.get(p.regulariser),
        Term("links", LINKS * gamma, lambda s: losses.links(s.Y, s.C, s.R)) if linked else None,  # type: ignore[arg-type]
    ]
    return Objective(*(term for term in terms if term is not None))


def block_term(k: int, memory: losses.RememberedBlockDiagonal | None) -> Callable[[Step], Scalar]:
    """The regulariser with an exact eigensolver, or with the one that remembers."""
    if memory is None:
        return lambda s: losses.block_diagonal(s.A, k)
    return lambda s: memory(s.A, torch.from_numpy(s.rows))


def build_phases(
    p: Settings,
    objective: Objective[Step],
    n_rows: int,
    seed: int,
    whiten: Callable[[Network], None],
    links: Links | None = None,
) -> list[Phase]:
    """Pre-training of a conv encoder, warm-up on the anti-collapse term or `whiten`, then all terms together."""
    sizes = (p.pretrain_batch_size, p.batch_size, p.batch_size)
    batches = [Batches(n_rows, size, (seed, stage), links if stage == 2 else None) for stage, size in enumerate(sizes)]
    per_epoch = batches[2].per_epoch
    warm = [name for name in ("coding_rate", "nuclear_spread") if name in objective.terms]
    joint = [name for name in objective.terms if name != "reconstruction"]
    phases = []
    if "reconstruction" in objective.terms and p.pretrain_epochs:
        steps = p.pretrain_epochs * batches[0].per_epoch
        phases.append(Phase("pre-train", steps, ("reconstruction",), batches[0], partial(_adam, p)))
    if warm and p.warmup_steps and p.start == "warm-up":
        phases.append(Phase("warm-up", p.warmup_steps, tuple(warm), batches[1], partial(_sgd, p)))
        phases.append(Phase("joint", p.epochs * per_epoch, tuple(joint), batches[2], on_enter=Network.copy_z_to_y))
    else:  # the paper's "0 warm-up" means no weight copy either
        start = whiten if p.start == "whitened" else None
        phases.append(Phase("joint", p.epochs * per_epoch, tuple(joint), batches[2], partial(_sgd, p), start))
    return phases


def _adam(p: Settings, network: Network) -> torch.optim.Optimizer:
    return torch.optim.Adam(network.parameters(), lr=p.pretrain_learning_rate)


def _sgd(p: Settings, network: Network) -> torch.optim.Optimizer:
    lr_encoder = p.learning_rate if p.learning_rate_encoder is None else p.learning_rate_encoder
    lr_h = p.learning_rate if p.learning_rate_h is None else p.learning_rate_h
    frozen = network.whitening is not None
    groups: list[dict[str, Any]] = [
        {"params": [] if frozen else [*network.encoder.parameters()], "lr": lr_encoder},
        {"params": [*network.f.parameters()]},
        {"params": [*network.h.parameters()], "lr": lr_h, "weight_decay": p.weight_decay_h},
    ]
    fused = network.dtype != torch.float16  # there the scaler may skip the first step; fused SGD then forgets momentum
    return torch.optim.SGD(groups, lr=p.learning_rate, momentum=p.momentum, weight_decay=p.weight_decay, fused=fused)
