"""Figures of the paper that show many fits: scores over a grid, learning curves with scores, manifolds on a sphere."""
# ruff: noqa: RUF001 - Greek letters and minus signs are meant

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from prodsc.errors import InputError
from prodsc.report import drawing
from prodsc.report.figures import WIDTH
from prodsc.report.style import COLOURS, HEAT, INK, MUTED, cluster_colour, style

TERMS = {
    "coding_rate": "L₁, coding rate",
    "self_expression": "L₂, self-expression",
    "block_diagonal": "L₃, blocks of C",
}


def sensitivity(gammas: Sequence[float], betas: Sequence[float], acc: ArrayLike) -> Figure:
    """ACC over gamma and beta.

    Parameters
    ----------
    gammas, betas : sequence of float
        The grid.
    acc : array of shape (len(gammas), len(betas))
        ACC in percent; NaN where no run finished.

    Returns
    -------
    Figure
    """
    scores = drawing.matrix(acc, "acc", len(gammas), len(betas)).astype(np.float64)
    if np.isnan(scores).all():
        raise InputError("acc must hold at least one number: every run failed.")
    with style():
        figure = Figure(figsize=(WIDTH * 0.75, 4.6), layout="constrained")
        axes = figure.subplots()
        image = axes.imshow(np.ma.masked_invalid(scores), cmap=HEAT, vmin=0, vmax=100, origin="lower")
        for i, j in np.ndindex(*scores.shape):
            text = "failed" if np.isnan(scores[i, j]) else f"{scores[i, j]:.1f}"
            dark = not np.isnan(scores[i, j]) and scores[i, j] < 60
            axes.text(j, i, text, ha="center", va="center", color="white" if dark else INK)
        axes.set_xticks(range(len(betas)), [f"{b:g}" for b in betas])
        axes.set_yticks(range(len(gammas)), [f"{g:g}" for g in gammas])
        axes.set(xlabel="β: weight of the regulariser of C", ylabel="γ: weight of self-expression")
        figure.colorbar(image, ax=axes, label="ACC, % of rows in the right cluster")
        figure.suptitle("How much do the weights matter?")
        drawing.note(figure, "Even brightness would mean that a guess is as good as a search.")
        figure.set_label(f"Heat map of ACC from {np.nanmin(scores):.1f} to {np.nanmax(scores):.1f} %.")
    return figure


def learning_curves(
    epochs: ArrayLike, terms: Mapping[str, ArrayLike], score_epochs: ArrayLike, scores: Mapping[str, ArrayLike]
) -> Figure:
    """Each term of the loss from the end of warm-up, and scores at some epochs.

    Parameters
    ----------
    epochs : array of shape (n,)
        Epoch of each step.
    terms : mapping of str to array of shape (n,)
        Terms of the loss.
    score_epochs : array of shape (m,)
        Epoch of each score.
    scores : mapping of str to array of shape (m,)
        Scores in percent.

    Returns
    -------
    Figure
    """
    when, scored_at = np.asarray(epochs, dtype=float), np.asarray(score_epochs, dtype=float)
    with style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        panels = figure.subplots(1, len(terms) + 1)
        for axes, (name, values), colour in zip(panels, terms.items(), COLOURS, strict=False):
            axes.plot(when, drawing.finite(np.asarray(values), name), color=colour, lw=1)
            drawing.panel_title(axes, TERMS.get(name, name), "lower is better")
            axes.set_xlabel("epoch")
        for (name, values), colour, marker in zip(scores.items(), COLOURS[3:], "os^", strict=False):
            panels[-1].plot(scored_at, np.asarray(values), color=colour, marker=marker, ms=3, label=name)
        drawing.panel_title(panels[-1], "scores, %", "higher is better")
        panels[-1].set(xlabel="epoch", ylim=(0, 100))
        panels[-1].legend(loc="lower right")
        figure.suptitle("Does the score rise while the loss falls?")
        drawing.note(figure, "Epoch 0 is the end of warm-up. A score that falls while all terms fall is over-training.")
        last = ", ".join(f"{name} {np.asarray(values)[-1]:.1f}" for name, values in scores.items())
        figure.set_label(f"Line charts of {len(terms)} terms and the scores; at the end {last}.")
    return figure


def spheres(rows: Mapping[str, Sequence[tuple[str, ArrayLike, str]]], classes: Mapping[str, NDArray[Any]]) -> Figure:
    """Points on the unit sphere, one row of panels per data set, coloured by class.

    Parameters
    ----------
    rows : mapping of data set to sequence of (title, points, caption)
        Panels; points are n x 3.
    classes : mapping of data set to array of shape (n,)
        The class of each point.

    Returns
    -------
    Figure
    """
    width = max(len(panels) for panels in rows.values())
    theta, height = np.linspace(0, 2 * np.pi, 60), np.linspace(-1, 1, 30)
    ring = np.sqrt(1 - height**2)
    globe = np.outer(np.cos(theta), ring), np.outer(np.sin(theta), ring), np.outer(np.ones_like(theta), height)
    with style():
        figure = Figure(figsize=(max(2.7 * width, WIDTH), 3.0 * len(rows) + 0.9), layout="constrained")
        for r, (data, panels) in enumerate(rows.items()):
            for column, (title, points, caption) in enumerate(panels):
                P = drawing.finite(drawing.matrix(points, title, len(classes[data]), 3), title)
                axes: Any = figure.add_subplot(len(rows), width, r * width + column + 1, projection="3d")
                axes.plot_wireframe(*globe, color=MUTED, lw=0.2, alpha=0.35, rcount=8, ccount=8)
                for c, marker in zip(np.unique(classes[data]), "o^sDv", strict=False):
                    members = P[classes[data] == c]
                    axes.scatter(*members.T, s=8, marker=marker, color=cluster_colour(int(c)), depthshade=False)
                axes.set(xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1), xticklabels=[], yticklabels=[], zticklabels=[])
                axes.set_box_aspect(None, zoom=1.1)
                axes.set_title(title if column else f"{data}\n{title}", size=10)
                axes.text2D(0.5, -0.1, caption, transform=axes.transAxes, ha="center", size=8, color=MUTED)
        figure.suptitle("What becomes of manifolds on the sphere?")
        drawing.note(
            figure,
            "Each colour is a class. A collapsed representation lies on one line (rank 1). We want each class\n"
            "on a line or plane of its own, at 90° to the others (angle: between the nearest two classes).",
        )
        figure.set_label(f"3-D scatters of {len(rows)} data sets and their representations by {width - 1} methods.")
    return figure


