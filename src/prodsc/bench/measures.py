"""What a trial measures: each function fits, looks, and gives numbers (and arrays, when a picture needs them)."""

import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from prodsc.bench.trials import Trial
from prodsc.core import metrics, theory
from prodsc.errors import InputError
from prodsc.estimators.base import Clusterer
from prodsc.paper.augment import Augmented, generator_of
from prodsc.paper.byol import Settings, encode, pretrain
from prodsc.paper.resnet import resnet18, resnet34
from prodsc.pro_dsc.diagnosis import diagnose
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.random import sorted_subset
from prodsc.registry import make
from prodsc.sources.named import Dataset, NoSplitError, Split, load_dataset
from prodsc.system import peak_memory_mb
from prodsc.training import Callback, Training
from prodsc.training.meters import Meters

SHOWN = 2000  # rows kept for a picture


@dataclass
class Measured:
    numbers: dict[str, float]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


@dataclass
class Fit:
    """A fitted model and the rows it is scored on."""

    model: Any
    X: np.ndarray  # what it was fitted on
    y: np.ndarray | None
    X_test: np.ndarray  # the test part, or X again
    y_test: np.ndarray | None
    labels: np.ndarray  # of the test rows
    seconds: float
    notes: list[str]


def fit(trial: Trial, checkpoint: Path, callbacks: Sequence[Callback] = ()) -> Fit:
    """Fit on the train part and label the test part; without parts, or for a method that only labels the rows it was
    given, fit what is scored."""
    model = make(trial.method, **{"random_state": trial.seed, **trial.parameters})
    notes = []
    if trial.options.get("affinity") == "shared":
        checkpoint = checkpoint.with_name(f"{replace(trial, seed=0).key}.affinity.safetensors")
        if checkpoint.exists():
            notes.append("the affinity, which depends on no seed, is that of an earlier run: seconds are without it")
    train, test = parts(trial, hasattr(model, "predict"))
    X, y = sample(train, trial.rows)
    X = suited(model, X)
    began = time.perf_counter()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", UserWarning)
        model.fit(X, callbacks=callbacks, checkpoint=checkpoint)
        seconds = time.perf_counter() - began
        alone = test is train
        X_test, y_test = (X, y) if alone else (suited(model, test.X), test.y)
        labels = model.labels_ if alone else model.predict(X_test)
    return Fit(model, X, y, X_test, y_test, labels, seconds, [*notes, *(str(warning.message) for warning in said)])


def parts(trial: Trial, inductive: bool) -> tuple[Dataset, Dataset]:
    """Train and test rows, the same object when there is one part only or the trial is of `split` "all"."""
    test = scored_part(trial.dataset, trial.options.get("split", "test"))
    if test.split == "all":
        return test, test
    if not inductive or test.about.split == "whole":
        return test, test
    return load_dataset(trial.dataset, "train"), test


def scored_part(dataset: str, split: Split = "test") -> Dataset:
    """The rows whose labels a trial gives: the test part, or all rows where there is none."""
    try:
        return load_dataset(dataset, split)
    except NoSplitError:
        return load_dataset(dataset)


def sample(data: Dataset, most: int | None) -> tuple[np.ndarray, np.ndarray | None]:
    if most is None or len(data.X) <= most:
        return data.X, data.y
    rows = sorted_subset(len(data.X), most)
    return data.X[rows], None if data.y is None else data.y[rows]


def suited(model: Clusterer, X: np.ndarray) -> np.ndarray:
    """Images as rows, for a method that takes rows."""
    return X if X.ndim == 2 or model._takes_images(X) else X.reshape(len(X), -1)


def scored(done: Fit) -> dict[str, float]:
    """ACC, NMI, ARI against known labels, in percent as tables print them; seconds and memory always."""
    found = {} if done.y_test is None else metrics.scores(done.y_test, done.labels)
    numbers = {name: 100 * value for name, value in found.items()}
    return numbers | {"seconds": done.seconds, "peak_memory_mb": peak_memory_mb()}


