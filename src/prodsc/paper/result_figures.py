"""The paper's figures of results: scores over a grid, learning curves, spheres, images of a subspace."""
# ruff: noqa: RUF001 - Greek letters and minus signs are meant

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from prodsc.errors import InputError
from prodsc.report import _parts as parts
from prodsc.report.figures import WIDTH
from prodsc.report.style import COLOURS, HEAT, INK, MUTED, cluster_colour, style

TERMS = {
    "coding_rate": "L₁, coding rate",
    "self_expression": "L₂, self-expression",
    "block_diagonal": "L₃, blocks of C",
}


def sensitivity(gammas: Sequence[float], betas: Sequence[float], acc: ArrayLike) -> Figure:
    """ACC in percent over gamma (rows) and beta (columns); not a number: no run succeeded."""
    scores = parts.matrix(acc, "acc", len(gammas), len(betas)).astype(np.float64)
    if np.isnan(scores).all():
        raise InputError("acc must hold at least one number: every run failed.")
    with style():
        figure = Figure(figsize=(WIDTH * 0.75, 4.6), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(np.ma.masked_invalid(scores), cmap=HEAT, vmin=0, vmax=100, origin="lower")
        for i, j in np.ndindex(*scores.shape):
            words = "failed" if np.isnan(scores[i, j]) else f"{scores[i, j]:.1f}"
            dark = not np.isnan(scores[i, j]) and scores[i, j] < 60
            axes.text(j, i, words, ha="center", va="center", color="white" if dark else INK)
        axes.set_xticks(range(len(betas)), [f"{b:g}" for b in betas])
        axes.set_yticks(range(len(gammas)), [f"{g:g}" for g in gammas])
        axes.set(xlabel="β: weight of the regulariser of C", ylabel="γ: weight of self-expression")
        figure.colorbar(image, ax=axes, label="ACC, % of rows in the right cluster")
        figure.suptitle("How much do the weights matter?")
        parts.note(figure, "Even brightness would mean that a guess is as good as a search.")
        figure.set_label(f"Heat map of ACC from {np.nanmin(scores):.1f} to {np.nanmax(scores):.1f} %.")
    return figure


def learning_curves(
    epochs: ArrayLike, terms: Mapping[str, ArrayLike], score_epochs: ArrayLike, scores: Mapping[str, ArrayLike]
) -> Figure:
    """Each term of the loss from the end of warm-up, and scores in percent at some epochs."""
    when, looks = np.asarray(epochs, dtype=float), np.asarray(score_epochs, dtype=float)
    with style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        panels = figure.subplots(1, len(terms) + 1)
        for axes, (name, values), colour in zip(panels, terms.items(), COLOURS, strict=False):
            axes.plot(when, parts.finite(np.asarray(values), name), color=colour, lw=1)
            parts.panel_title(axes, TERMS.get(name, name), "lower is better")
            axes.set_xlabel("epoch")
        for (name, values), colour, marker in zip(scores.items(), COLOURS[3:], "os^", strict=False):
            panels[-1].plot(looks, np.asarray(values), color=colour, marker=marker, ms=3, label=name)
        parts.panel_title(panels[-1], "scores, %", "higher is better")
        panels[-1].set(xlabel="epoch", ylim=(0, 100))
        panels[-1].legend(loc="lower right")
        figure.suptitle("Does the score rise while the loss falls?")
        parts.note(figure, "Epoch 0 is the end of warm-up. A score that falls while all terms fall is over-training.")
        last = ", ".join(f"{name} {np.asarray(values)[-1]:.1f}" for name, values in scores.items())
        figure.set_label(f"Line charts of {len(terms)} terms and the scores; at the end {last}.")
    return figure


def spheres(rows: Mapping[str, Sequence[tuple[str, ArrayLike, str]]], classes: Mapping[str, NDArray[Any]]) -> Figure:
    """One row of panels per data set: (title, points in three dimensions, words under it); coloured by class."""
    width = max(len(panels) for panels in rows.values())
    theta, height = np.linspace(0, 2 * np.pi, 60), np.linspace(-1, 1, 30)
    ring = np.sqrt(1 - height**2)
    globe = np.outer(np.cos(theta), ring), np.outer(np.sin(theta), ring), np.outer(np.ones_like(theta), height)
    with style():
        figure = Figure(figsize=(max(2.7 * width, WIDTH), 3.0 * len(rows) + 0.9), layout="constrained")
        for r, (data, panels) in enumerate(rows.items()):
            for column, (title, points, words) in enumerate(panels):
                P = parts.finite(parts.matrix(points, title, len(classes[data]), 3), title)
                axes: Any = figure.add_subplot(len(rows), width, r * width + column + 1, projection="3d")
                axes.plot_wireframe(*globe, color=MUTED, lw=0.2, alpha=0.35, rcount=8, ccount=8)
                for c, marker in zip(np.unique(classes[data]), "o^sDv", strict=False):
                    mine = P[classes[data] == c]
                    axes.scatter(*mine.T, s=8, marker=marker, color=cluster_colour(int(c)), depthshade=False)
                axes.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1), xticklabels=[], yticklabels=[], zticklabels=[])
                axes.set_box_aspect(None, zoom=1.1)
                axes.set_title(title if column else f"{data}\n{title}", size=10)
                axes.text2D(0.5, -0.1, words, transform=axes.transAxes, ha="center", size=8, color=MUTED)
        figure.suptitle("What becomes of manifolds on the sphere?")
        parts.note(
            figure,
            "Each colour is a class. A collapsed representation lies on one line (rank 1). We want each class\n"
            "on a line or plane of its own, at 90° to the others (angle: between the nearest two classes).",
        )
        figure.set_label(f"3-D scatters of {len(rows)} data sets and their representations by {width - 1} methods.")
    return figure


