"""What figures share: checks of their input, and parts drawn on one set of axes."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba_array
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patheffects import withStroke
from matplotlib.ticker import FixedLocator
from numpy.typing import ArrayLike, NDArray

from prodsc.core import theory
from prodsc.errors import InputError
from prodsc.random import sorted_subset
from prodsc.report.style import COLOURS, INK, MUTED, cluster_colour, cluster_marker

Floats = NDArray[np.float64]

BELOW: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15)}  # place of a legend below the axes
FEW = 40  # points; up to here every point of a curve gets a dot


def cluster_labels(labels: ArrayLike) -> NDArray[np.intp]:
    array = np.asarray(labels)
    if array.ndim != 1 or not len(array) or not np.issubdtype(array.dtype, np.integer):
        raise InputError(f"labels must be a non-empty 1-D array of integers; got {array.dtype} of shape {array.shape}.")
    return array.astype(np.intp)


def matrix(values: ArrayLike, name: str, n: int | None = None, width: int | None = None) -> NDArray[Any]:
    """Check the shape, without a copy and without reading the values: a figure may need a sample of the rows only."""
    array = np.asarray(values)
    if array.ndim != 2 or 0 in array.shape or n not in (None, len(array)) or width not in (None, array.shape[1]):
        wanted = f"{n or 'one or more'} rows and {width or 'one or more'} columns"
        raise InputError(f"{name} must be a 2-D array with {wanted}; got shape {array.shape}.")
    return array


def finite(array: NDArray[Any], name: str) -> Floats:
    floats = np.asarray(array, dtype=np.float64)
    if not np.isfinite(floats).all():
        n_bad = int((~np.isfinite(floats)).sum())
        raise InputError(f"{name} has {n_bad} values that are NaN or infinite; a figure needs finite numbers.")
    return floats


def unit_rows(array: NDArray[Any], name: str) -> Floats:
    """Rows scaled to length one; a row of zeros stays zero."""
    floats = finite(array, name)
    norms = np.linalg.norm(floats, axis=1, keepdims=True)
    return floats / np.where(norms > 0, norms, 1.0)


def effective_rank(singular: NDArray[Any]) -> float:
    """`theory.effective_rank_of_spectrum` of an array."""
    return float(theory.effective_rank_of_spectrum(torch.from_numpy(singular)))


def vector(values: ArrayLike, name: str, n: int | None = None, above: float | None = None) -> Floats:
    """Finite numbers; with `above` they must ascend from there."""
    array = np.asarray(values)
    if array.ndim != 1 or not len(array) or n not in (None, len(array)):
        raise InputError(f"{name} must be a list of {n or 'one or more'} numbers; got shape {array.shape}.")
    floats = finite(array, name)
    if above is not None and (np.diff(floats, prepend=above) <= 0).any():
        raise InputError(f"{name} must ascend from above {above:g}, without repeats; got {floats.tolist()}.")
    return floats


def fractions(values: ArrayLike, name: str, n: int) -> Floats:
    array = finite(np.asarray(values), name)
    if array.shape != (n,) or array.min() < 0 or array.max() > 1:
        raise InputError(f"{name} must hold {n} numbers from 0 to 1; got shape {array.shape}.")
    return array


def sample(n: int, max_rows: int, seed: int) -> NDArray[np.intp]:
    """Sorted numbers of at most max_rows of n rows, drawn without replacement."""
    return sorted_subset(n, max_rows, seed)


def read_history(history: Mapping[str, Sequence[Any]]) -> tuple[Floats, list[str], dict[str, Floats]]:
    """Increasing steps over all phases, the phase of each, and the curves with finite values (total first)."""
    lengths = {key: len(values) for key, values in history.items()}
    if missing := sorted({"phase", "step", "total"} - lengths.keys()):
        raise InputError(f"history has no {missing}; it needs 'phase', 'step', 'total' and one key per loss term.")
    if len(set(lengths.values())) > 1 or not lengths["step"]:
        raise InputError(f"history must hold sequences of one length, at least 1; got {lengths}.")
    steps = np.asarray(history["step"], dtype=np.float64)
    gaps = np.diff(steps)
    gaps = np.where(gaps > 0, gaps, np.maximum(steps[1:], 1))  # steps may start again in each phase
    names = ["total", *(key for key in history if key not in ("phase", "epoch", "step", "total"))]
    curves = {name: np.asarray(history[name], dtype=np.float64) for name in names}
    finite_curves = {name: values for name, values in curves.items() if np.isfinite(values).any()}
    if not finite_curves:
        raise InputError("history holds no finite loss in any step; training diverged at once, so there is no curve.")
    return (
        steps[0] + np.concatenate([[0.0], np.cumsum(gaps)]),
        [str(phase) for phase in history["phase"]],
        finite_curves,
    )


def block_means(G: Floats, labels: NDArray[np.intp]) -> str:
    """Mean of G over pairs of rows in one cluster, and over pairs in two."""
    same = labels[:, None] == labels[None, :]
    pairs = {"in a cluster": same & ~np.eye(len(G), dtype=bool), "across": ~same}
    means = [f"{G[mask].mean():.2f} {name}" for name, mask in pairs.items() if mask.any()]
    return "mean " + ", ".join(means) if means else "one row"


def mark_clusters(axes: Axes, labels: NDArray[np.intp], sides: str, what: str = "cluster") -> None:
    """A strip in the clusters' colours and a number per cluster along the sides, long ticks at the boundaries."""
    clusters, sizes = np.unique(labels, return_counts=True)
    ends = np.cumsum(sizes) - 0.5
    starts = ends - sizes
    colours = [cluster_colour(cluster) for cluster in clusters]
    strip: Any = {"color": colours, "lw": 5, "clip_on": False, "capstyle": "butt"}
    place = [-0.02] * len(clusters)
    if "x" in sides:
        axes.hlines(place, starts, ends, transform=axes.get_xaxis_transform(), **strip)
        axes.set_xlabel(what)
    if "y" in sides:
        axes.vlines(place, starts, ends, transform=axes.get_yaxis_transform(), **strip)
        axes.set_ylabel(what)
    ticks: dict[float, str] = {}
    for centre, cluster in zip((starts + ends) / 2, clusters, strict=True):
        if not ticks or centre - list(ticks)[-1] >= 0.06 * len(labels):  # closer than this, numbers would overlap
            ticks[float(centre)] = str(cluster)
    axes.tick_params(which="both", left=False, bottom=False)
    for side in sides:
        axis = axes.xaxis if side == "x" else axes.yaxis
        axis.set_ticks(list(ticks), list(ticks.values()))
        axis.set_minor_locator(FixedLocator(list(ends[:-1])))
        axis.set_tick_params(which="major", length=0, pad=11)
        axis.set_tick_params(
            which="minor", length=9, width=0.8, color=INK, **{"x": {"bottom": True}, "y": {"left": True}}[side]
        )
    axes.spines[:].set_visible(False)


