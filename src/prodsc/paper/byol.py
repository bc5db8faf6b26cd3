"""BYOL pre-training of an image encoder (Grill et al., 2020): two views of an image should predict each other.

X --> two augmented views --> online: encoder - projector - predictor --> q1, q2
                          --> target: encoder - projector, slow copies --> t1, t2
minimise -2 cos(q1, t2) - 2 cos(q2, t1), the mean over the batch
"""

import copy
import math
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prodsc.core.losses import Objective, Term
from prodsc.errors import InputError, ParameterError
from prodsc.nn import build_seeded
from prodsc.paper.augment import Augmentation, generator_of
from prodsc.random import Stream
from prodsc.sources.checks import check_values
from prodsc.sources.fingerprint import fingerprint
from prodsc.sources.rows import RowReader, as_array, check_shape
from prodsc.training import Batches, Callback, History, Phase, Training, train
from prodsc.training.checkpoint import CheckpointCallback, load_checkpoint
from prodsc.types import Scalar


@dataclass(frozen=True)
class BYOLSettings:
    """The defaults are the published ones, but for `epochs`, which the paper does not give."""

    epochs: int = 1000
    batch_size: int = 256
    hidden_size: int = 4096
    projection_size: int = 256
    learning_rate: float = 0.05
    predictor_rate: float = 10.0  # times learning_rate
    momentum: float = 0.9
    weight_decay: float = 5e-4
    target_momentum: float = 0.996  # at the start; it rises to 1

    def __post_init__(self) -> None:
        for name, least in {"epochs": 1, "batch_size": 2, "hidden_size": 1, "projection_size": 1}.items():
            if getattr(self, name) < least:
                raise ParameterError(f"BYOL: {name} must be at least {least}, got {getattr(self, name)!r}.")
        for name in ("momentum", "target_momentum"):
            if not 0 <= getattr(self, name) < 1:
                raise ParameterError(f"BYOL: {name} must be in [0, 1), got {getattr(self, name)!r}.")


@dataclass(frozen=True)
class Pretrained:
    """The online encoder after training, and columns with one row per step."""

    encoder: nn.Module
    history: dict[str, np.ndarray]


def pretrain(
    encoder: nn.Module,
    X: Any,
    settings: BYOLSettings | None = None,
    *,
    augmentation: Augmentation | None = None,
    seed: int = 0,
    device: str = "cpu",
    callbacks: Sequence[Callback] = (),
    checkpoint: str | Path | None = None,
) -> Pretrained:
    """Train a copy of an encoder with BYOL.

    Parameters
    ----------
    encoder : nn.Module
        Images to features; it is not changed.
    X : array-like of shape (n, height, width, channels)
        Images: bytes, or numbers in [0, 1].
    settings : BYOLSettings, optional
        Published values when left out.
    augmentation : Augmentation, optional
        The paper's when left out.
    seed : int, default=0
        Of weights, batches and augmentations.
    device : str, default="cpu"
        Where to train.
    callbacks : sequence of Callback, optional
        For the training loop.
    checkpoint : path, optional
        The state is saved there every few seconds and on Ctrl-C; a call that finds the file continues from it to the
        same weights.

    Returns
    -------
    Pretrained
    """
    settings, augmentation = settings or BYOLSettings(), augmentation or Augmentation()
    array = as_array(X)
    check_shape(array, images=True)
    check_values(array)
    if len(array) < 2:
        raise InputError(f"BYOL normalises over a batch, so X must have at least 2 images, got {len(array)}.")
    rows = RowReader(array)
    network = build_network(encoder, rows[slice(0, 2)], settings, seed).to(device)
    batches = Batches(len(rows), settings.batch_size, (seed, Stream.FIRST_PHASE))
    steps = settings.epochs * batches.per_epoch
    objective: Objective[BYOLBatch] = Objective(Term("prediction", 1.0, prediction_loss))
    phase = Phase("pre-train", steps, ("prediction",), batches, partial(build_optimizer, settings))
    listening = [TargetUpdate(settings.target_momentum), *callbacks]  # first, so that others save the updated target
    history = History([*objective.terms], [name for callback in listening for name in callback.columns])
    training = Training(network, objective, [phase], history)
    restore = None
    with ExitStack() as stack:
        if checkpoint is not None:
            parameters = _plain(asdict(settings) | asdict(augmentation))
            about = {"parameters": parameters | {"seed": seed, "encoder": _name(encoder)}, "data": fingerprint(array)}
            if Path(checkpoint).exists():
                saved = load_checkpoint(Path(checkpoint))
                saved.check_same(about, Path(checkpoint))
                training.phase, training.step, restore = saved.phase, saved.step, saved.restore
            listening.append(stack.enter_context(CheckpointCallback(Path(checkpoint), about)))
        train(
            training,
            lambda phase, t: BYOLBatch(network, rows[phase.batches[t]].to(device), augmentation, (seed, t)),
            listening,
            restore,
        )
    return Pretrained(network.encoder.eval(), history.columns())


