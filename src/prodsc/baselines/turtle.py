"""TURTLE: the labels of frozen features that a linear classifier learns fastest."""

from functools import cached_property
from typing import Any

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, cross_val_score
from torch import Tensor, nn
from torch.nn.functional import linear, normalize

from prodsc.core.losses import Objective, Term, fitted_classifier, negative_entropy, soft_cross_entropy
from prodsc.estimators.base import Clusterer
from prodsc.estimators.capabilities import Capability, method_of
from prodsc.estimators.soft import SoftClusterer
from prodsc.nn import build_seeded
from prodsc.random import StepStream, Stream, generator
from prodsc.sources.rows import RowReader
from prodsc.sources.source import RowsInput
from prodsc.training import Batches, Phase, Training


class TURTLE(SoftClusterer):
    """Clustering frozen features by the margin of a linear classifier on the labels (TURTLE, ICML 2024).

    Labels t(x) = softmax of a weight-normalised linear layer. At each step a new linear classifier takes `inner_steps`
    of Adam on these labels, held constant, and then the labels take one on

        CE(classifier(x), t(x)), the classifier held constant, - entropy_weight H(mean t)

    See docs/methods/turtle.md.
    """

    departures = (
        "one feature space; one scale for all columns; 500 steps with rates of 5e-3 and 3e-3 (inner) instead "
        "of 6,000 with 1e-3"
    )

    network_: "WeightNormalised"

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        scaling: str = "global",
        entropy_weight: float = 10.0,
        inner_steps: int = 10,
        inner_learning_rate: float = 3e-3,
        batch_size: int = 10_000,
        steps: int = 500,
        learning_rate: float = 5e-3,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.scaling = scaling
        self.entropy_weight = entropy_weight
        self.inner_steps = inner_steps
        self.inner_learning_rate = inner_learning_rate
        self.batch_size = batch_size
        self.steps = steps
        self.learning_rate = learning_rate
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    def _network(self, sample: Tensor) -> "WeightNormalised":
        generator = torch.Generator().manual_seed(self.seed_)
        return WeightNormalised(build_seeded(lambda: nn.Linear(sample.shape[1], self.n_clusters_), generator))

    def _prepare(self, rows: RowReader) -> None:
        whole = len(rows) <= self.batch_size  # then every batch is all rows, which are scaled once
        self._all_rows = rows[slice(None)].to(self.device_) if whole else None

    def _objective(self) -> Objective["TURTLEBatch"]:
        return Objective(
            Term("cross_entropy", 1.0, lambda s: soft_cross_entropy(s.logits, s.T)),
            Term("negative_entropy", self.entropy_weight, lambda s: negative_entropy(s.T)),
        )

    def _phases(self, objective: Objective[Any], n_rows: int) -> list[Phase]:
        batches = Batches(n_rows, self.batch_size, (self.seed_, Stream.FIRST_PHASE))
        return [Phase("joint", self.steps, tuple(objective.terms), batches, self._adam)]

    def _adam(self, network: nn.Module) -> torch.optim.Optimizer:
        return torch.optim.Adam(network.parameters(), lr=self.learning_rate)

    def _step(self, rows: RowReader, phase: Phase, t: int) -> "TURTLEBatch":
        start = generator(*phase.batches.seed, t, StepStream.CLASSIFIER)
        X = rows[phase.batches[t]].to(self.device_) if self._all_rows is None else self._all_rows
        return TURTLEBatch(self, X, start)

    def _finish(self, training: Training, rows: RowReader) -> None:
        del self._all_rows
        super()._finish(training, rows)

    def _logits(self) -> nn.Module:
        return self.network_


class WeightNormalised(nn.Module):
    """x -> g v'x / |v| + b for each cluster: direction and length are separate weights."""

    def __init__(self, start: nn.Module):
        super().__init__()
        assert isinstance(start, nn.Linear)
        self.v, self.bias = start.weight, start.bias
        self.g = nn.Parameter(start.weight.detach().norm(dim=1, keepdim=True))

    def forward(self, X: Tensor) -> Tensor:
        return linear(X, self.g * normalize(self.v), self.bias)


class TURTLEBatch:
    """Rows, their labels by the network, and the logits of a new classifier fitted to these."""

    def __init__(self, model: TURTLE, X: Tensor, generator: np.random.Generator):
        self.model, self.X, self.generator = model, X, generator

    @cached_property
    def T(self) -> Tensor:
        return torch.softmax(self.model.network_(self.X), dim=1)

    @cached_property
    def logits(self) -> Tensor:
        width, k = self.X.shape[1], self.T.shape[1]
        start = torch.from_numpy(self.generator.uniform(-1, 1, (width + 1, k)) / width**0.5).to(self.X)
        weight, bias = start[:-1].T.contiguous(), start[-1]
        return fitted_classifier(
            self.X, self.T.detach(), weight, bias, self.model.inner_steps, self.model.inner_learning_rate
        )


def cross_validated_accuracy(model: Clusterer, X: RowsInput, folds: int = 10) -> float:
    """How well logistic regression predicts the labels of a model: accuracy in cross-validation.

    A score without true labels, by which the authors of TURTLE choose between settings and seeds.

    Parameters
    ----------
    model : Clusterer
        A fitted model with `predict`.
    X : array, tensor, frame or path
        Rows.
    folds : int
        Number of folds.

    Returns
    -------
    float
        0 if all rows have one label.
    """
    rows = model._new_rows(X)
    labels = method_of(model, Capability.PREDICT)(X)
    if len(np.unique(labels)) == 1:
        return 0.0  # one cluster for all rows is trivial to learn
    features = torch.cat([*rows.chunks()]).numpy()
    split = KFold(folds, shuffle=True, random_state=model.seed_)
    return float(cross_val_score(LogisticRegression(max_iter=1000), features, labels, cv=split).mean())