def scores(trial: Trial, checkpoint: Path) -> Measured:
    done = fit(trial, checkpoint)
    return Measured(scored(done), {"labels": done.labels.astype(np.int32)}, done.notes)


def error(trial: Trial, checkpoint: Path) -> Measured:
    """Scores, and SRE and the largest eigenvalue of M on one batch of test rows."""
    done = fit(trial, checkpoint)
    some, classes = batch_of(done)
    C = torch.from_numpy(done.model.coefficients(some))
    numbers = scored(done) | {"lambda_max": float(theory.lambda_max(C))}
    numbers["effective_rank"] = float(theory.effective_rank(torch.from_numpy(done.model.transform(some))))
    if classes is not None:
        numbers["SRE"] = metrics.subspace_preserving_error(C, classes)
    return Measured(numbers, notes=done.notes)


def batch_of(done: Fit) -> tuple[np.ndarray, np.ndarray | None]:
    """As many test rows as a training batch had."""
    n = min(len(done.X_test), done.model.config_.batch_size)
    rows = sorted_subset(len(done.X_test), n)
    return done.X_test[rows], None if done.y_test is None else done.y_test[rows]


def meters(trial: Trial, checkpoint: Path) -> Measured:
    """Alignment and structure along training. `looks`: about so many."""
    y = sample(parts(trial, True)[0], trial.rows)[1]
    watching = Meters(classes=y, every=int(trial.options.get("every", 1)), spectra=True)
    done = fit(trial, Path(f"{checkpoint}.none"), [watching])  # meters are not in a checkpoint, so none is kept
    arrays = {name: np.array(values) for name, values in watching.numbers.items()}
    curves = {name: np.stack(values) for name, values in watching.curves.items()}
    chosen = np.unique(np.linspace(0, len(arrays["epoch"]) - 1, 7).round().astype(int))
    arrays["curve_epoch"] = arrays["epoch"][chosen]
    last = {f"last_{name}": float(values[-1]) for name, values in arrays.items()}
    return Measured(scored(done) | last, arrays | {n: c[chosen] for n, c in curves.items()}, done.notes)


def representation(trial: Trial, checkpoint: Path) -> Measured:
    """Some rows of X, their Z, labels and classes; and what theory says of the fit (`diagnose`)."""
    done = fit(trial, checkpoint)
    n = min(len(done.X_test), SHOWN)
    rows = sorted_subset(len(done.X_test), n)
    X = done.X_test[rows]
    Z = done.model.transform(X)
    numbers = scored(done) | {"effective_rank": float(theory.effective_rank(torch.from_numpy(Z)))}
    flat = np.asarray(X, dtype=np.float32).reshape(n, -1)
    arrays = {"X": flat, "Z": Z, "labels": done.labels[rows], "rows": rows}
    if done.y_test is not None:
        arrays["classes"] = done.y_test[rows]
        of = {"X": torch.from_numpy(flat), "Z": torch.from_numpy(Z)}
        classes = torch.from_numpy(np.asarray(done.y_test[rows], dtype=np.int64))
        for name, U in of.items():
            unit = torch.nn.functional.normalize(U)
            inside, outside = theory.block_means(unit @ unit.T, classes)
            numbers |= {f"{name} inside": float(inside), f"{name} across": float(outside)}
    if hasattr(done.model, "gamma_"):
        found = diagnose(done.model, done.X_test)
        arrays |= {"eigenvalues_M": found.eigenvalues_M, "observed": found.observed}
        numbers |= {"alpha": found.alpha, "gamma": found.gamma}
        if found.predicted is not None and found.nu is not None:
            arrays["predicted"], numbers["nu"] = found.predicted, found.nu
        done.notes.append(f"diagnose: {found.verdict}")
    return Measured(numbers, arrays, done.notes)