def subspaces(images: ArrayLike, most: int = 10, clusters: Sequence[int] | None = None) -> Figure:
    """`images`: clusters x components x images (x height x width (x channels)); one block per cluster.

    `clusters` are their numbers; 0, 1, ... when left out.
    """
    pictures = np.asarray(images)
    if pictures.ndim not in (5, 6):
        raise InputError(f"images must be clusters x components x images of pixels; got shape {pictures.shape}.")
    if pictures.ndim == 6 and pictures.shape[-1] not in (1, 3):  # channels come first
        pictures = np.moveaxis(pictures, 3, -1)
    shown = pictures[:most]
    low, high = (0.0, 255.0) if pictures.dtype == np.uint8 else (float(shown.min()), float(shown.max()))
    height, gap = shown.shape[3], max(1, shown.shape[3] // 12)
    columns = min(len(shown), 5)
    rows = -(-len(shown) // columns)
    with style():
        figure = Figure(figsize=(max(2.2 * columns + 0.3, WIDTH), 2.5 * rows + 0.9), layout="constrained")
        for c, block in enumerate(shown):
            axes = figure.add_subplot(rows, columns, c + 1)
            grey = np.clip((block.astype(np.float64) - low) / ((high - low) or 1.0), 0, 1)
            edges = [(0, 0), (0, 0), (0, gap), (0, gap), *[(0, 0)] * (grey.ndim - 4)]
            framed = np.pad(grey, edges, constant_values=1)  # white between the images
            tiles = np.concatenate([np.concatenate(list(line), axis=1) for line in framed], axis=0)
            axes.imshow(tiles, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
            axes.set(xticks=[], yticks=[], title=f"cluster {c if clusters is None else clusters[c]}")
            axes.spines[:].set_visible(False)
            if c % columns == 0:
                axes.set_ylabel("direction, strongest first")
                axes.set_yticks(
                    [i * (height + gap) + height / 2 for i in range(len(block))],
                    [str(i + 1) for i in range(len(block))],
                )
                axes.tick_params(left=False)
        few = f"The first {len(shown)} of {len(pictures)} clusters with as many images. "
        figure.suptitle("What do the directions of each cluster show?")
        parts.note(
            figure,
            f"{few if len(shown) < len(pictures) else ''}"
            f"Each line: the {block.shape[1]} images most aligned with one direction of the cluster.\n"
            "Lines that each show one thing (a pose, a colour, a background) mean directions with a meaning.",
        )
        figure.set_label(f"Images of {len(shown)} clusters by principal component.")
    return figure