def phase(
    alphas: ArrayLike, gammas: ArrayLike, acc: ArrayLike, sre: ArrayLike,
    boundary: ArrayLike | Callable[[drawing.Floats], ArrayLike],
) -> Figure:  # fmt: skip
    """ACC and SRE over alpha and gamma, with the boundary of Theorem 2.

    Parameters
    ----------
    alphas, gammas : array
        The grid, ascending.
    acc, sre : array of shape (len(gammas), len(alphas))
        In percent; NaN where the run failed.
    boundary : callable or array of shape (len(alphas),)
        gamma as a function of alpha, or its value at each of `alphas`.

    Returns
    -------
    Figure
    """
    a, g = drawing.vector(alphas, "alphas", above=0.0), drawing.vector(gammas, "gammas", above=0.0)
    scores = [drawing.matrix(s, n, len(g), len(a)).astype(np.float64) for s, n in ((acc, "acc"), (sre, "sre"))]
    if any(np.isnan(s).all() or np.nanmin(s) < 0 or np.nanmax(s) > 100 for s in scores):
        raise InputError("acc and sre must hold percents from 0 to 100, NaN for a failed run; not all may have failed.")
    x_edges, y_edges = _log_edges(a), _log_edges(g)
    x = np.geomspace(x_edges[0], x_edges[-1], 200) if callable(boundary) else a
    y = drawing.vector(boundary(x) if callable(boundary) else boundary, "boundary", len(x))
    failed = f"run failed ({np.isnan(scores).any(axis=0).sum()} of {len(a) * len(g)})"
    size = float(np.clip(55 / max(len(a), 0.8 * len(g)), 3.5, 10))
    with style():
        figure = Figure(figsize=(WIDTH, 5.2), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True, subplot_kw={"xlabel": "α: scale in the coding rate"})
        hints = ("ACC: rows in the right cluster, %", "SRE: weight on other classes, %")
        for axes, values, heat, hint in zip((left, right), scores, (HEAT, HEAT + "_r"), hints, strict=True):
            mesh = axes.pcolormesh(x_edges, y_edges, np.ma.masked_invalid(values), cmap=heat, vmin=0, vmax=100)
            figure.colorbar(mesh, ax=axes, location="top", label=hint)
            for i, j in np.argwhere(~np.isnan(values)):
                cell = mesh.cmap(values[i, j] / 100)
                ink: Any = {"size": size, "color": "white" if np.dot(cell[:3], (0.3, 0.59, 0.11)) < 0.5 else INK}
                halo = [withStroke(linewidth=size / 4, foreground=cell)]  # readable on the boundary, too
                axes.annotate(f"{values[i, j]:.0f}", (a[j], g[i]), **ink, ha="center", va="center", path_effects=halo)
            holes = np.ma.masked_where(~np.isnan(values), np.zeros(values.shape))
            axes.pcolor(x_edges, y_edges, holes, cmap="Greys", vmin=0, vmax=1, ec=MUTED, hatch="///", lw=0)
            outline = [withStroke(linewidth=4.5, foreground=INK)]
            axes.plot(x, y, color=COLOURS[4], lw=2.5, marker="" if len(x) > 1 else "o", path_effects=outline)
            axes.set(xscale="log", yscale="log", xlim=x_edges[[0, -1]], ylim=y_edges[[0, -1]])
            for axis, ticks in ((axes.xaxis, a), (axes.yaxis, g)):
                some = ticks[:: -(-len(ticks) // 7)]
                axis.set_ticks(list(some), [f"{float(f'{tick:.3g}'):,g}" for tick in some])
            axes.minorticks_off()
        left.set_ylabel("γ / n: weight of self-expression")
        left.legend(left.lines, ["Theorem 2: no collapse below this line"], **drawing.BELOW)
        if np.isnan(scores).any():
            right.legend([Patch(fc="white", ec=MUTED, hatch="///")], [failed], **drawing.BELOW)
        return drawing.describe(
            figure,
            "For which α and γ does Z not collapse?",
            "One cell per pair of α and γ; bright is good in both maps. Look for bright cells below the line, where\n"
            "theory promises full rank, and a change to dark above. The promise is cautious: above may be bright too.",
            f"Heat maps: ACC, best {np.nanmax(scores[0]):.1f} %, and SRE, best {np.nanmin(scores[1]):.1f} %; {failed}.",
        )


def _log_edges(centres: drawing.Floats) -> drawing.Floats:
    """Borders of cells around centres, half-way on a log axis."""
    logs = np.log(centres)
    steps = np.diff(logs) if len(logs) > 1 else np.ones(1)
    padded = np.array([logs[0] - steps[0], *logs, logs[-1] + steps[-1]])
    return np.exp((padded[1:] + padded[:-1]) / 2)
