"""What only the paper's tables and figures measure. A trial names these functions as "prodsc.paper.measures:NAME"."""

import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

from prodsc.bench.measures import ScoredFit, fit_trial, sample, train_and_test
from prodsc.bench.trials import Measured, Trial
from prodsc.core import metrics, theory
from prodsc.errors import InputError
from prodsc.estimators.capabilities import Capability, can
from prodsc.paper.augment import Augmented, generator_of
from prodsc.paper.byol import BYOLSettings, encode, pretrain
from prodsc.paper.resnet import resnet18, resnet34
from prodsc.pro_dsc.diagnosis import diagnose
from prodsc.pro_dsc.labeller import fit_labeller
from prodsc.random import sorted_subset
from prodsc.registry import make
from prodsc.sources.door import open_source
from prodsc.system import peak_memory_mb
from prodsc.training import Callback, Training
from prodsc.training.meters import Meters


def self_expression(trial: Trial, checkpoint: Path) -> Measured:
    """Scores, and SRE, the largest eigenvalue of M and the effective rank on one batch of test rows."""
    fitted = fit_trial(trial, checkpoint)
    X, classes = one_batch(fitted)
    C = torch.from_numpy(fitted.model.coefficients(X))
    numbers = fitted.scores() | {"lambda_max": float(theory.lambda_max(C))}
    numbers["effective_rank"] = float(theory.effective_rank(torch.from_numpy(fitted.model.transform(X))))
    if classes is not None:
        numbers["SRE"] = metrics.subspace_preserving_error(C, classes)
    return Measured(numbers, notes=fitted.notes)


def one_batch(fitted: ScoredFit) -> tuple[np.ndarray, np.ndarray | None]:
    """As many test rows as a training batch has, and their classes."""
    rows = sorted_subset(len(fitted.X_test), fitted.model.config_.batch_size)
    return fitted.X_test[rows], None if fitted.y_test is None else fitted.y_test[rows]


def meters(trial: Trial, checkpoint: Path) -> Measured:
    """Alignment and block structure during training, every `every` epochs; whole curves of at most seven epochs."""
    y = sample(train_and_test(trial, inductive=True)[0], trial.rows)[1]
    recorded = Meters(classes=y, every=int(trial.options.get("every", 1)), spectra=True)
    fitted = fit_trial(trial, _no_checkpoint(checkpoint), [recorded])
    arrays = {name: np.array(values) for name, values in recorded.numbers.items()}
    chosen = np.unique(np.linspace(0, len(arrays["epoch"]) - 1, 7).round().astype(int))
    arrays["curve_epoch"] = arrays["epoch"][chosen]
    last = {f"last_{name}": float(values[-1]) for name, values in arrays.items()}
    curves = {name: np.stack(values)[chosen] for name, values in recorded.curves.items()}
    return Measured(fitted.scores() | last, arrays | curves, fitted.notes)


def _no_checkpoint(checkpoint: Path) -> Path:
    """A file name that no later call looks for: what callbacks record is not part of a checkpoint."""
    return Path(f"{checkpoint}.none")


def representation(trial: Trial, checkpoint: Path, max_rows: int = 2000) -> Measured:
    """Some rows of X, their Z, labels and classes, and the numbers of `diagnose`."""
    fitted = fit_trial(trial, checkpoint)
    rows = sorted_subset(len(fitted.X_test), max_rows)
    X = np.asarray(fitted.X_test[rows], dtype=np.float32).reshape(len(rows), -1)
    Z = fitted.model.transform(fitted.X_test[rows])
    numbers = fitted.scores() | {"effective_rank": float(theory.effective_rank(torch.from_numpy(Z)))}
    arrays = {"X": X, "Z": Z, "labels": fitted.labels[rows], "rows": rows}
    if fitted.y_test is not None:
        arrays["classes"] = fitted.y_test[rows]
        classes = torch.from_numpy(np.asarray(fitted.y_test[rows], dtype=np.int64))
        for name, U in {"X": X, "Z": Z}.items():
            unit = torch.nn.functional.normalize(torch.from_numpy(U))
            inside, outside = theory.block_means(unit @ unit.T, classes)
            numbers |= {f"{name} inside": float(inside), f"{name} across": float(outside)}
    if can(fitted.model, Capability.DIAGNOSE):
        diagnosis = diagnose(fitted.model, fitted.X_test)
        arrays |= {"eigenvalues_M": diagnosis.eigenvalues_M, "observed": diagnosis.observed}
        numbers |= {"alpha": diagnosis.alpha, "gamma": diagnosis.gamma}
        if diagnosis.predicted is not None and diagnosis.nu is not None:
            arrays["predicted"], numbers["nu"] = diagnosis.predicted, diagnosis.nu
        fitted.notes.append(f"diagnose: {diagnosis.representation}")
    return Measured(numbers, arrays, fitted.notes)