def encode(encoder: nn.Module, X: Any, device: str = "cpu") -> np.ndarray:
    """Features of images.

    Parameters
    ----------
    encoder : nn.Module
        Images to features; used in evaluation mode.
    X : array-like of shape (n, height, width, channels)
        Images.
    device : str, default="cpu"
        Where the encoder is.

    Returns
    -------
    ndarray of shape (n, n_features)
    """
    array = as_array(X)
    check_shape(array, images=True)
    was_training = encoder.training
    encoder.eval()
    with torch.inference_mode():
        parts = [encoder(images.to(device)).flatten(1).cpu() for images in RowReader(array).chunks()]
    encoder.train(was_training)
    return torch.cat(parts).numpy()


class BYOL(nn.Module):
    """The online branch, and the target that follows it slowly."""

    def __init__(self, encoder: nn.Module, projector: nn.Module, predictor: nn.Module):
        super().__init__()
        self.encoder, self.projector, self.predictor = encoder, projector, predictor
        self.target = copy.deepcopy(nn.Sequential(encoder, nn.Flatten(), projector)).requires_grad_(False)

    def predict(self, X: Tensor) -> Tensor:
        return self.predictor(self.projector(self.encoder(X).flatten(1)))

    def follow(self, momentum: float) -> None:
        """target <- momentum * target + (1 - momentum) * online; running statistics it gathers itself."""
        online = [*self.encoder.parameters(), *self.projector.parameters()]
        with torch.no_grad():
            for slow, fast in zip(self.target.parameters(), online, strict=True):
                slow.lerp_(fast, 1 - momentum)


class BYOLBatch:
    """Two augmented views of a batch, functions of `key`; what the online branch predicts and the target gives."""

    def __init__(self, network: BYOL, X: Tensor, augmentation: Augmentation, key: tuple[int, ...]):
        self.network, self.X, self._augmentation, self._key = network, X, augmentation, key

    @cached_property
    def views(self) -> tuple[Tensor, Tensor]:
        first, second = (self._augmentation(self.X, generator_of(*self._key, view)) for view in (1, 2))
        return first, second

    @cached_property
    def predictions(self) -> tuple[Tensor, Tensor]:
        """One view at a time: batch statistics of both together would tell one about the other."""
        first, second = self.views
        return self.network.predict(first), self.network.predict(second)

    @cached_property
    def targets(self) -> tuple[Tensor, Tensor]:
        first, second = self.views
        with torch.no_grad():
            return self.network.target(first), self.network.target(second)


def prediction_loss(s: BYOLBatch) -> Scalar:
    """-2 cos(q1, t2) - 2 cos(q2, t1), the mean over the batch."""
    (q1, q2), (t1, t2) = s.predictions, s.targets
    return -2 * (F.cosine_similarity(q1, t2) + F.cosine_similarity(q2, t1)).mean()


class TargetUpdate(Callback):
    """After every step the target follows, ever more slowly."""

    def __init__(self, start: float):
        self.start = start

    def on_step(self, training: Training) -> None:
        assert isinstance(training.network, BYOL)
        training.network.follow(target_momentum(self.start, training.step, training.current.steps))


def target_momentum(start: float, step: int, steps: int) -> float:
    """1 - (1 - start) (1 + cos(pi step / steps)) / 2: from `start` to 1."""
    return 1 - (1 - start) * (1 + math.cos(math.pi * step / steps)) / 2


def build_network(encoder: nn.Module, sample: Tensor, settings: BYOLSettings, seed: int) -> BYOL:
    """A copy of the encoder, because the caller's is not ours to train, with new heads; `sample` gives its width."""
    encoder = copy.deepcopy(encoder).cpu()
    with torch.no_grad():
        width = encoder.eval()(sample).flatten(1).shape[1]
    generator, hidden, out = generator_of(seed), settings.hidden_size, settings.projection_size
    projector = build_seeded(lambda: perceptron(width, hidden, out), generator)
    predictor = build_seeded(lambda: perceptron(out, hidden, out), generator)
    return BYOL(encoder, projector, predictor)


def perceptron(in_features: int, hidden_size: int, out_features: int) -> nn.Sequential:
    """Linear - BatchNorm - ReLU - Linear."""
    return nn.Sequential(
        nn.Linear(in_features, hidden_size),
        nn.BatchNorm1d(hidden_size),
        nn.ReLU(),
        nn.Linear(hidden_size, out_features),
    )


def build_optimizer(settings: BYOLSettings, network: BYOL) -> torch.optim.Optimizer:
    groups: list[dict[str, Any]] = [
        {"params": [*network.encoder.parameters(), *network.projector.parameters()]},
        {"params": [*network.predictor.parameters()], "lr": settings.predictor_rate * settings.learning_rate},
    ]
    return torch.optim.SGD(
        groups, lr=settings.learning_rate, momentum=settings.momentum, weight_decay=settings.weight_decay, fused=True
    )


def _plain(parameters: dict[str, Any]) -> dict[str, Any]:
    """As JSON gives them back: lists for tuples."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in parameters.items()}


def _name(encoder: nn.Module) -> str:
    """A short name for its weights: a resumed run must have started from the same ones."""
    return fingerprint(nn.utils.parameters_to_vector(encoder.parameters()).detach().cpu().numpy())[:16]
