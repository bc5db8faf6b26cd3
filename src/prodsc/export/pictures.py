"""The paper's figures of one fit, by name. Those of many fits are made by `prodsc reproduce`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone

from prodsc.bench.measures import aligned_rows
from prodsc.errors import InputError, ParameterError, did_you_mean
from prodsc.export.targets import check_target
from prodsc.paper.plans import EXPERIMENT_BY_NAME as PAPER
from prodsc.pro_dsc.diagnosis import diagnose
from prodsc.random import sorted_subset
from prodsc.sources.rows import as_array
from prodsc.training.meters import Meters

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SUFFIXES = (".png", ".svg", ".pdf")
SHOWN = 2000  # rows drawn: more than a picture can tell apart
LOOKS = 40  # points of a curve over epochs
IMAGES = 8  # per direction, and directions per cluster


@dataclass(frozen=True)
class Subject:
    """A fitted model, its rows, and what figures take from them."""

    model: Any
    X: np.ndarray
    y: np.ndarray | None  # known classes
    images: np.ndarray | None

    @cached_property
    def rows(self) -> np.ndarray:
        return sorted_subset(len(self.X), SHOWN)

    @cached_property
    def flat(self) -> np.ndarray:
        """The drawn rows of X, as vectors."""
        return np.asarray(self.X[self.rows], dtype=np.float32).reshape(len(self.rows), -1)

    @cached_property
    def Z(self) -> np.ndarray:
        return self.model.transform(self.X[self.rows])

    @property
    def groups(self) -> np.ndarray:
        """What rows are sorted and coloured by: known classes, else the clusters."""
        return self.model.labels_ if self.y is None else self.y

    @property
    def what(self) -> str:
        return "cluster" if self.y is None else "class"

    @cached_property
    def history(self) -> dict[str, list[Any]]:
        columns = {name: column.tolist() for name, column in self.model.history_.items()}
        if not columns["step"]:
            raise InputError("this model was fitted without a training step, so there is no curve to draw.")
        return columns

    def measured(self, spectra: bool) -> Meters:
        """Train again with the same parameters and seed, and meters at the end of about LOOKS epochs."""
        epochs = max(1, int(np.max(self.model.history_["epoch"], initial=1)))
        meters = Meters(self.groups, max(1, epochs // LOOKS), spectra)
        clone(self.model).fit(self.X, callbacks=[meters])
        if not meters.numbers:
            raise InputError("this model has no joint phase of training, so there is nothing to measure.")
        return meters


def _alignment(of: Subject) -> "Figure":
    from prodsc.paper.theory_figures import alignment

    meters = of.measured(spectra=True)
    when = np.array(meters.numbers["epoch"])
    some = np.unique(np.linspace(0, len(when) - 1, 7).round().astype(int))
    curves = [np.stack(meters.curves[name])[some] for name in ("correlations", "eigenvalues_G", "eigenvalues_M")]
    return alignment(np.array([meters.numbers["commutator"]]), curves[0], curves[1], curves[2], when, when[some])


def _csc(of: Subject) -> "Figure":
    from prodsc.paper.theory_figures import structure

    numbers = of.measured(spectra=False).numbers
    names = ("epoch", "csc", "g_inside", "g_outside", "c_inside", "c_outside")
    return structure(*(numbers[name] for name in names), what=of.what)


def _gram(of: Subject) -> "Figure":
    from prodsc.report.figures import gram

    return gram(of.flat, of.Z, of.model.labels_[of.rows])


def _k(of: Subject) -> "Figure":
    from prodsc.report.fit_figures import k_curve

    if of.model.k_curve_ is None:
        raise InputError(
            f"this model was given n_clusters={of.model.n_clusters_}, so no curve was made. Fit with -k auto, or "
            "draw it with: prodsc k FILE --out FOLDER"
        )
    return k_curve(of.model.k_curve_)


def _learning_curves(of: Subject) -> "Figure":
    from prodsc.report.figures import learning_curves

    return learning_curves(of.history)


def _map(of: Subject) -> "Figure":
    from prodsc.report.figures import embed_2d, map_2d

    _, places = embed_2d(of.Z, max_rows=SHOWN)
    sure = of.model.predict_proba(of.X[of.rows]).max(1)
    return map_2d(places, of.model.labels_[of.rows], sure)


def _orthogonal(of: Subject) -> "Figure":
    from prodsc.paper.theory_figures import orthogonal

    return orthogonal(of.flat, of.Z, of.groups[of.rows], what=of.what)


def _singular_values(of: Subject) -> "Figure":
    from prodsc.paper.theory_figures import singular_values

    return singular_values(of.flat, of.Z, of.groups[of.rows], what=of.what)


def _spectrum(of: Subject) -> "Figure":
    from prodsc.report.figures import spectrum

    return spectrum(of.Z)


def _subspaces(of: Subject) -> "Figure":
    from prodsc.paper.result_figures import subspaces

    images = of.X if of.images is None else of.images
    if images.ndim < 3 or len(images) != len(of.X):
        raise InputError(
            f"the figure subspaces shows images, one for each of {len(of.X)} rows; got shape {images.shape}. "
            "Give the images of these rows (--images)."
        )
    chosen, clusters = aligned_rows(of.model.transform(of.X), of.model.labels_, IMAGES)
    return subspaces(images[chosen], clusters=clusters.tolist())


def _tsne(of: Subject) -> "Figure":
    from prodsc.report.figures import embed_2d, two_maps

    maps = [embed_2d(U, max_rows=SHOWN)[1] for U in (of.flat, of.Z)]
    return two_maps(maps[0], maps[1], of.groups[of.rows], what=of.what)


def _water_filling(of: Subject) -> "Figure":
    from prodsc.paper.theory_figures import water_filling

    found = diagnose(of.model, of.X)
    if found.predicted is None or found.nu is None:
        raise InputError("water-filling is what the coding rate does; this model has anti_collapse='none'.")
    return water_filling(found.eigenvalues_M, found.alpha, found.gamma, found.nu, found.predicted, found.observed)


# name -> how it is drawn, what it shows, and whether the model has to be trained again for it
FIGURES: dict[str, tuple[Callable[[Subject], "Figure"], str, bool]] = {
    "alignment": (_alignment, "G = Z'Z and M = (I-C)(I-C)' come to share eigenvectors", True),
    "csc": (_csc, "G and C become block-diagonal: CSC, entries in and off the blocks", True),
    "gram": (_gram, "how alike each two rows are, in X and in Z, sorted by cluster", False),
    "k": (_k, "the score of every number of clusters, after -k auto", False),
    "learning-curves": (_learning_curves, "every term of the loss, step by step", False),
    "map": (_map, "rows in the plane, coloured by cluster, pale where unsure", False),
    "orthogonal": (_orthogonal, "the same as gram by class where classes are known, and three of them in 3-D", False),
    "singular-values": (_singular_values, "of X and Z, of all rows and of each class or cluster", False),
    "spectrum": (_spectrum, "singular values of Z and its effective rank", False),
    "subspaces": (_subspaces, "per cluster the images most aligned with its principal directions", False),
    "tsne": (_tsne, "t-SNE of X beside that of Z", False),
    "water-filling": (_water_filling, "the spectrum that Theorem 2 predicts, and the one observed", False),
}


def check_name(name: str) -> str:
    if name in FIGURES:
        return name
    if name in PAPER:
        what = "table" if PAPER[name].kind == "table" else "figure of many fits"
        raise ParameterError(
            f"{name} is a {what} of the paper, not a figure of one fit; make it with: prodsc reproduce {name}"
        )
    raise ParameterError(
        f"there is no figure '{name}'{did_you_mean(name, list(FIGURES)) or '.'} Known: {', '.join(FIGURES)}."
    )


def figure(
    name: str,
    model: Any,
    X: Any,
    path: str | Path | Sequence[str | Path] = (),
    y: ArrayLike | None = None,
    *,
    images: np.ndarray | None = None,
    force: bool = False,
) -> "Figure":
    """Draw a figure of a fitted model and its rows; write it to each path (.png, .svg, .pdf).

    `y` are known classes, to sort and colour by instead of clusters; `images`, one per row, are for `subspaces`. The
    figures `alignment` and `csc` train a copy of the model once more, to measure along the way.
    """
    draw, _, again = FIGURES[check_name(name)]
    paths = [path] if isinstance(path, (str, Path)) else list(path)
    targets = [check_target(each, SUFFIXES, force) for each in paths]
    array = as_array(X)
    if len(array) != len(model.labels_):
        raise InputError(
            f"X has {len(array)} rows, the model was fitted on {len(model.labels_)}; give the fitted rows."
        )
    needed = "history_" if again or name in ("k", "learning-curves", "water-filling") else "transform"
    if not hasattr(model, needed):
        raise InputError(
            f"the figure {name} is of methods that learn a representation; {type(model).__name__} has none."
        )
    drawn = draw(Subject(model, array, None if y is None else np.asarray(y), images))
    from prodsc.report.save import save_figure

    for target in targets:
        save_figure(drawn, target)
    return drawn