def curve(axes: Axes, x: Floats, y: Floats) -> None:
    """A line that is readable with three points and with thousands of them."""
    if len(x) <= 300:  # more points than this are noise: draw them pale, with their running mean on top
        axes.plot(x, y, color=COLOURS[0], lw=1.4, marker="o" if len(x) <= FEW else "", ms=3.5)
        return
    axes.plot(x, y, color=COLOURS[4], lw=0.5, alpha=0.6)
    axes.plot(x, running_mean(y, len(x) // 60), color=COLOURS[0], lw=1.6)


def running_mean(y: Floats, width: int) -> Floats:
    """The mean of about `width` values around each; fewer at the ends. NaN is ignored."""
    window, known = np.ones(max(1, width)), np.isfinite(y)
    count = np.convolve(known.astype(float), window, "same")
    total = np.convolve(np.where(known, y, 0.0), window, "same")
    return np.divide(total, count, where=count > 0, out=np.full(len(y), np.nan))


def scatter_map(axes: Axes, points: Floats, labels: NDArray[np.intp], strength: Floats, dot: float = 1.0) -> None:
    """Dots in the colour and shape of their cluster, drawn in mixed order, and its number at its median."""
    clusters = np.unique(labels)
    colours = to_rgba_array([cluster_colour(label) for label in labels])
    colours[:, 3] = strength
    size = dot * float(np.clip(12_000 / len(labels), 8, 45))
    for marker in dict.fromkeys(cluster_marker(c) for c in clusters):
        members = np.array([cluster_marker(label) == marker for label in labels])
        axes.scatter(points[members, 0], points[members, 1], c=colours[members], s=size, linewidths=0, marker=marker)
    halo = [withStroke(linewidth=3, foreground="white")]
    for cluster in clusters:
        x, y = np.median(points[labels == cluster], axis=0)
        text = 12 if len(clusters) <= 20 else 8
        axes.text(x, y, str(cluster), weight="bold", size=text, ha="center", va="center", path_effects=halo)
    axes.set(xticks=[], yticks=[], aspect="equal", adjustable="datalim")
    axes.spines[:].set_visible(False)


def cluster_handles(clusters: NDArray[np.intp], labels: Sequence[str]) -> list[Line2D]:
    """Entries of a legend."""
    return [
        Line2D([], [], ls="", label=label, marker=cluster_marker(c), color=cluster_colour(c))
        for c, label in zip(clusters, labels, strict=True)
    ]


def repeated_colours(clusters: NDArray[np.intp]) -> str:
    """A sentence for the note when there are more clusters than colours."""
    return "\nMore than 20 groups: colours repeat with another shape of dot." if len(clusters) > len(COLOURS) else ""


def panel_title(axes: Axes, name: str, hint: str) -> None:
    axes.set_title(hint or " ", loc="left", fontsize=8.5, color=MUTED)
    place: Any = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(name, (0, 1), (0, 19), weight="bold", parse_math=False, annotation_clip=False, **place)


def note(figure: Figure, text: str) -> None:
    """The sentence under a figure; it says what to look for."""
    figure.supxlabel(text, fontsize=9, color=MUTED)


def describe(figure: Figure, title: str, note: str, alternative: str) -> Figure:
    """Title, the sentence under the figure and the alternative text."""
    figure.suptitle(title)
    figure.supxlabel(note, fontsize=9, color=MUTED)
    figure.set_label(alternative)
    return figure


def principal_plane(U: Floats) -> Floats:
    """The first two principal components of the rows, zero where there are fewer."""
    left, singular, _ = np.linalg.svd(U - U.mean(axis=0), full_matrices=False)
    plane = np.zeros((len(U), 2))
    plane[:, : len(singular)] = (left * singular)[:, :2]
    return plane


def wrapped(title: str) -> str:
    return textwrap.fill(title, width=70, max_lines=3, placeholder=" …")