@dataclass
class Looks(Callback):
    """Labels of the scored rows every few joint epochs; the fit goes on as if nothing had looked."""

    every: int
    look: Callable[[], dict[str, float]]
    found: dict[str, list[float]] = field(default_factory=dict)

    def on_step(self, training: Training) -> None:
        phase, step = training.current, training.step
        epoch, within = divmod(step, phase.batches.per_epoch)
        if phase.name != "joint" or within or (epoch % self.every and step != phase.steps):
            return
        for name, value in ({"epoch": float(epoch)} | self.look()).items():
            self.found.setdefault(name, []).append(value)
        training.network.train()  # labelling switched it to evaluation


def curves(trial: Trial, checkpoint: Path) -> Measured:
    """The terms of the loss step by step, and scores every `every` epochs from the end of warm-up."""
    model = make(trial.method, **{"random_state": trial.seed, **trial.parameters})
    train, test = parts(trial, True)
    X, y = sample(train, trial.rows)
    X = suited(model, X)
    X_test, y_test = (X, y) if test is train else (suited(model, test.X), test.y)
    if y_test is None:
        raise InputError(f"{trial.dataset} has no labels, and learning curves are curves of scores.")

    def look() -> dict[str, float]:
        model._label(model._rows(model._checked(X, reset=False)))
        return metrics.scores(y_test, model.predict(X_test))

    looks = Looks(int(trial.options.get("every", 1)), look)
    model.fit(X, callbacks=[looks])
    arrays = {f"look_{name}": np.array(values) for name, values in looks.found.items()}
    history = {name: column for name, column in model.history_.items() if column.dtype.kind != "U"}
    arrays |= {"phase": np.array(model.history_["phase"])} | history
    last = {name: 100 * values[-1] for name, values in looks.found.items() if name != "epoch"}
    return Measured(last, arrays)


def features(trial: Trial, checkpoint: Path) -> Measured:
    """Cluster a learned representation with other methods: `clusterers` name them; method 'none' means X itself."""
    clusterers = {str(name): dict(how) for name, how in trial.options["clusterers"].items()}
    inductive = trial.method != "none"
    test = parts(trial, inductive)[1]
    numbers: dict[str, float] = {}
    notes: list[str] = []
    if inductive:
        done = fit(trial, checkpoint)
        Z, y, notes = done.model.transform(done.X_test), done.y_test, done.notes
    else:
        Z, y = sample(test, trial.rows)
    if y is None:
        raise InputError(f"{trial.dataset} has no labels to score with.")
    for name, how in clusterers.items():
        labels = make(name, **{"random_state": trial.seed, **how}).fit_predict(Z)
        numbers |= {f"{name} {metric}": 100 * value for metric, value in metrics.scores(y, labels).items()}
    return Measured(numbers, notes=notes)


def cost(trial: Trial, checkpoint: Path) -> Measured:
    """Seconds of training an epoch (median, the first one left out) and the peak memory of the process."""

    class Clock(Callback):
        ends: list[float]

        def __init__(self) -> None:
            self.ends = []

        def on_step(self, training: Training) -> None:
            if training.step % training.current.batches.per_epoch == 0:
                self.ends.append(time.perf_counter())

    clock = Clock()
    done = fit(trial, Path(f"{checkpoint}.none"), [clock])
    each = np.diff(clock.ends)
    if not len(each):
        raise InputError("cost needs at least two epochs of training to time one.")
    return Measured({"seconds": float(np.median(each)), "MiB": peak_memory_mb()}, notes=done.notes)


def sphere(trial: Trial, checkpoint: Path) -> Measured:
    """The synthetic figure: X and Z in three dimensions, the angle between what two classes span, rank and ACC."""
    done = fit(trial, checkpoint)
    Z = done.model.transform(done.X_test)
    assert done.y_test is not None
    numbers = scored(done) | {"effective_rank": float(theory.effective_rank(torch.from_numpy(Z)))}
    classes = np.asarray(done.y_test, dtype=np.int64)
    angles = theory.smallest_subspace_angles(torch.from_numpy(Z), torch.from_numpy(classes))
    numbers["angle"] = float(angles[~torch.eye(len(angles), dtype=torch.bool)].min())
    arrays = {"X": np.asarray(done.X_test), "Z": Z, "labels": done.labels, "classes": classes}
    return Measured(numbers, arrays, done.notes)


