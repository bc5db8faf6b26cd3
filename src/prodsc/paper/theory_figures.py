"""The figures of the paper: measurements in, matplotlib Figures out. What to look for is written under each."""
# ruff: noqa: RUF001 - Greek letters and minus signs are meant

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.patheffects import withStroke
from numpy.typing import ArrayLike, NDArray

from prodsc.errors import InputError
from prodsc.report import _parts as parts
from prodsc.report.figures import WIDTH
from prodsc.report.style import COLOURS, HEAT, INK, MUTED, cluster_colour, style

MOST_CURVES = 7  # epochs drawn per panel: more shades cannot be told apart
MOST_ROWS = 600  # drawn of X and Z
BELOW: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.15)}  # a legend's place, out of the way of curves


def alignment(
    commutator: ArrayLike, correlations: ArrayLike, eigenvalues_G: ArrayLike, eigenvalues_M: ArrayLike,
    epochs: ArrayLike, curve_epochs: ArrayLike | None = None,
) -> Figure:  # fmt: skip
    """Theorem 1 in training: G = Z'Z and M = (I - C)(I - C)' come to share eigenvectors, and Z keeps its rank.

    `commutator` is ||GM - MG||_F, seeds x epochs. The others are epochs x n: the correlation <u_j, G u_j / |G u_j|>
    with the eigenvectors of M, smallest eigenvalue first (NaN: no direction left), eigenvalues of G descending and of
    M ascending. They may be of fewer epochs, then named by `curve_epochs`; at most MOST_CURVES of them are drawn.
    """
    when = _vector(epochs, "epochs", above=-np.inf)
    errors = parts.finite(parts.matrix(commutator, "commutator", width=len(when)), "commutator")
    which = when if curve_epochs is None else _vector(curve_epochs, "curve_epochs", above=-np.inf)
    r = parts.matrix(correlations, "correlations", len(which)).astype(np.float64)
    g = parts.finite(parts.matrix(eigenvalues_G, "eigenvalues_G", *r.shape), "eigenvalues_G")
    m = parts.finite(parts.matrix(eigenvalues_M, "eigenvalues_M", *r.shape), "eigenvalues_M")
    shown = np.unique(np.linspace(0, len(which) - 1, min(len(which), MOST_CURVES)).round().astype(int))
    shades = colormaps["viridis"](np.linspace(0.9, 0, len(shown)))  # dark = late
    mean, spread = errors.mean(axis=0), errors.std(axis=0)
    seeds = f"mean ± std of {len(errors)} seeds" if len(errors) > 1 else "one seed"
    width = int((g[-1] > 1e-6 * max(float(g[-1].max()), 1e-12)).sum())  # directions of Z
    many = r.shape[1] > 2 * parts.FEW
    if many:  # neighbouring eigenvectors of M are nearly exchangeable, so single values of (b) are noise
        r = np.stack([parts.running_mean(row, r.shape[1] // 60) for row in r])
    with style():
        figure = Figure(figsize=(WIDTH, 6.6), layout="constrained")
        (first, right), (low, last) = figure.subplots(2, 2)
        first.fill_between(when, mean - spread, mean + spread, color=COLOURS[4], alpha=0.4, lw=0)
        first.plot(when, mean, color=COLOURS[0], marker=".")
        first.set(xlabel="epoch", ylabel="‖GM − MG‖", ylim=(0, None))
        parts.panel_title(first, "(a) alignment error", f"0 = same eigenvectors; {seeds}")
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
            parts.panel_title(axes, name, hint)
        right.set_ylim(min(-0.03, float(np.nan_to_num(r).min())), 1.05)
        low.set(ylim=max(float(g.max()), 1e-9) * np.array([1e-4, 2]), yscale="log")  # what is below counts as zero
        last.set_ylim(bottom=min(0.0, float(m.min())))
        frame: Any = {"frameon": True, "facecolor": "white", "edgecolor": "none", "framealpha": 1}
        last.legend(loc="lower right", ncols=1 + len(shown) // 5, title="epoch, (b) to (d)", **frame)
        return _described(
            figure,
            "Do G = Z'Z and M = (I−C)(I−C)' align in training?",
            "Look for (a) falling to 0 and, late in training (dark), two cliffs at the dotted line: (b) from 1 to 0,\n"
            f"(c) to nothing. Then Z uses all {width} directions left of it, and each is an eigenvector of M.",
            f"Alignment error, {mean[0]:.3g} to {mean[-1]:.3g}; correlations and eigenvalues in {len(j)} directions.",
        )


def phase(
    alphas: ArrayLike, gammas: ArrayLike, acc: ArrayLike, sre: ArrayLike,
    boundary: ArrayLike | Callable[[parts.Floats], ArrayLike],
) -> Figure:  # fmt: skip
    """ACC and SRE in percent (len(gammas) x len(alphas), NaN: the run failed) and the boundary of Theorem 2 on both.

    `boundary` is gamma as a function of alpha, or its value at each of `alphas`.
    """
    a, g = _vector(alphas, "alphas", above=0.0), _vector(gammas, "gammas", above=0.0)
    scores = [parts.matrix(s, n, len(g), len(a)).astype(np.float64) for s, n in ((acc, "acc"), (sre, "sre"))]
    if any(np.isnan(s).all() or np.nanmin(s) < 0 or np.nanmax(s) > 100 for s in scores):
        raise InputError("acc and sre must hold percents from 0 to 100, NaN for a failed run; not all may have failed.")
    x_edges, y_edges = _log_edges(a), _log_edges(g)
    x = np.geomspace(x_edges[0], x_edges[-1], 200) if callable(boundary) else a
    y = _vector(boundary(x) if callable(boundary) else boundary, "boundary", len(x))
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
        left.legend(left.lines, ["Theorem 2: no collapse below this line"], **BELOW)
        if np.isnan(scores).any():
            right.legend([Patch(fc="white", ec=MUTED, hatch="///")], [failed], **BELOW)
        return _described(
            figure,
            "For which α and γ does Z not collapse?",
            "One cell per pair of α and γ; bright is good in both maps. Look for bright cells below the line, where\n"
            "theory promises full rank, and a change to dark above. The promise is cautious: above may be bright too.",
            f"Heat maps: ACC, best {np.nanmax(scores[0]):.1f} %, and SRE, best {np.nanmin(scores[1]):.1f} %; {failed}.",
        )


def orthogonal(
    X: ArrayLike, Z: ArrayLike, classes: ArrayLike, three: Sequence[int] | None = None, *, what: str = "class"
) -> Figure:
    """|X X'| and |Z Z'| sorted by class; rows of three classes (if not named, the first) in three dimensions.

    Rows are L2-normalised and sampled; the dimensions are the first right singular vectors, not centred.
    """
    labels = parts.cluster_labels(classes)
    present = np.unique(labels).tolist()
    chosen = present[:3] if three is None else [int(c) for c in three]
    if three is not None and (len(chosen) != 3 or len(set(chosen) & set(present)) != 3):
        raise InputError(f"three must name 3 different classes among the {len(present)} in classes; got {chosen}.")
    rows = parts.sample(len(labels), MOST_ROWS, seed=0)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    members = [np.flatnonzero(labels == c) for c in chosen]
    few = np.concatenate([mine[parts.sample(len(mine), MOST_ROWS // 3, seed=0)] for mine in members])
    with style():
        figure = Figure(figsize=(WIDTH, 7.6))  # placed by hand: a layout engine leaves wide margins around cubes
        means = []
        for column, (name, values, title) in enumerate((("X", X, "before: input X"), ("Z", Z, "after: learned Z"))):
            U = parts.matrix(values, name, len(labels))
            unit = parts.unit_rows(U[rows], name)
            G = np.abs(unit @ unit.T)
            means.append(parts.block_means(G, labels[rows]).replace("cluster", what))
            axes = figure.add_axes((0.085 + 0.42 * column, 0.55, 0.35, 0.33), title=f"{title}\n{means[-1]}")
            image = axes.imshow(G, cmap=HEAT, vmin=0, vmax=1)
            parts.mark_clusters(axes, labels[rows], "xy" if not column else "x", what)
            axes.tick_params(labelleft=not column)
            cube = figure.add_axes((0.01 + 0.46 * column, 0.12, 0.46, 0.34), projection="3d")
            _scatter_3d(cube, parts.unit_rows(U[few], name), labels[few], chosen, what)
        bar = figure.add_axes((0.885, 0.55, 0.02, 0.33))
        figure.colorbar(image, cax=bar, label="|cos| of two rows\n0 orthogonal, 1 same line")
        figure.legend(*cube.get_legend_handles_labels(), loc="center", ncols=3, bbox_to_anchor=(0.46, 0.095))
        return _described(
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
    """Theorem 3 in training: CSC, and mean |entry| of G and C in (thick) and off (thin) the blocks of classes."""
    when = _vector(epochs, "epochs", above=-np.inf)
    given = {"csc": csc, "g_inside": g_inside, "g_outside": g_outside, "c_inside": c_inside, "c_outside": c_outside}
    condition, g_in, g_out, c_in, c_out = (_vector(values, name, len(when)) for name, values in given.items())
    dot = "." if len(when) <= parts.FEW else ""
    with style():
        figure = Figure(figsize=(WIDTH, 3.9), layout="constrained")
        first, *pair = figure.subplots(1, 3, subplot_kw={"xlabel": "epoch"})
        first.axhline(0, color=MUTED, lw=1, ls=":")
        first.plot(when, condition, color=INK, lw=2, marker=dot)
        first.set_ylabel("CSC")
        parts.panel_title(first, "CSC", "0: Theorem 3 holds")
        panels = (
            ("G = Z'Z", g_in, g_out, "how alike rows of Z are"),
            ("C", c_in, c_out, "how rows rebuild each other"),
        )
        for axes, colour, (name, thick, thin, hint) in zip(pair, COLOURS[:4:3], panels, strict=True):
            parts.panel_title(axes, f"entries of {name}", hint)
            axes.plot(when, thick, color=colour, lw=3.5, marker=dot, ms=8)
            axes.plot(when, thin, color=colour, lw=1, marker=dot, ms=3)
            axes.set(ylabel=f"mean |entry of {name[0]}|", ylim=(0, None))
        return _described(
            figure,
            "Do G = Z'Z and C become block-diagonal?",
            f"Thick: two rows of one {what} (in a block); thin: of two {_plural(what)} (off blocks). Look for thin\n"
            "lines that come down, thick ones that stay up and CSC going to 0: rows are then alike, and rebuilt,\n"
            f"within their own {what} only. CSC = ⟨(I−C)(I−C)', G off the blocks⟩.",
            f"Line charts. At epoch {when[-1]:g} G is {g_in[-1]:.3g} in and {g_out[-1]:.3g} off the blocks, C "
            f"{c_in[-1]:.3g} and {c_out[-1]:.3g}; CSC went from {condition[0]:.3g} to {condition[-1]:.3g}.",
        )


def singular_values(X: ArrayLike, Z: ArrayLike, classes: ArrayLike, most: int = 10, *, what: str = "class") -> Figure:
    """Singular values of X and Z, divided by the largest: of all rows, and of each of the first `most` classes."""
    labels = parts.cluster_labels(classes)
    present = np.unique(labels)
    chosen = present[: max(most, 1)]
    with style():
        figure = Figure(figsize=(WIDTH, 4.1), layout="constrained")
        every, *single = figure.subplots(1, 3, sharey=True, subplot_kw={"xlabel": "direction, strongest first (log)"})
        parts.panel_title(every, "all rows", "number: effective rank")
        for axes, name, values, colour in zip(single, "XZ", (X, Z), (COLOURS[3], COLOURS[0]), strict=True):
            U = parts.finite(parts.matrix(values, name, len(labels)), name)
            whole = np.linalg.svd(U, compute_uv=False)
            _spectrum(every, whole, color=colour, lw=2.2, label=f"{name}  ({parts.effective_rank(whole):.1f})")
            each = {int(c): np.linalg.svd(U[labels == c], compute_uv=False) for c in chosen}
            ranks = [parts.effective_rank(singular) for singular in each.values()]
            for c, singular in each.items():
                _spectrum(axes, singular, color=cluster_colour(c), lw=1.1, label=str(c))
            which = "input X" if name == "X" else "learned Z"
            parts.panel_title(axes, f"{which} by {what}", f"mean effective rank {np.mean(ranks):.1f}")
        every.set(ylim=(1e-3, 1.3), yscale="log", ylabel="singular value / largest (log)")
        every.legend(loc="lower left")
        title = what if len(chosen) == len(present) else f"{what}\n(first {len(chosen)}\nof {len(present)})"
        figure.legend(handles=single[0].lines, loc="outside right center", title=title)
        return _described(
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
    """Theorem 2 as a picture: sigma_i^2 is what 1/(nu + gamma lambda_i) has above the level 1/alpha, i = 1 to d.

    `eigenvalues_M` ascend, d or more; `predicted` and `observed` are d squares; `gamma` weighs 1/2 ||Z - ZC||^2.
    """
    heights = _vector(predicted, "predicted")
    d, lost = len(heights), int((heights <= 0).sum())
    below = nu + gamma * _vector(eigenvalues_M, "eigenvalues_M")
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
            seen = level + _vector(observed, "observed", d)
            axes.plot(i[:d], seen, "o", ms=4, mfc="white", color=INK, label="observed σᵢ²")
        axes.axvline(d + 0.5, color=MUTED, lw=1, ls=":", label=f"d = {d}: Z has no more directions")
        axes.set(xlabel="direction i, smallest eigenvalue λᵢ of M first", ylabel="1 / (ν + γλᵢ)", ylim=(0, None))
        if steep:
            axes.set(yscale="log", ylim=(level / 2, 2 * top), ylabel="1 / (ν + γλᵢ) = σᵢ² + 1/α (log)")
        else:
            height: Any = (lambda y: y - level, lambda s: s + level)
            axes.secondary_yaxis("right", functions=height).set_ylabel("σᵢ²")
        axes.legend(ncols=2, **BELOW)
        return _described(
            figure,
            "How much strength does each direction of Z get?",
            "Directions that C rebuilds well (small λ, left) get more; where the curve is under the level, nothing:\n"
            f"here {lost} of {d} are lost." + " Dots on the edge of the fill: as predicted." * (observed is not None),
            f"Curve 1/(nu + gamma lambda) and level 1/alpha = {level:.3g}; above it {d - lost} of {d} directions.",
        )


def _vector(values: ArrayLike, name: str, n: int | None = None, above: float | None = None) -> parts.Floats:
    """Finite numbers; with `above` they must ascend from there."""
    array = np.asarray(values)
    if array.ndim != 1 or not len(array) or n not in (None, len(array)):
        raise InputError(f"{name} must be a list of {n or 'one or more'} numbers; got shape {array.shape}.")
    floats = parts.finite(array, name)
    if above is not None and (np.diff(floats, prepend=above) <= 0).any():
        raise InputError(f"{name} must ascend from above {above:g}, without repeats; got {floats.tolist()}.")
    return floats


def _log_edges(centres: parts.Floats) -> parts.Floats:
    """Borders of cells around centres, half-way on a log axis."""
    logs = np.log(centres)
    steps = np.diff(logs) if len(logs) > 1 else np.ones(1)
    padded = np.array([logs[0] - steps[0], *logs, logs[-1] + steps[-1]])
    return np.exp((padded[1:] + padded[:-1]) / 2)


def _spectrum(axes: Any, singular: NDArray[Any], **look: Any) -> None:
    few = len(singular) <= parts.FEW
    axes.semilogx(np.arange(1, len(singular) + 1), singular / (singular[0] or 1.0), marker="." if few else "", **look)


def _scatter_3d(axes: Any, U: parts.Floats, labels: NDArray[np.intp], chosen: Sequence[int], what: str) -> None:
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


def _plural(what: str) -> str:
    return f"{what}es" if what.endswith("s") else f"{what}s"


def _described(figure: Figure, title: str, note: str, alternative: str) -> Figure:
    figure.suptitle(title)
    parts.note(figure, note)
    figure.set_label(alternative)
    return figure
