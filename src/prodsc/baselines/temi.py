"""TEMI: many small heads on frozen features, trained with moving averages of themselves on pairs of neighbours."""

import copy
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from prodsc.core.graph import nearest_neighbours
from prodsc.core.losses import Objective, Term, sameness, temi
from prodsc.estimators.soft import HeadLosses, SoftClusterer, neighbours_within, one_of
from prodsc.nn import build_seeded
from prodsc.sources.rows import RowReader
from prodsc.training import Batches, Callback, Phase, Training
from prodsc.training.schedule import Schedule, linear_warmup


class TEMI(SoftClusterer):
    """Clustering frozen features by the mutual information of neighbours (TEMI, BMVC 2023).

    Heads h with a student s and a teacher t, its moving average; for a row x and a neighbour x', both ways round,

        loss_h = -w log sum_k (s_k(x) t_k(x'))^exponent / p_k,    w = mean over heads of sum_k t_k(x) t_k(x')

    where p is the moving average of t. The teacher of the head with the lowest loss labels. See docs/methods/temi.md.
    """

    departures = (
        "one scale for all columns; below 20,000 rows 5 or more heads of width 128 instead of 50 of width "
        "512, up to ten times the rate for fewer steps, and the teachers' momentum per epoch instead of per "
        "step"
    )

    network_: "StudentsAndTeachers"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_heads: int | str = "auto",
        n_neighbors: int | str = "auto",
        hidden_size: int | str = "auto",
        n_components: int | str = "auto",
        scaling: str = "global",
        temperature: float = 0.1,
        teacher_momentum: float | str = "auto",
        exponent: float = 0.6,
        batch_size: int = 512,
        warmup_epochs: int = 20,
        epochs: int = 100,
        learning_rate: float | str = "auto",
        weight_decay: float = 1e-4,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.n_heads = n_heads
        self.n_neighbors = n_neighbors
        self.hidden_size = hidden_size
        self.n_components = n_components
        self.scaling = scaling
        self.temperature = temperature
        self.teacher_momentum = teacher_momentum
        self.exponent = exponent
        self.batch_size = batch_size
        self.warmup_epochs = warmup_epochs
        self.epochs = epochs
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    @property
    def _schedule(self) -> "TEMISchedule":
        """The parameters with every "auto" resolved."""
        values = {field.name: getattr(self, field.name) for field in fields(TEMISchedule)}
        steps = max(1, self.n_rows_ // self.batch_size)
        auto = temi_schedule(self.n_rows_, self.n_clusters_, steps, self.warmup_epochs + self.epochs)
        return replace(auto, **{name: value for name, value in values.items() if not isinstance(value, str)})

    def _network(self, sample: Tensor) -> "StudentsAndTeachers":
        generator = torch.Generator().manual_seed(self.seed_)
        width, k, sizes = sample.shape[1], self.n_clusters_, self._schedule
        heads = [
            build_seeded(lambda: CosineHead(width, sizes.hidden_size, sizes.n_components, k), generator)
            for _ in range(sizes.n_heads)
        ]
        return StudentsAndTeachers(nn.ModuleList(heads), k, self.temperature)

    def _prepare(self, rows: RowReader) -> None:
        X = torch.cat([*rows.chunks()]).to(self.device_)
        self._neighbours = nearest_neighbours(X, self._schedule.n_neighbors).cpu()

    def _objective(self) -> Objective["TEMIBatch"]:
        return Objective(Term("temi", 1.0, lambda s: s.by_head.mean()))

    def _phases(self, objective: Objective[Any], n_rows: int) -> list[Phase]:
        phases = []
        for stage, (name, epochs) in enumerate({"warm-up": self.warmup_epochs, "joint": self.epochs}.items()):
            batches = Batches(n_rows, self.batch_size, (self.seed_, stage))
            phases.append(Phase(name, epochs * batches.per_epoch, ("temi",), batches, None if stage else self._adamw))
        return phases

    def _adamw(self, network: "StudentsAndTeachers") -> torch.optim.Optimizer:
        return torch.optim.AdamW(
            network.students.parameters(), lr=self._schedule.learning_rate, weight_decay=self.weight_decay, fused=True
        )

    def _step(self, rows: RowReader, phase: Phase, t: int) -> "TEMIBatch":
        batch = phase.batches[t]
        X, X_other = (rows[which].to(self.device_) for which in (batch, one_of(self._neighbours, batch, phase, t)))
        return TEMIBatch(self.network_, X, X_other, self.exponent)

    def _listeners(self) -> list[Callback]:
        return [Schedule(warm_up=linear_warmup), TeacherUpdate(self._schedule.teacher_momentum), HeadLosses("temi")]

    def _finish(self, training: Training, rows: RowReader) -> None:
        del self._neighbours  # n x n_neighbors: only training reads it
        super()._finish(training, rows)

    def _logits(self) -> nn.Module:
        best = int(self.network_.losses.argmin())
        return Sharpened(self.network_.teachers[best], self.temperature)


@dataclass(frozen=True)
class TEMISchedule:
    """What depends on the size of the data."""

    n_heads: int
    n_neighbors: int
    hidden_size: int
    n_components: int
    learning_rate: float
    teacher_momentum: float


# The published values, for 50,000 rows in 98 batches of 512 over 120 epochs.
PUBLISHED_TEMI = TEMISchedule(50, 50, 512, 256, 2e-4, 0.996)


def temi_schedule(n_rows: int, k: int, steps_per_epoch: int, epochs: int) -> TEMISchedule:
    """The published schedule for large data; for fewer rows heads and steps that suit them.

    The teachers move as far in an epoch as published (0.996^98). The rate times the number of steps is the published
    product as far as ten times the published rate gets. Below 20,000 rows heads are few (one for 1,000 rows, at least
    five) and narrow (128, 64), so that a fit takes a minute on one core.

    Parameters
    ----------
    n_rows : int
    k : int
        Number of clusters.
    steps_per_epoch : int
    epochs : int
        All epochs, those of the warm-up included.

    Returns
    -------
    TEMISchedule
    """
    full, large = PUBLISHED_TEMI, n_rows >= 20_000
    published_steps, published_epochs = 98, 120
    fewer = published_steps * published_epochs / max(1, steps_per_epoch * epochs)
    return TEMISchedule(
        n_heads=min(full.n_heads, max(5, n_rows // 1000)),
        n_neighbors=neighbours_within("auto", n_rows, k, full.n_neighbors),
        hidden_size=full.hidden_size if large else 128,
        n_components=full.n_components if large else 64,
        learning_rate=full.learning_rate * min(10.0, max(1.0, fewer)),
        teacher_momentum=full.teacher_momentum ** max(1.0, published_steps / steps_per_epoch),
    )


class CosineHead(nn.Module):
    """Linear - GELU - Linear, then the cosines with k prototypes."""

    def __init__(self, width: int, hidden_size: int, n_components: int, k: int):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, hidden_size), nn.GELU(), nn.Linear(hidden_size, n_components))
        self.prototypes = nn.Linear(n_components, k, bias=False)

    def forward(self, X: Tensor) -> Tensor:
        return linear(normalize(self.layers(X)), normalize(self.prototypes.weight))


class Sharpened(nn.Module):
    """The output of a head divided by a temperature."""

    def __init__(self, head: nn.Module, temperature: float):
        super().__init__()
        self.head, self.temperature = head, temperature

    def forward(self, X: Tensor) -> Tensor:
        return self.head(X) / self.temperature


class StudentsAndTeachers(nn.Module):
    """Heads, their moving averages, the cluster sizes by these (p), and the losses of the newest epoch."""

    prior: Tensor
    losses: Tensor

    def __init__(self, students: nn.ModuleList, k: int, temperature: float):
        super().__init__()
        self.students, self.temperature = students, temperature
        self.teachers = copy.deepcopy(students).requires_grad_(False)
        self.register_buffer("prior", torch.full((len(students), k), 1 / k))
        self.register_buffer("losses", torch.zeros(len(students)))

    def probabilities(self, heads: nn.ModuleList, X: Tensor) -> Tensor:
        """heads x n x k."""
        return torch.softmax(torch.stack([head(X) for head in heads]) / self.temperature, dim=2)


class TEMIBatch:
    """Rows and a neighbour of each, and their probabilities by students and teachers."""

    def __init__(self, network: StudentsAndTeachers, X: Tensor, X_other: Tensor, exponent: float):
        self.network, self.X, self.X_other, self.exponent = network, X, X_other, exponent

    @cached_property
    def students(self) -> tuple[Tensor, Tensor]:
        both = self.network.probabilities(self.network.students, torch.cat([self.X, self.X_other]))
        return both[:, : len(self.X)], both[:, len(self.X) :]

    @cached_property
    def teachers(self) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            both = self.network.probabilities(self.network.teachers, torch.cat([self.X, self.X_other]))
        return both[:, : len(self.X)], both[:, len(self.X) :]

    @cached_property
    def by_head(self) -> Tensor:
        """The loss of each head, both ways round."""
        (s, s_other), (t, t_other), p = self.students, self.teachers, self.network.prior
        w = sameness(t, t_other)
        return (temi(s, t_other, w, p, self.exponent) + temi(s_other, t, w, p, self.exponent)) / 2


class TeacherUpdate(Callback):
    """After every step: teacher <- m teacher + (1 - m) student, and p likewise follows the sizes of the clusters."""

    def __init__(self, momentum: float, prior_momentum: float = 0.9):
        self.momentum, self.prior_momentum = momentum, prior_momentum

    def on_step(self, training: Training) -> None:
        network = training.network
        assert isinstance(network, StudentsAndTeachers)
        with torch.no_grad():
            for slow, fast in zip(network.teachers.parameters(), network.students.parameters(), strict=True):
                slow.lerp_(fast, 1 - self.momentum)
            seen = torch.cat(training.batch.teachers, dim=1).mean(1)
            network.prior.lerp_(seen, 1 - self.prior_momentum)