def subspaces(trial: Trial, checkpoint: Path) -> Measured:
    """Per cluster the images most aligned with each principal component of its Z.

    When the rows are features, `images` names the data set with the images of the scored rows.
    """
    done = fit(trial, checkpoint)
    named = trial.options.get("images")
    images = done.X_test if named is None else load_dataset(named).X
    if len(images) != len(done.X_test):
        raise InputError(f"{named or trial.dataset} has {len(images)} images for {len(done.X_test)} rows.")
    if images.ndim < 3:
        raise InputError(f"{named or trial.dataset} holds rows, not images, so there is nothing to show.")
    Z = done.model.transform(done.X_test)
    chosen, _ = aligned_rows(Z, done.labels, 8)
    return Measured(scored(done), {"images": images[chosen], "rows": chosen}, done.notes)


def aligned_rows(Z: np.ndarray, labels: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
    """clusters x components x images: rows of each cluster by |cosine| with its principal directions (not centred).

    Also which clusters: those with fewer than `most` rows are left out.
    """
    found, clusters = [], []
    for c in np.unique(labels):
        rows = np.flatnonzero(labels == c)
        if len(rows) < most:
            continue
        directions = np.linalg.svd(Z[rows], full_matrices=False)[2][:most]
        found.append(rows[np.argsort(-np.abs(Z[rows] @ directions.T), axis=0)[:most].T])
        clusters.append(int(c))
    if not found:
        raise InputError(f"no cluster has {most} rows, so none has {most} images for each of {most} directions.")
    return np.stack(found), np.array(clusters)


def from_scratch(trial: Trial, checkpoint: Path) -> Measured:
    """BYOL pre-training of a ResNet on the images, then PRO-DSC end to end; k-means on pixels and features beside it.

    `backbone` names the network, `width` narrows it; all other options are BYOL's settings.
    """
    options = {"width": 64, **trial.options}
    make_network = {"resnet18": resnet18, "resnet34": resnet34}[options.pop("backbone")]
    X, y = sample(load_dataset(trial.dataset), trial.rows)
    if y is None or X.ndim < 3:
        raise InputError(f"{trial.dataset} must hold images with labels to score by.")
    start = make_network(generator_of(trial.seed), width=options.pop("width"))
    found = pretrain(
        start, X, Settings(**options), seed=trial.seed, checkpoint=checkpoint.with_suffix(".byol.safetensors")
    )
    began = time.perf_counter()
    model = PRODSC(**trial.parameters, encoder=Augmented(found.encoder, seed=trial.seed), random_state=trial.seed)
    labels = model.fit(X, checkpoint=checkpoint).labels_
    numbers = {name: 100 * value for name, value in metrics.scores(y, labels).items()}
    numbers["seconds"] = time.perf_counter() - began
    k = trial.parameters["n_clusters"]
    for name, rows in (("pixels", X.reshape(len(X), -1)), ("BYOL", encode(found.encoder, X))):
        plain = make("k-means", n_clusters=k, random_state=trial.seed).fit_predict(rows)
        numbers |= {f"k-means on {name} {m}": 100 * v for m, v in metrics.scores(y, plain).items()}
    loss = found.history["prediction"]
    numbers |= {"BYOL loss at first": float(loss[:10].mean()), "BYOL loss at last": float(loss[-10:].mean())}
    checkpoint.with_suffix(".byol.safetensors").unlink(missing_ok=True)
    return Measured(numbers, {"loss": loss})


MEASURES: dict[str, Callable[[Trial, Path], Measured]] = {
    "scores": scores,
    "error": error,
    "meters": meters,
    "representation": representation,
    "curves": curves,
    "features": features,
    "from_scratch": from_scratch,
    "cost": cost,
    "sphere": sphere,
    "subspaces": subspaces,
}