@dataclass
class SnapshotCallback(Callback):
    """Copies the weights every few epochs of the joint phase, and at its end."""

    every: int
    weights: dict[int, dict[str, torch.Tensor]] = field(default_factory=dict)  # by epoch

    def on_step(self, training: Training) -> None:
        phase, step = training.current, training.step
        epoch, within = divmod(step, phase.batches.per_epoch)
        if phase.name == "joint" and not within and (epoch % self.every == 0 or step == phase.steps):
            self.weights[epoch] = {name: value.clone() for name, value in training.network.state_dict().items()}


def learning_curves(trial: Trial, checkpoint: Path) -> Measured:
    """The terms of the loss at every step, and scores every `every` epochs from the end of warm-up."""
    snapshots = SnapshotCallback(int(trial.options.get("every", 1)))
    fitted = fit_trial(trial, _no_checkpoint(checkpoint), [snapshots])
    if fitted.y_test is None:
        raise InputError(f"{trial.dataset} has no labels, and learning curves are curves of scores.")
    model = fitted.model
    rows, test_rows = model._new_rows(fitted.X), model._new_rows(fitted.X_test)
    scores: dict[str, list[float]] = {}
    for epoch, weights in snapshots.weights.items():
        model.network_.load_state_dict(weights)
        labeller, _ = fit_labeller(model.network_, model.config_, rows, seed=model.seed_, device=model.device_)
        labels = np.concatenate([part[0] for part in labeller.label(test_rows)])
        for name, value in ({"epoch": float(epoch)} | metrics.scores(fitted.y_test, labels)).items():
            scores.setdefault(name, []).append(value)
    arrays = {f"score_{name}": np.array(values) for name, values in scores.items()}
    history = {name: column for name, column in model.history_.items() if column.dtype.kind != "U"}
    arrays |= {"phase": np.array(model.history_["phase"])} | history
    last = {name: 100 * values[-1] for name, values in scores.items() if name != "epoch"}
    return Measured(last, arrays, fitted.notes)


def clusterers_on_features(trial: Trial, checkpoint: Path) -> Measured:
    """Scores of other methods (option `clusterers`) on a learned representation; method "none" means X itself."""
    notes: list[str] = []
    if trial.method == "none":
        Z, y = sample(train_and_test(trial, inductive=False)[1], trial.rows)
    else:
        fitted = fit_trial(trial, checkpoint)
        Z, y, notes = fitted.model.transform(fitted.X_test), fitted.y_test, fitted.notes
    if y is None:
        raise InputError(f"{trial.dataset} has no labels to score with.")
    numbers: dict[str, float] = {}
    for name, parameters in trial.options["clusterers"].items():
        labels = make(name, **{"random_state": trial.seed, **parameters}).fit_predict(Z)
        numbers |= {f"{name} {metric}": 100 * value for metric, value in metrics.scores(y, labels).items()}
    return Measured(numbers, notes=notes)


class EpochClock(Callback):
    """The time at the end of each epoch."""

    def __init__(self) -> None:
        self.ends: list[float] = []

    def on_step(self, training: Training) -> None:
        if training.step % training.current.batches.per_epoch == 0:
            self.ends.append(time.perf_counter())


