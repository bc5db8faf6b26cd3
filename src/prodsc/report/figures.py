"""Arrays in, matplotlib Figures out: no files, no pyplot, no global state.

The sentence under a figure says what to look for; its alternative text is `figure.get_label()`.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator
from numpy.typing import ArrayLike, NDArray

from prodsc.report import drawing
from prodsc.report.style import COLOURS, HEAT, PHASE_TINTS, style

WIDTH = 7.2  # inches; one width for all, so that text has one size down the page

TERM_HINTS = {
    "total": "all active terms together: what training lowers",
    "coding_rate": "lower = points spread wider, no collapse",
    "self_expression": "lower = rows rebuild each other better",
    "block_diagonal": "0 = the graph falls into k separate parts",
    "walk_expression": "lower = rows lie closer to those that a walk reaches",
    "cross_entropy": "lower = the label head has learned the labels of the walk",
    "negative_information": "lower = labels tell more about those of neighbours",
    "reconstruction": "lower = less of the input is lost",
    "gamma": "weight of self-expression; the guard may lower it",
    "lambda_max": "largest eigenvalue of M = (I - C)(I - C)'",
    "margin": "above 1 = theory rules collapse out",
    "effective_rank": "directions that Z uses; low for good = collapsed",
}


def gram(X: ArrayLike, Z: ArrayLike, labels: ArrayLike, max_rows: int = 600, seed: int = 0) -> Figure:
    """|X X'| beside |Z Z'| for unit rows, sorted by predicted cluster.

    Parameters
    ----------
    X, Z : array of shape (n, any)
        Input rows and their learned representation.
    labels : array of shape (n,)
        The cluster of each row.
    max_rows : int, default=600
        Rows drawn; a random sample of more.
    seed : int, default=0
        Of the sample.

    Returns
    -------
    Figure
    """
    labels = drawing.cluster_labels(labels)
    rows = drawing.sample(len(labels), max_rows, seed)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    given = {"X": drawing.matrix(X, "X", len(labels)), "Z": drawing.matrix(Z, "Z", len(labels))}
    unit = {name: drawing.unit_rows(U[rows], name) for name, U in given.items()}
    with style():
        figure = Figure(figsize=(WIDTH, 4.4), layout="compressed")
        summaries = []
        for axes, (name, U) in zip(figure.subplots(1, 2, sharey=True), unit.items(), strict=True):
            G = np.abs(U @ U.T)
            image = axes.imshow(G, cmap=HEAT, vmin=0, vmax=1)
            summaries.append(drawing.block_means(G, labels[rows]))
            axes.set_title(f"{'before: input X' if name == 'X' else 'after: learned Z'}\n{summaries[-1]}")
            drawing.mark_clusters(axes, labels[rows], sides="xy" if name == "X" else "x")
        figure.colorbar(image, ax=figure.axes, label="|cos| of two rows\n0 orthogonal, 1 same line", pad=0.02)
        figure.suptitle("How alike is each pair of rows?")
        drawing.note(
            figure,
            f"{len(rows):,} of {len(labels):,} rows, sorted by predicted cluster. Look for bright blocks on the\n"
            "diagonal, dark elsewhere: clusters lie in orthogonal subspaces.",
        )
        figure.set_label(
            f"Two heat maps of the absolute cosine between {len(rows):,} rows sorted by cluster. "
            f"Input X: {summaries[0]}. Learned Z: {summaries[1]}."
        )
    return figure


def learning_curves(history: Mapping[str, Sequence[Any]]) -> Figure:
    """One panel per loss term over all steps; the background shows the phase.

    Parameters
    ----------
    history : mapping of str to sequence
        Columns 'phase', 'step', 'total', perhaps 'epoch', and one per term, NaN where a term was not active. Steps may
        start again in each phase.

    Returns
    -------
    Figure
    """
    steps, phases, curves = drawing.read_history(history)
    spans = [list(run) for _, run in groupby(range(len(phases)), key=phases.__getitem__)]
    tints = {phase: PHASE_TINTS[i % len(PHASE_TINTS)] for i, phase in enumerate(dict.fromkeys(phases))}
    starts = [(steps[span[0] - 1] + steps[span[0]]) / 2 for span in spans[1:]]
    edges = [steps[0] - 0.5, *starts, steps[-1] + 0.5]  # half a step each side: a phase of one step is visible too
    with style():
        n_lines = -(-len(curves) // 2)
        figure = Figure(figsize=(WIDTH, 1.2 + 1.9 * n_lines), layout="constrained")
        panels = figure.subplots(n_lines, 2, squeeze=False).ravel()
        for axes, (name, values) in zip(panels, curves.items(), strict=False):
            for span, left, right in zip(spans, edges, edges[1:], strict=False):
                axes.axvspan(left, right, color=tints[phases[span[0]]], lw=0, zorder=0)
                active = [i for i in span if np.isfinite(values[i])]
                drawing.curve(axes, steps[active], values[active])
            drawing.panel_title(axes, name.replace("_", " "), TERM_HINTS.get(name, ""))
            axes.set_xlim(edges[0], edges[-1])
            axes.xaxis.set_major_locator(MaxNLocator(5, steps=[1, 2, 5, 10], integer=True))
            axes.set_xlabel("training step")
        for axes in panels[len(curves) :]:
            axes.remove()
        figure.suptitle("How did training go?")
        handles = [Patch(color=tint, label=phase) for phase, tint in tints.items()]
        legend = figure.legend(
            handles=handles, loc="outside lower center", ncols=min(len(tints), 4), title="background: phase of training"
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
        ends = (f"{name.replace('_', ' ')} {values[np.isfinite(values)][-1]:.3g}" for name, values in curves.items())
        figure.set_label(
            f"Line charts of {len(curves)} losses over {len(steps):,} recorded steps; phases: {', '.join(tints)}. "
            f"Last values: {', '.join(ends)}."
        )
    return figure


def map_2d(
    coordinates: ArrayLike,
    labels: ArrayLike,
    confidence: ArrayLike | None = None,
    title: str = "Which rows belong together?",
) -> Figure:
    """Scatter plot coloured by cluster, with the number of each cluster at its median.

    Parameters
    ----------
    coordinates : array of shape (n, 2)
        A place for each row.
    labels : array of shape (n,)
        The cluster of each row.
    confidence : array of shape (n,), optional
        From 0 to 1; rows of low confidence are pale.
    title : str
        Title of the figure.

    Returns
    -------
    Figure
    """
    labels = drawing.cluster_labels(labels)
    points = drawing.finite(drawing.matrix(coordinates, "coordinates", len(labels), width=2), "coordinates")
    clusters, sizes = np.unique(labels, return_counts=True)
    strength = np.full(len(labels), 0.85)
    note = "Each dot is one row; dots that touch are alike. Axes have no unit, and wide gaps no meaning."
    if confidence is not None:
        strength = 0.12 + 0.83 * drawing.fractions(confidence, "confidence", len(labels))
        note += "\nStrong colour: a sure assignment. Pale: the row could belong elsewhere."
    with style():
        figure = Figure(figsize=(WIDTH, 5.4), layout="constrained")
        axes = figure.subplots()
        drawing.scatter_map(axes, points, labels, strength)
        if len(clusters) <= 12:  # with more, the legend is longer than the picture
            handles = drawing.cluster_handles(clusters, [f"{c}  ({n:,})" for c, n in zip(clusters, sizes, strict=True)])
            figure.legend(handles=handles, loc="outside right center", title="cluster\n(dots shown)")
        figure.suptitle(drawing.wrapped(title), parse_math=False)
        drawing.note(figure, note + drawing.repeated_colours(clusters))
        figure.set_label(
            f"Scatter of {len(labels):,} rows in {len(clusters)} clusters of {sizes.min():,} to {sizes.max():,} rows."
        )
    return figure


def two_maps(before: ArrayLike, after: ArrayLike, labels: ArrayLike, *, what: str = "class") -> Figure:
    """Two maps of the same rows side by side.

    Parameters
    ----------
    before, after : array of shape (n, 2)
        Places of the rows of X and of Z.
    labels : array of shape (n,)
        The class or cluster of each row.
    what : str, default="class"
        What the groups are called: "class" or "cluster".

    Returns
    -------
    Figure
    """
    labels = drawing.cluster_labels(labels)
    groups = np.unique(labels)
    with style():
        figure = Figure(figsize=(WIDTH, 4.7), layout="constrained")
        pair = {"before: input X": before, "after: learned Z": after}
        for axes, (title, places) in zip(figure.subplots(1, 2), pair.items(), strict=True):
            points = drawing.finite(drawing.matrix(places, title, len(labels), width=2), title)
            drawing.scatter_map(axes, points, labels, np.full(len(labels), 0.8), dot=0.5)
            axes.set_title(title)
        figure.suptitle(f"Does learning separate the {'classes' if what == 'class' else 'clusters'}?")
        drawing.note(
            figure,
            f"t-SNE of {len(labels):,} rows; number and colour: {what}. Look for islands of one colour on the right\n"
            "where colours mix on the left. Axes have no unit, and wide gaps no meaning."
            + drawing.repeated_colours(groups),
        )
        figure.set_label(f"Two scatters of {len(labels):,} rows, of X and of Z, in {len(groups)} colours by {what}.")
    return figure


def embed_2d(Z: ArrayLike, seed: int = 0, max_rows: int = 2000) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """t-SNE of a random sample of rows.

    Sign is ignored: z and -z span the same line, so they belong to one subspace and get the same place. The distance
    is 1 - |<z_i, z_j>| between unit rows: 0 on the same line, 1 when orthogonal.

    Parameters
    ----------
    Z : array of shape (n, d)
        The rows.
    seed : int, default=0
        Of the sample and of t-SNE.
    max_rows : int, default=2000
        Size of the sample.

    Returns
    -------
    rows : array of shape (m,)
        Row numbers of the sample.
    places : array of shape (m, 2)
        Their places in the plane.
    """
    Z = drawing.matrix(Z, "Z")
    rows = drawing.sample(len(Z), max_rows, seed)
    U = drawing.unit_rows(Z[rows], "Z")
    if len(rows) < 4:  # t-SNE has nothing to preserve: principal components of the rows turned to one side
        return rows, drawing.principal_plane(U * np.where(U @ U[0] < 0, -1.0, 1.0)[:, None])
    from sklearn.manifold import TSNE  # here, because it takes a second to import
    from threadpoolctl import threadpool_limits

    D = np.clip(1 - np.abs(U @ U.T), 0, None)
    np.fill_diagonal(D, 0)
    perplexity = min(30.0, (len(rows) - 1) / 3)  # t-SNE wants it below the number of rows
    # After 600 iterations, of which 250 pull clusters apart, places do not change visibly; 1,000 take twice as long.
    tsne = TSNE(metric="precomputed", init="random", perplexity=perplexity, max_iter=600, random_state=seed)
    # For few rows threads are no faster, and on a busy machine up to 30 times slower.
    with threadpool_limits(1 if len(rows) < 1000 else None, user_api="openmp"):
        return rows, tsne.fit_transform(D).astype(np.float64)


def spectrum(Z: ArrayLike) -> Figure:
    """Singular values of Z on a log axis, with the effective rank exp(entropy of sigma^2 / sum sigma^2).

    Parameters
    ----------
    Z : array of shape (n, d)
        The representation.

    Returns
    -------
    Figure
    """
    singular = np.linalg.svd(drawing.finite(drawing.matrix(Z, "Z"), "Z"), compute_uv=False)
    rank = drawing.effective_rank(singular)
    positive = np.maximum(singular, (singular[0] or 1.0) * 1e-8)  # a log axis cannot show 0
    with style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        axes = figure.subplots()
        axes.semilogy(np.arange(1, len(singular) + 1), positive, ".-", color=COLOURS[0], lw=1)
        axes.axvline(rank, color=COLOURS[3], ls="--", lw=1.2)
        side, shift = ("right", -5) if rank > len(singular) / 2 else ("left", 5)
        place: Any = {"xycoords": axes.get_xaxis_transform(), "textcoords": "offset points", "ha": side}
        axes.annotate(f"effective rank {rank:.1f}", (rank, 0.93), (shift, 0), color=COLOURS[3], **place)
        axes.set(xlabel="direction of Z, strongest first", ylabel="singular value (log)")
        axes.set_ylim(
            bottom=0.7 * min(positive[-1], positive[0] / 100)
        )  # two decades: a small fall must not look like a cliff
        axes.yaxis.set_major_formatter("{x:g}")
        axes.xaxis.set_major_locator(MaxNLocator(10, steps=[1, 2, 5, 10], integer=True))
        figure.suptitle("How many directions does Z use?")
        drawing.note(
            figure,
            "A long plateau: many directions carry information. A steep fall after the first few: Z has collapsed.\n"
            "Dashed: the number of equally strong directions that would carry as much.",
        )
        figure.set_label(f"Line chart of {len(singular)} singular values; effective rank {rank:.1f}.")
    return figure
