"""Figures of one fit, by name. Figures of many fits are made by `prodsc reproduce`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from prodsc.errors import InputError, ParameterError, did_you_mean
from prodsc.estimators.base import Clusterer
from prodsc.estimators.capabilities import Capability, can, require_capability
from prodsc.export.targets import check_target
from prodsc.pro_dsc.diagnosis import diagnose
from prodsc.random import sorted_subset
from prodsc.sources.rows import as_array
from prodsc.sources.source import RowsInput
from prodsc.training.meters import Meters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIGURE_SUFFIXES = (".png", ".svg", ".pdf")
MAX_PLOTTED_ROWS = 2000  # a reader cannot tell more dots apart


@dataclass(frozen=True)
class FittedData:
    """A fitted model and its rows, with what the figures compute from them."""

    model: Any
    X: np.ndarray
    y: np.ndarray | None  # known classes
    images: np.ndarray | None

    @cached_property
    def rows(self) -> np.ndarray:
        """Numbers of the rows that are plotted."""
        return sorted_subset(len(self.X), MAX_PLOTTED_ROWS)

    @cached_property
    def flat(self) -> np.ndarray:
        """The plotted rows of X, as vectors."""
        return np.asarray(self.X[self.rows], dtype=np.float32).reshape(len(self.rows), -1)

    @cached_property
    def Z(self) -> np.ndarray:
        """The learned representation of the plotted rows."""
        return self.model.transform(self.X[self.rows])

    @property
    def groups(self) -> np.ndarray:
        """What rows are sorted and coloured by: known classes, else the clusters."""
        return self.model.clusters_ if self.y is None else self.y

    @property
    def group_name(self) -> str:
        return "cluster" if self.y is None else "class"

    def train_with_meters(self, spectra: bool, n_epochs: int = 40) -> Meters:
        """Train again with the same parameters and seed, measuring at the end of about `n_epochs` epochs."""
        epochs = max(1, int(np.max(self.model.history_["epoch"], initial=1)))
        meters = Meters(self.groups, max(1, epochs // n_epochs), spectra)
        clone(self.model).fit(self.X, callbacks=[meters])
        if not meters.numbers:
            raise InputError(
                f"this {type(self.model).__name__} was fitted without a joint phase of training, so there is nothing "
                "to measure."
            )
        return meters


def _alignment(fit: FittedData) -> "Figure":
    from prodsc.report.theory_figures import alignment

    meters = fit.train_with_meters(spectra=True)
    epochs = np.array(meters.numbers["epoch"])
    some = np.unique(np.linspace(0, len(epochs) - 1, 7).round().astype(int))
    curves = {name: np.stack(values)[some] for name, values in meters.curves.items()}
    return alignment(
        np.array([meters.numbers["commutator"]]),
        curves["correlations"],
        curves["eigenvalues_G"],
        curves["eigenvalues_M"],
        epochs,
        epochs[some],
    )


def _csc(fit: FittedData) -> "Figure":
    from prodsc.report.theory_figures import structure

    numbers = fit.train_with_meters(spectra=False).numbers
    names = ("epoch", "csc", "g_inside", "g_outside", "c_inside", "c_outside")
    return structure(*(numbers[name] for name in names), what=fit.group_name)


def _gram(fit: FittedData) -> "Figure":
    from prodsc.report.figures import gram

    return gram(fit.flat, fit.Z, fit.model.clusters_[fit.rows])


def _k(fit: FittedData) -> "Figure":
    from prodsc.report.fit_figures import k_curve

    if fit.model.k_curve_ is None:
        raise InputError(
            f"this {type(fit.model).__name__} was given n_clusters={fit.model.n_clusters_}, so there is no curve over "
            "k. Fit with -k auto, or draw the curve of a file with `prodsc k FILE --out FOLDER`."
        )
    return k_curve(fit.model.k_curve_)


def _learning_curves(fit: FittedData) -> "Figure":
    from prodsc.report.figures import learning_curves

    columns = {name: column.tolist() for name, column in fit.model.history_.items()}
    if not columns["step"]:
        raise InputError(
            f"this {type(fit.model).__name__} was fitted without a training step, so there is no curve to draw."
        )
    return learning_curves(columns)


def _map(fit: FittedData) -> "Figure":
    from prodsc.report.figures import embed_2d, map_2d

    _, places = embed_2d(fit.Z, max_rows=MAX_PLOTTED_ROWS)
    known = can(fit.model, Capability.PROBABILITIES)
    confidence = fit.model.predict_proba(fit.X[fit.rows]).max(1) if known else None
    return map_2d(places, fit.model.clusters_[fit.rows], confidence)


def _orthogonal(fit: FittedData) -> "Figure":
    from prodsc.report.theory_figures import orthogonal

    return orthogonal(fit.flat, fit.Z, fit.groups[fit.rows], what=fit.group_name)


def _singular_values(fit: FittedData) -> "Figure":
    from prodsc.report.theory_figures import singular_values

    return singular_values(fit.flat, fit.Z, fit.groups[fit.rows], what=fit.group_name)


def _spectrum(fit: FittedData) -> "Figure":
    from prodsc.report.figures import spectrum

    return spectrum(fit.Z)


def _subspaces(fit: FittedData) -> "Figure":
    from prodsc.report.theory_figures import aligned_rows, subspaces

    images = fit.X if fit.images is None else fit.images
    if images.ndim < 3 or len(images) != len(fit.X):
        raise InputError(
            f"the figure subspaces shows images, one for each of {len(fit.X)} rows; got shape {images.shape}. "
            "Give the images of these rows (--images)."
        )
    rows, clusters = aligned_rows(fit.model.transform(fit.X), fit.model.clusters_, 8)
    return subspaces(images[rows], clusters=clusters.tolist())


def _tsne(fit: FittedData) -> "Figure":
    from prodsc.report.figures import embed_2d, two_maps

    before, after = (embed_2d(U, max_rows=MAX_PLOTTED_ROWS)[1] for U in (fit.flat, fit.Z))
    return two_maps(before, after, fit.groups[fit.rows], what=fit.group_name)


def _water_filling(fit: FittedData) -> "Figure":
    from prodsc.report.theory_figures import water_filling

    d = diagnose(fit.model, fit.X)
    if d.predicted is None or d.nu is None:
        raise InputError(
            f"the figure water-filling shows what the coding rate does, and this {type(fit.model).__name__} was fitted "
            "without it (anti_collapse='none')."
        )
    return water_filling(d.eigenvalues_M, d.alpha, d.gamma, d.nu, d.predicted, d.observed)


@dataclass(frozen=True)
class FigureKind:
    """How a figure is drawn, what it shows, and what a method must offer for it."""

    draw: Callable[[FittedData], "Figure"]
    description: str
    needs: tuple[Capability, ...] = (Capability.TRANSFORM,)
    trains_again: bool = False


FIGURES: dict[str, FigureKind] = {
    "alignment": FigureKind(
        _alignment, "G = Z'Z and M = (I-C)(I-C)' come to share eigenvectors", (Capability.DIAGNOSE,), True
    ),
    "csc": FigureKind(
        _csc, "G and C become block-diagonal: CSC, entries in and off the blocks", (Capability.DIAGNOSE,), True
    ),
    "gram": FigureKind(_gram, "how alike each two rows are, in X and in Z, sorted by cluster"),
    "k": FigureKind(_k, "the score of every number of clusters, after -k auto", (Capability.K_CURVE,)),
    "learning-curves": FigureKind(_learning_curves, "every term of the loss, step by step", (Capability.HISTORY,)),
    "map": FigureKind(_map, "rows in the plane, coloured by cluster, pale where confidence is low"),
    "orthogonal": FigureKind(_orthogonal, "gram by class where classes are known, and three of them in 3-D"),
    "singular-values": FigureKind(_singular_values, "of X and Z, of all rows and of each class or cluster"),
    "spectrum": FigureKind(_spectrum, "singular values of Z and its effective rank"),
    "subspaces": FigureKind(_subspaces, "per cluster the images most aligned with its principal directions"),
    "tsne": FigureKind(_tsne, "t-SNE of X beside that of Z"),
    "water-filling": FigureKind(
        _water_filling, "the spectrum that Theorem 2 predicts, and the one observed", (Capability.DIAGNOSE,)
    ),
}


def check_name(name: str) -> str:
    """The name of a figure, or an error that lists them."""
    if name not in FIGURES:
        raise ParameterError(
            f"there is no figure '{name}'{did_you_mean(name, list(FIGURES)) or '.'} Known: {', '.join(FIGURES)}."
        )
    return name


def figure(
    name: str,
    model: Clusterer,
    X: RowsInput,
    path: str | Path | Sequence[str | Path] = (),
    y: ArrayLike | None = None,
    *,
    images: np.ndarray | None = None,
    force: bool = False,
) -> "Figure":
    """Draw a figure of a fitted model.

    The figures `alignment` and `csc` train a copy of the model again, to measure during training.

    Parameters
    ----------
    name : str
        One of `FIGURES`: "map", "gram", "singular-values", ...
    model : estimator
        A fitted model.
    X : array-like or path
        The rows it was fitted on.
    path : path or sequence of paths, optional
        Files to write, ending in .png, .svg or .pdf.
    y : array of shape (n,), optional
        Known classes, to sort and colour rows by instead of clusters.
    images : array of shape (n, height, width[, channels]), optional
        The image of each row, for the figure "subspaces".
    force : bool, default=False
        Replace existing files.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ParameterError
        If there is no such figure, or the method cannot provide what it shows.
    InputError
        If X is not what the model was fitted on, or this fit has nothing to show.
    """
    kind = FIGURES[check_name(name)]
    paths = [path] if isinstance(path, (str, Path)) else list(path)
    targets = [check_target(each, FIGURE_SUFFIXES, force) for each in paths]
    for capability in kind.needs:
        require_capability(model, capability, f"the figure {name}")
    array = as_array(X)
    if len(array) != len(model.clusters_):
        raise InputError(
            f"X has {len(array)} rows, the model was fitted on {len(model.clusters_)}; give the fitted rows."
        )
    drawn = kind.draw(FittedData(model, array, None if y is None else np.asarray(y), images))
    from prodsc.report.save import save_figure

    for target in targets:
        save_figure(drawn, target)
    return drawn