def cost(trial: Trial, checkpoint: Path) -> Measured:
    """Seconds of one training epoch (median, without the first) and the peak memory of the process."""
    clock = EpochClock()
    fitted = fit_trial(trial, _no_checkpoint(checkpoint), [clock])
    seconds = np.diff(clock.ends)
    if not len(seconds):
        raise InputError("cost needs at least two epochs of training to time one.")
    return Measured({"seconds": float(np.median(seconds)), "MiB": peak_memory_mb()}, notes=fitted.notes)


def sphere(trial: Trial, checkpoint: Path) -> Measured:
    """The synthetic figure: X and Z in three dimensions, the smallest angle between classes, rank and ACC."""
    fitted = fit_trial(trial, checkpoint)
    Z = fitted.model.transform(fitted.X_test)
    assert fitted.y_test is not None
    numbers = fitted.scores() | {"effective_rank": float(theory.effective_rank(torch.from_numpy(Z)))}
    classes = np.asarray(fitted.y_test, dtype=np.int64)
    angles = theory.smallest_subspace_angles(torch.from_numpy(Z), torch.from_numpy(classes))
    numbers["angle"] = float(angles[~torch.eye(len(angles), dtype=torch.bool)].min())
    arrays = {"X": np.asarray(fitted.X_test), "Z": Z, "labels": fitted.labels, "classes": classes}
    return Measured(numbers, arrays, fitted.notes)


def subspaces(trial: Trial, checkpoint: Path) -> Measured:
    """The images most aligned with each principal direction of a cluster.

    Where the rows are features, the option `images` names the data set with the images of the scored rows.
    """
    from prodsc.report.theory_figures import aligned_rows

    fitted = fit_trial(trial, checkpoint)
    named = trial.options.get("images")
    images = fitted.X_test if named is None else open_source(named).X
    if len(images) != len(fitted.X_test):
        raise InputError(f"{named or trial.dataset} has {len(images)} images for {len(fitted.X_test)} rows.")
    if images.ndim < 3:
        raise InputError(f"{named or trial.dataset} holds rows, not images, so there is nothing to show.")
    rows, _ = aligned_rows(fitted.model.transform(fitted.X_test), fitted.labels, 8)
    return Measured(fitted.scores(), {"images": images[rows], "rows": rows}, fitted.notes)


def from_scratch(trial: Trial, checkpoint: Path) -> Measured:
    """BYOL pre-training of a ResNet on images, then PRO-DSC end to end; k-means on pixels and features beside it.

    The option `backbone` names the network, `width` its first channels; all other options are BYOL's settings.
    """
    options = {"width": 64, **trial.options}
    make_network = {"resnet18": resnet18, "resnet34": resnet34}[options.pop("backbone")]
    X, y = sample(open_source(trial.dataset), trial.rows)
    if y is None or X.ndim < 3:
        raise InputError(f"{trial.dataset} must hold images with labels to score by.")
    network = make_network(generator_of(trial.seed), width=options.pop("width"))
    byol_checkpoint = checkpoint.with_suffix(".byol.safetensors")
    pretrained = pretrain(network, X, BYOLSettings(**options), seed=trial.seed, checkpoint=byol_checkpoint)
    start = time.perf_counter()
    encoder = Augmented(pretrained.encoder, seed=trial.seed)
    model = make("pro-dsc", **trial.parameters, encoder=encoder, random_state=trial.seed)
    labels = model.fit(X, checkpoint=checkpoint).labels_
    numbers = {name: 100 * value for name, value in metrics.scores(y, labels).items()}
    numbers["seconds"] = time.perf_counter() - start
    k = trial.parameters["n_clusters"]
    for name, rows in (("pixels", X.reshape(len(X), -1)), ("BYOL", encode(pretrained.encoder, X))):
        baseline = make("k-means", n_clusters=k, random_state=trial.seed).fit_predict(rows)
        numbers |= {f"k-means on {name} {m}": 100 * v for m, v in metrics.scores(y, baseline).items()}
    loss = pretrained.history["prediction"]
    numbers |= {"BYOL loss at first": float(loss[:10].mean()), "BYOL loss at last": float(loss[-10:].mean())}
    byol_checkpoint.unlink(missing_ok=True)
    return Measured(numbers, {"loss": loss})
