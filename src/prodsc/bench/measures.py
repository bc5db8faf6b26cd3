"""What a trial measures: a fit of one method on one data set, and its scores."""

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from prodsc.bench.trials import Measured, Trial
from prodsc.core import metrics
from prodsc.estimators.base import Clusterer
from prodsc.estimators.capabilities import Capability, can, method_of
from prodsc.random import sorted_subset
from prodsc.registry import make
from prodsc.sources.door import open_source
from prodsc.sources.named import NoSplitError
from prodsc.sources.source import Source, Split
from prodsc.system import peak_memory_mb
from prodsc.training import Callback


@dataclass
class ScoredFit:
    """A fitted model and the rows it is scored on."""

    model: Any
    X: np.ndarray  # what it was fitted on
    y: np.ndarray | None
    X_test: np.ndarray  # the test rows, or X again
    y_test: np.ndarray | None
    labels: np.ndarray  # of the test rows
    seconds: float
    notes: list[str]

    def scores(self) -> dict[str, float]:
        """ACC, NMI and ARI in percent where classes are known; seconds and peak memory always."""
        known = {} if self.y_test is None else metrics.scores(self.y_test, self.labels)
        numbers = {name: 100 * value for name, value in known.items()}
        return numbers | {"seconds": self.seconds, "peak_memory_mb": peak_memory_mb()}


def scores(trial: Trial, checkpoint: Path) -> Measured:
    """The measure of most trials: scores, cost and labels."""
    fitted = fit_trial(trial, checkpoint)
    return Measured(fitted.scores(), {"labels": fitted.labels.astype(np.int32)}, fitted.notes)


def fit_trial(trial: Trial, checkpoint: Path, callbacks: Sequence[Callback] = ()) -> ScoredFit:
    """Fit the training rows and label the test rows.

    Where a data set has no split, or the method cannot label new rows, the rows that are scored are fitted.

    Parameters
    ----------
    trial : Trial
        What to fit. With the option `affinity` = "shared" all seeds use one affinity file.
    checkpoint : Path
        File for the state of training.
    callbacks : sequence of Callback
        For the training loop.

    Returns
    -------
    ScoredFit
    """
    model = make_model(trial)
    notes = []
    if trial.options.get("affinity") == "shared":
        checkpoint = checkpoint.with_name(f"{replace(trial, seed=0).key}.affinity.safetensors")
        if checkpoint.exists():
            notes.append("the affinity depends on no seed and is that of an earlier run: seconds do not include it")
    train, test = train_and_test(trial, can(model, Capability.PREDICT))
    X, y = sample(train, trial.rows)
    X = suitable_rows(model, X)
    start = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        model.fit(X, callbacks=callbacks, checkpoint=checkpoint)
        seconds = time.perf_counter() - start
        if test is train:
            X_test, y_test, labels = X, y, model.labels_
        else:
            X_test, y_test = suitable_rows(model, test.X), test.y
            labels = method_of(model, Capability.PREDICT)(X_test)
    return ScoredFit(model, X, y, X_test, y_test, labels, seconds, [*notes, *(str(w.message) for w in caught)])


def make_model(trial: Trial) -> Clusterer:
    """The estimator of a trial, not fitted."""
    return make(trial.method, **{"random_state": trial.seed, **trial.parameters})


def train_and_test(trial: Trial, inductive: bool) -> tuple[Source, Source]:
    """The rows to fit and the rows to score; the same object where there is no split or none is wanted."""
    test = scored_rows(trial.dataset, trial.options.get("split", "test"))
    same_rows = test.info is not None and test.info.split == "whole"
    if test.split == "all" or not inductive or same_rows:
        return test, test
    return open_source(trial.dataset, split="train"), test


def scored_rows(dataset: str, split: Split = "test") -> Source:
    """The rows that a trial scores: the test rows, or all rows where there is no split."""
    try:
        return open_source(dataset, split=split)
    except NoSplitError:
        return open_source(dataset)


def sample(data: Source, max_rows: int | None) -> tuple[np.ndarray, np.ndarray | None]:
    """At most `max_rows` rows and their classes, always the same ones."""
    if max_rows is None or len(data.X) <= max_rows:
        return data.X, data.y
    rows = sorted_subset(len(data.X), max_rows)
    return data.X[rows], None if data.y is None else data.y[rows]


def suitable_rows(model: Clusterer, X: np.ndarray) -> np.ndarray:
    """Images as vectors, for a method that takes vectors."""
    return X if X.ndim == 2 or model._takes_images(X) else X.reshape(len(X), -1)
