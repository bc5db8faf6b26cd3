"""Figures of one fit that show what the theorems say: arrays in, matplotlib Figures out.

The sentence under each figure says what to look for.
"""
# ruff: noqa: RUF001 - Greek letters and minus signs are meant

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from prodsc.errors import InputError
from prodsc.report import drawing
from prodsc.report.figures import WIDTH
from prodsc.report.style import COLOURS, HEAT, INK, MUTED, cluster_colour, style


def alignment(
    commutator: ArrayLike, correlations: ArrayLike, eigenvalues_G: ArrayLike, eigenvalues_M: ArrayLike,
    epochs: ArrayLike, curve_epochs: ArrayLike | None = None, *, max_curves: int = 7,
) -> Figure:  # fmt: skip
    """Theorem 1 in training: G = Z'Z and M = (I - C)(I - C)' come to share eigenvectors, and Z keeps its rank.

    Parameters
    ----------
    commutator : array of shape (n_seeds, n_epochs)
        The norm ||GM - MG||_F.
    correlations : array of shape (n_curves, n)
        <u_j, G u_j / |G u_j|> for the eigenvectors u_j of M, smallest eigenvalue first; NaN where G u_j is zero.
    eigenvalues_G : array of shape (n_curves, n)
        Eigenvalues of G, descending.
    eigenvalues_M : array of shape (n_curves, n)
        Eigenvalues of M, ascending.
    epochs : array of shape (n_epochs,)
        The epochs of `commutator`.
    curve_epochs : array of shape (n_curves,), optional
        The epochs of the other arrays; `epochs` when left out.
    max_curves : int, default=7
        Curves drawn in a panel; a reader cannot tell more shades apart.

    Returns
    -------
    Figure
    """
    when = drawing.vector(epochs, "epochs", above=-np.inf)
    errors = drawing.finite(drawing.matrix(commutator, "commutator", width=len(when)), "commutator")
    which = when if curve_epochs is None else drawing.vector(curve_epochs, "curve_epochs", above=-np.inf)
    r = drawing.matrix(correlations, "correlations", len(which)).astype(np.float64)
    g = drawing.finite(drawing.matrix(eigenvalues_G, "eigenvalues_G", *r.shape), "eigenvalues_G")
    m = drawing.finite(drawing.matrix(eigenvalues_M, "eigenvalues_M", *r.shape), "eigenvalues_M")
    shown = np.unique(np.linspace(0, len(which) - 1, min(len(which), max_curves)).round().astype(int))
    shades = colormaps["viridis"](np.linspace(0.9, 0, len(shown)))  # dark = late
    mean, spread = errors.mean(axis=0), errors.std(axis=0)
    seeds = f"mean ± std of {len(errors)} seeds" if len(errors) > 1 else "one seed"
    width = int((g[-1] > 1e-6 * max(float(g[-1].max()), 1e-12)).sum())  # directions of Z
    many = r.shape[1] > 2 * drawing.FEW
    if many:  # neighbouring eigenvectors of M are nearly exchangeable, so single values of (b) are noise
        r = np.stack([drawing.running_mean(row, r.shape[1] // 60) for row in r])
    with style():
        figure = Figure(figsize=(WIDTH, 6.6), layout="constrained")
        (first, right), (low, last) = figure.subplots(2, 2)
        first.fill_between(when, mean - spread, mean + spread, color=COLOURS[4], alpha=0.4, lw=0)
        first.plot(when, mean, color=COLOURS[0], marker=".")
        first.set(xlabel="epoch", ylabel="‖GM − MG‖", ylim=(0, None))
        drawing.panel_title(first, "(a) alignment error", f"0 = same eigenvectors; {seeds}")
        j = np.arange(1, r.shape[1] + 1)
        for axes, curves, name, hint, ylabel in (
            (
                right,
                r,
                "(b) are M's eigenvectors also G's?",
                f"1 = yes, 0 = G erases it{'; running mean' * many}",
                "correlation of uⱼ and G uⱼ",
            ),
            (low, g, "(c) eigenvalues of G = Z'Z", "a long plateau = no collapse", "eigenvalue of G (log)"),
            (last, m, "(d) eigenvalues of M", "small = direction rebuilt well by C", "eigenvalue of M"),
        ):
            for shade, row in zip(shades, shown, strict=True):
                look: Any = {"lw": 0.8} if many else {"lw": 1.5, "marker": ".", "ms": 3}
                axes.plot(j, curves[row], color=shade, label=f"{which[row]:g}", **look)
            axes.axvline(width + 0.5, color=COLOURS[3], lw=1, ls=":")
            if many:
                axes.set_xscale("log")
            axes.set(xlabel=f"direction j, {'largest' if axes is low else 'smallest of M'} first", ylabel=ylabel)
            drawing.panel_title(axes, name, hint)
        right.set_ylim(min(-0.03, float(np.nan_to_num(r).min())), 1.05)
        low.set(ylim=max(float(g.max()), 1e-9) * np.array([1e-4, 2]), yscale="log")  # what is below counts as zero
        last.set_ylim(bottom=min(0.0, float(m.min())))
        frame: Any = {"frameon": True, "facecolor": "white", "edgecolor": "none", "framealpha": 1}
        last.legend(loc="lower right", ncols=1 + len(shown) // 5, title="epoch, (b) to (d)", **frame)
        return drawing.describe(
            figure,
            "Do G = Z'Z and M = (I−C)(I−C)' align in training?",
            "Look for (a) falling to 0 and, late in training (dark), two cliffs at the dotted line: (b) from 1 to 0,\n"
            f"(c) to nothing. Then Z uses all {width} directions left of it, and each is an eigenvector of M.",
            f"Alignment error, {mean[0]:.3g} to {mean[-1]:.3g}; correlations and eigenvalues in {len(j)} directions.",
        )


def orthogonal(
    X: ArrayLike,
    Z: ArrayLike,
    classes: ArrayLike,
    three: Sequence[int] | None = None,
    *,
    what: str = "class",
    max_rows: int = 600,
) -> Figure:
    """|X X'| and |Z Z'| sorted by class, and the rows of three classes in three dimensions.

    Rows are scaled to unit length. The dimensions are the first three right singular vectors, not centred.

    Parameters
    ----------
    X, Z : array of shape (n, any)
        Input rows and their learned representation.
    classes : array of shape (n,)
        The class or cluster of each row.
    three : sequence of 3 int, optional
        The classes drawn in three dimensions; the first three when left out.
    what : str, default="class"
        What the groups are called: "class" or "cluster".
    max_rows : int, default=600
        Rows drawn; a random sample of more.

    Returns
    -------
    Figure
    """
    labels = drawing.cluster_labels(classes)
    present = np.unique(labels).tolist()
    chosen = present[:3] if three is None else [int(c) for c in three]
    if three is not None and (len(chosen) != 3 or len(set(chosen) & set(present)) != 3):
        raise InputError(f"three must name 3 different classes among the {len(present)} in classes; got {chosen}.")
    rows = drawing.sample(len(labels), max_rows, seed=0)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    members = [np.flatnonzero(labels == c) for c in chosen]
    few = np.concatenate([mine[drawing.sample(len(mine), max_rows // 3, seed=0)] for mine in members])
    with style():
        figure = Figure(figsize=(WIDTH, 7.6))  # placed by hand: a layout engine leaves wide margins around cubes
        means = []
        for column, (name, values, title) in enumerate((("X", X, "before: input X"), ("Z", Z, "after: learned Z"))):
            U = drawing.matrix(values, name, len(labels))
            unit = drawing.unit_rows(U[rows], name)
            G = np.abs(unit @ unit.T)
            means.append(drawing.block_means(G, labels[rows]).replace("cluster", what))
            axes = figure.add_axes((0.085 + 0.42 * column, 0.55, 0.35, 0.33), title=f"{title}\n{means[-1]}")
            image = axes.imshow(G, cmap=HEAT, vmin=0, vmax=1)
            drawing.mark_clusters(axes, labels[rows], "xy" if not column else "x", what)
            axes.tick_params(labelleft=not column)
            cube = figure.add_axes((0.01 + 0.46 * column, 0.12, 0.46, 0.34), projection="3d")
            _scatter_3d(cube, drawing.unit_rows(U[few], name), labels[few], chosen, what)
        bar = figure.add_axes((0.885, 0.55, 0.02, 0.33))
        figure.colorbar(image, cax=bar, label="|cos| of two rows\n0 orthogonal, 1 same line")
        figure.legend(*cube.get_legend_handles_labels(), loc="center", ncols=3, bbox_to_anchor=(0.46, 0.095))
        return drawing.describe(
            figure,
            f"Do {_plural(what)} lie in orthogonal subspaces?",
            f"Above: {len(rows):,} of {len(labels):,} rows, by {what}. Look for bright blocks on a dark ground.\n"
            f"Below: {len(few):,} rows of length 1 and the main line of each {what}. Look for angles near 90°.",
            f"Heat maps of |cosine| by {what}, X: {means[0]}; Z: {means[1]}. 3-D scatters of {_plural(what)} {chosen}.",
        )


def structure(
    epochs: ArrayLike, csc: ArrayLike, g_inside: ArrayLike, g_outside: ArrayLike, c_inside: ArrayLike,
    c_outside: ArrayLike, *, what: str = "class",
) -> Figure:  # fmt: skip
    """Theorem 3 in training: CSC, and the mean |entry| of G and C inside and outside the blocks of classes.

    Parameters
    ----------
    epochs : array of shape (n_epochs,)
        The epochs of all other arrays.
    csc : array of shape (n_epochs,)
        <(I - C)(I - C)', G outside the blocks>.
    g_inside, g_outside, c_inside, c_outside : array of shape (n_epochs,)
        Mean |entry| of G = Z'Z and of C, inside the blocks and outside them.
    what : str, default="class"
        What the groups are called: "class" or "cluster".

    Returns
    -------
    Figure
    """
    when = drawing.vector(epochs, "epochs", above=-np.inf)
    given = {"csc": csc, "g_inside": g_inside, "g_outside": g_outside, "c_inside": c_inside, "c_outside": c_outside}
    condition, g_in, g_out, c_in, c_out = (drawing.vector(values, name, len(when)) for name, values in given.items())
    dot = "." if len(when) <= drawing.FEW else ""
    with style():
        figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
        first, *pair = figure.subplots(1, 3, subplot_kw={"xlabel": "epoch"})
        first.axhline(0, color=MUTED, lw=1, ls=":")
        first.plot(when, condition, color=INK, lw=2, marker=dot)
        first.set_ylabel("CSC")
        drawing.panel_title(first, "CSC", "0: Theorem 3 holds")
        panels = (
            ("G = Z'Z", g_in, g_out, "how alike rows of Z are"),
            ("C", c_in, c_out, "how rows rebuild each other"),
        )
        for axes, colour, (name, thick, thin, hint) in zip(pair, COLOURS[:4:3], panels, strict=True):
            drawing.panel_title(axes, f"entries of {name}", hint)
            axes.plot(when, thick, color=colour, lw=3.5, marker=dot, ms=8)
            axes.plot(when, thin, color=colour, lw=1, marker=dot, ms=3)
            axes.set(ylabel=f"mean |entry of {name[0]}|", ylim=(0, None))
        return drawing.describe(
            figure,
            "Do G = Z'Z and C become block-diagonal?",
            f"Thick: two rows of one {what} (in a block); thin: of two {_plural(what)} (off blocks). Look for thin\n"
            "lines that come down, thick ones that stay up and CSC going to 0: rows are then alike, and rebuilt,\n"
            f"within their own {what} only. CSC = ⟨(I−C)(I−C)', G off the blocks⟩.",
            f"Line charts. At epoch {when[-1]:g} G is {g_in[-1]:.3g} in and {g_out[-1]:.3g} off the blocks, C "
            f"{c_in[-1]:.3g} and {c_out[-1]:.3g}; CSC went from {condition[0]:.3g} to {condition[-1]:.3g}.",
        )


def singular_values(
    X: ArrayLike, Z: ArrayLike, classes: ArrayLike, max_classes: int = 10, *, what: str = "class"
) -> Figure:
    """Singular values of X and Z divided by the largest: of all rows, and of each class.

    Parameters
    ----------
    X, Z : array of shape (n, any)
        Input rows and their learned representation.
    classes : array of shape (n,)
        The class or cluster of each row.
    max_classes : int, default=10
        Draw the first `max_classes` classes only.
    what : str, default="class"
        What the groups are called: "class" or "cluster".

    Returns
    -------
    Figure
    """
    labels = drawing.cluster_labels(classes)
    present = np.unique(labels)
    chosen = present[: max(max_classes, 1)]
    with style():
        figure = Figure(figsize=(WIDTH, 4.1), layout="constrained")
        every, *single = figure.subplots(1, 3, sharey=True, subplot_kw={"xlabel": "direction, strongest first (log)"})
        drawing.panel_title(every, "all rows", "number: effective rank")
        for axes, name, values, colour in zip(single, "XZ", (X, Z), (COLOURS[3], COLOURS[0]), strict=True):
            U = drawing.finite(drawing.matrix(values, name, len(labels)), name)
            whole = np.linalg.svd(U, compute_uv=False)
            _spectrum(every, whole, color=colour, lw=2.2, label=f"{name}  ({drawing.effective_rank(whole):.1f})")
            each = {int(c): np.linalg.svd(U[labels == c], compute_uv=False) for c in chosen}
            ranks = [drawing.effective_rank(singular) for singular in each.values()]
            for c, singular in each.items():
                _spectrum(axes, singular, color=cluster_colour(c), lw=1.1, label=str(c))
            which = "input X" if name == "X" else "learned Z"
            drawing.panel_title(axes, f"{which} by {what}", f"mean effective rank {np.mean(ranks):.1f}")
        every.set(ylim=(1e-3, 1.3), yscale="log", ylabel="singular value / largest (log)")
        every.legend(loc="lower left")
        title = what if len(chosen) == len(present) else f"{what}\n(first {len(chosen)}\nof {len(present)})"
        figure.legend(handles=single[0].lines, loc="outside right center", title=title)
        return drawing.describe(
            figure,
            "How many directions carry information?",
            "Left: a line that stays high uses many directions about equally; one that falls at once has collapsed.\n"
            f"Middle and right: a {what} that fills a subspace of its own stays high for a few directions, then falls.",
            f"Singular values over the largest of X and Z, all {len(labels):,} rows and {len(chosen)} {_plural(what)}.",
        )


def water_filling(
    eigenvalues_M: ArrayLike, alpha: float, gamma: float, nu: float, predicted: ArrayLike,
    observed: ArrayLike | None = None,
) -> Figure:  # fmt: skip
    """Theorem 2: sigma_i^2 is the part of 1/(nu + gamma lambda_i) above the level 1/alpha, for i = 1 to d.

    Parameters
    ----------
    eigenvalues_M : array of shape (at least d,)
        Eigenvalues lambda_i of M, ascending.
    alpha : float
        Scale in the coding rate.
    gamma : float
        Weight of 1/2 ||Z - ZC||^2.
    nu : float
        The multiplier that Theorem 2 solves for.
    predicted : array of shape (d,)
        The predicted sigma_i^2.
    observed : array of shape (d,), optional
        The observed sigma_i^2.

    Returns
    -------
    Figure
    """
    heights = drawing.vector(predicted, "predicted")
    d, lost = len(heights), int((heights <= 0).sum())
    below = nu + gamma * drawing.vector(eigenvalues_M, "eigenvalues_M")
    if len(below) < d or (np.diff(below) < 0).any() or not (alpha > 0 and gamma >= 0 and below[0] > 0):
        raise InputError(f"eigenvalues_M must be {d} or more ascending numbers, nu + gamma lambda and alpha above 0.")
    below = below[: max(d + 1, int(1.2 * d))]  # a few of the directions that Z has no room for
    level, i = 1 / alpha, np.arange(1, len(below) + 1)
    top = float(level + heights.max()) if observed is None else float(level + max(heights.max(), np.max(observed)))
    steep = top > 20 * float(np.median(level + heights))  # then the small ones would be a flat line
    with style():
        figure = Figure(figsize=(WIDTH, 4.4), layout="constrained")
        axes = figure.subplots()
        fill: Any = {"fill": True, "color": COLOURS[4], "alpha": 0.55, "label": "predicted σᵢ², height above the level"}
        axes.stairs(level + heights, np.arange(d + 1) + 0.5, baseline=level, **fill)
        axes.plot(i, 1 / below, color=COLOURS[0], marker=".", label=f"1 / (ν + γλᵢ), ν = {nu:.3g}, γ = {gamma:.3g}")
        axes.axhline(level, color=COLOURS[3], lw=1.8, ls="--", label=f"level 1/α = {level:.3g}")
        if observed is not None:
            seen = level + drawing.vector(observed, "observed", d)
            axes.plot(i[:d], seen, "o", ms=4, mfc="white", color=INK, label="observed σᵢ²")
        axes.axvline(d + 0.5, color=MUTED, lw=1, ls=":", label=f"d = {d}: Z has no more directions")
        axes.set(xlabel="direction i, smallest eigenvalue λᵢ of M first", ylabel="1 / (ν + γλᵢ)", ylim=(0, None))
        if steep:
            axes.set(yscale="log", ylim=(level / 2, 2 * top), ylabel="1 / (ν + γλᵢ) = σᵢ² + 1/α (log)")
        else:
            height: Any = (lambda y: y - level, lambda s: s + level)
            axes.secondary_yaxis("right", functions=height).set_ylabel("σᵢ²")
        axes.legend(ncols=2, **drawing.BELOW)
        return drawing.describe(
            figure,
            "How much strength does each direction of Z get?",
            "Directions that C rebuilds well (small λ, left) get more; where the curve is under the level, nothing:\n"
            f"here {lost} of {d} are lost." + " Dots on the edge of the fill: as predicted." * (observed is not None),
            f"Curve 1/(nu + gamma lambda) and level 1/alpha = {level:.3g}; above it {d - lost} of {d} directions.",
        )


def _spectrum(axes: Any, singular: NDArray[Any], **look: Any) -> None:
    few = len(singular) <= drawing.FEW
    axes.semilogx(np.arange(1, len(singular) + 1), singular / (singular[0] or 1.0), marker="." if few else "", **look)


def _scatter_3d(axes: Any, U: drawing.Floats, labels: NDArray[np.intp], chosen: Sequence[int], what: str) -> None:
    """Rows in their first three singular directions; per class the line that fits best, and the lines' angles."""
    points = np.pad(U @ np.linalg.svd(U, full_matrices=False)[2][:3].T, ((0, 0), (0, 2)))[:, :3]
    lines = np.array([np.linalg.svd(points[labels == c], full_matrices=False)[2][0] for c in chosen])
    for c, line, marker in zip(chosen, lines, "o^s", strict=False):
        look: Any = {
            "color": cluster_colour(c),
            "marker": marker,
            "s": float(np.clip(4000 / len(U), 14, 40)),
            "alpha": 0.6,
            "lw": 0,
        }
        axes.scatter(*points[labels == c].T, label=f"{what} {c}", **look)
        axes.plot(*np.outer(line, [-1, 1]), color=cluster_colour(c), lw=1.4)
    cosines = np.abs(lines @ lines.T)[np.triu_indices(len(chosen), 1)]
    angles = ", ".join(f"{angle:.0f}°" for angle in np.degrees(np.arccos(np.minimum(cosines, 1))))
    axes.set_title(f"angles between the lines: {angles or f'one {what}'}", y=1.02)
    axes.set(xticklabels=[], yticklabels=[], zticklabels=[], xlim=(-1, 1), ylim=(-1, 1), zlim=(-1, 1))
    axes.set_box_aspect(None, zoom=1.12)


def subspaces(images: ArrayLike, max_clusters: int = 10, clusters: Sequence[int] | None = None) -> Figure:
    """The images most aligned with each principal direction, one block per cluster.

    Parameters
    ----------
    images : array of shape (n_clusters, n_directions, n_images, height, width[, channels])
        As `aligned_rows` orders them; channels may also come before height.
    max_clusters : int, default=10
        Draw the first `max_clusters` clusters only.
    clusters : sequence of int, optional
        The number of each cluster; 0, 1, ... when left out.

    Returns
    -------
    Figure
    """
    pictures = np.asarray(images)
    if pictures.ndim not in (5, 6):
        raise InputError(f"images must be clusters x components x images of pixels; got shape {pictures.shape}.")
    if pictures.ndim == 6 and pictures.shape[-1] not in (1, 3):  # channels come first
        pictures = np.moveaxis(pictures, 3, -1)
    shown = pictures[:max_clusters]
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
        drawing.note(
            figure,
            f"{few if len(shown) < len(pictures) else ''}"
            f"Each line: the {block.shape[1]} images most aligned with one direction of the cluster.\n"
            "Lines that each show one thing (a pose, a colour, a background) mean directions with a meaning.",
        )
        figure.set_label(f"Images of {len(shown)} clusters by principal component.")
    return figure


def aligned_rows(Z: NDArray[Any], labels: NDArray[Any], n: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows of each cluster that are most aligned with its principal directions (not centred).

    Parameters
    ----------
    Z : array of shape (n_rows, d)
        The learned representation.
    labels : array of shape (n_rows,)
        The cluster of each row.
    n : int
        Directions per cluster, and rows per direction. Clusters with fewer rows are left out.

    Returns
    -------
    rows : array of shape (n_clusters, n, n)
        Row numbers by cluster and direction, largest |cosine| first.
    clusters : array of shape (n_clusters,)
        The clusters that are not left out.
    """
    rows, clusters = [], []
    for c in np.unique(labels):
        members = np.flatnonzero(labels == c)
        if len(members) < n:
            continue
        directions = np.linalg.svd(Z[members], full_matrices=False)[2][:n]
        rows.append(members[np.argsort(-np.abs(Z[members] @ directions.T), axis=0)[:n].T])
        clusters.append(int(c))
    if not rows:
        raise InputError(f"no cluster has {n} rows, so none has {n} images for each of {n} directions.")
    return np.stack(rows), np.array(clusters)


def _plural(what: str) -> str:
    return f"{what}es" if what.endswith("s") else f"{what}s"
