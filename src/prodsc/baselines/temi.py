"""TEMI: many small heads on frozen features, trained with moving averages of themselves on pairs of neighbours."""

import copy
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from prodsc.core.graph import nearest_neighbours
from prodsc.core.losses import Objective, Term, sameness, temi
from prodsc.estimators.soft import HeadLosses, SoftClusterer, one_of
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

    network_: "StudentsAndTeachers"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        n_heads: int = 50,
        n_neighbors: int = 50,
        hidden_size: int = 512,
        n_components: int = 256,
        scaling: str = "standard",
        temperature: float = 0.1,
        teacher_momentum: float = 0.996,
        exponent: float = 0.6,
        batch_size: int = 512,
        warmup_epochs: int = 20,
        epochs: int = 100,
        learning_rate: float = 2e-4,
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

    def _network(self, sample: Tensor) -> "StudentsAndTeachers":
        generator = torch.Generator().manual_seed(self.seed_)
        width, k = sample.shape[1], self.n_clusters_
        heads = [
            build_seeded(lambda: CosineHead(width, self.hidden_size, self.n_components, k), generator)
            for _ in range(self.n_heads)
        ]
        return StudentsAndTeachers(nn.ModuleList(heads), k, self.temperature)

    def _prepare(self, rows: RowReader) -> None:
        X = torch.cat([*rows.chunks()]).to(self.device_)
        self._neighbours = nearest_neighbours(X, self.n_neighbors).cpu()

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
            network.students.parameters(), lr=self.learning_rate, weight_decay=self.weight_decay, fused=True
        )

    def _step(self, rows: RowReader, phase: Phase, t: int) -> "TEMIBatch":
        batch = phase.batches[t]
        X, X_other = (rows[which].to(self.device_) for which in (batch, one_of(self._neighbours, batch, phase, t)))
        return TEMIBatch(self.network_, X, X_other, self.exponent)

    def _listeners(self) -> list[Callback]:
        return [Schedule(warm_up=linear_warmup), TeacherUpdate(self.teacher_momentum), HeadLosses("temi")]

    def _finish(self, training: Training, rows: RowReader) -> None:
        del self._neighbours  # n x n_neighbors: only training reads it
        super()._finish(training, rows)

    def _probabilities(self, X: Tensor) -> Tensor:
        best = int(self.network_.losses.argmin())
        return torch.softmax(self.network_.teachers[best](X) / self.temperature, dim=1)


class CosineHead(nn.Module):
    """Linear - GELU - Linear, then the cosines with k prototypes."""

    def __init__(self, width: int, hidden_size: int, n_components: int, k: int):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(width, hidden_size), nn.GELU(), nn.Linear(hidden_size, n_components))
        self.prototypes = nn.Linear(n_components, k, bias=False)

    def forward(self, X: Tensor) -> Tensor:
        return linear(normalize(self.layers(X)), normalize(self.prototypes.weight))


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
