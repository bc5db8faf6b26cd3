"""Figures of one fit that are not in the paper: collapse margin, eigengap, choice of k, classes and clusters."""
# ruff: noqa: RUF001 - minus signs are meant

import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import ArrayLike, NDArray

from prodsc.core import metrics
from prodsc.core.graph.number import KCurve
from prodsc.report import drawing
from prodsc.report.figures import WIDTH
from prodsc.report.style import COLOURS, HEAT, INK, style
from prodsc.training.stopping import STOPPING_RULES

METERS = ("gamma", "lambda_max", "margin", "effective_rank", "agreement", "perplexity", "stability")


def margin(history: Mapping[str, Sequence[Any]]) -> Figure | None:
    """How far gamma stayed below the bound of Theorem 2, and how many directions Z used; None if not measured."""
    steps = np.asarray(history["step"], dtype=np.float64) + _offsets(history)
    panels = []
    for name, title, hint in (
        ("margin", "margin: bound over γ", "above 1: collapse is ruled out"),
        ("effective_rank", "directions in use", "effective rank of Z on the batch"),
    ):
        values = np.asarray(history[name], dtype=np.float64) if name in history else np.full(len(steps), np.nan)
        if np.isfinite(values).any():
            panels.append((name, title, hint, steps[np.isfinite(values)], values[np.isfinite(values)]))
    if not panels:
        return None
    with style():
        figure = Figure(figsize=(WIDTH, 3.3), layout="constrained")
        for axes, (name, title, hint, x, y) in zip(figure.subplots(1, 2)[: len(panels)], panels, strict=True):
            drawing.curve(axes, x, y)
            axes.set(xlabel="training step", ylim=(0, 1.1 * max(float(y.max()), 1.0)))
            if name == "margin":
                axes.axhspan(0, 1, color=COLOURS[3], alpha=0.12, lw=0)
                axes.axhline(1, color=COLOURS[3], ls="--", lw=1.2)
                axes.annotate("below: collapse possible", (x[-1], 1), (0, -4), textcoords="offset points", ha="right",
                              va="top", color=COLOURS[3], size=8.5)  # fmt: skip
            drawing.panel_title(axes, title, hint)
        for axes in figure.axes[len(panels) :]:
            axes.remove()
        figure.suptitle("Did training stay clear of collapse?")
        drawing.note(
            figure,
            "Joint phase, measured every few steps. Left: stay above the dashed line. Right: a dip in the first\n"
            "steps that comes back is normal; a fall that stays low is a collapse.",
        )
        ends = ", ".join(f"{title} from {y[0]:.3g} to {y[-1]:.3g}" for _, title, _, _, y in panels)
        figure.set_label(f"Line charts over training: {ends}.")
    return figure


@dataclass(frozen=True)
class Evaluations:
    """What `keep_weights="best"` measured every few steps, and which weights it kept."""

    steps: NDArray[np.float64]  # of the joint phase
    agreement: NDArray[np.float64]  # of neighbours
    perplexity: NDArray[np.float64]
    kept: int  # index of the evaluation whose weights were kept
    ended: bool  # did training end because clusters were being split?

    def summary(self) -> str:
        kept = f"The weights of joint step {self.steps[self.kept]:.0f} were kept, where neighbours agreed best"
        if self.ended:
            return f"{kept}; training ended at step {self.steps[-1]:.0f} because it had begun to split clusters."
        return f"{kept}; training continued to its last step, {self.steps[-1]:.0f}."


def evaluations(history: Mapping[str, Sequence[Any]]) -> Evaluations | None:
    """The evaluations in the history of a fit; None when there are none."""
    if "agreement" not in history:
        return None
    agreement, perplexity = (np.asarray(history[name], dtype=np.float64) for name in ("agreement", "perplexity"))
    evaluated = np.isfinite(agreement)
    if not evaluated.any():
        return None
    steps, agreement, perplexity = (
        np.asarray(history["step"], dtype=np.float64)[evaluated],
        agreement[evaluated],
        perplexity[evaluated],
    )
    over = np.array([STOPPING_RULES.splits_clusters(p, perplexity[0]) for p in perplexity])
    best = int(np.argmax(np.where(over, -np.inf, STOPPING_RULES.smooth(agreement))))
    return Evaluations(steps, agreement, perplexity, best, bool(over[-1]))


def best_weights(seen: Evaluations) -> Figure:
    """Agreement of neighbours at every evaluation, the weights that were kept, and where clusters are split."""
    with style():
        figure = Figure(figsize=(WIDTH, 3.3), layout="constrained")
        left, right = figure.subplots(1, 2)
        for axes, values, colour in ((left, seen.agreement, COLOURS[0]), (right, seen.perplexity, COLOURS[2])):
            axes.plot(seen.steps, values, ".-", color=colour, lw=1, ms=7)
            axes.plot(seen.steps[seen.kept], values[seen.kept], "o", ms=11, mfc="none", mec=COLOURS[1], mew=2)
            axes.set(xlabel="joint step")
        left.annotate("kept", (seen.steps[seen.kept], seen.agreement[seen.kept]), (0, -12), va="top", ha="center",
                      textcoords="offset points", size=8.5, color=COLOURS[1])  # fmt: skip
        low, high = min(float(seen.agreement.min()), 0.9), max(1.0, float(seen.agreement.max()))
        left.set_ylim(low - 0.15 * (high - low), high)
        right.set(ylim=(0, 1.1 * max(float(seen.perplexity.max()), 1.5)))
        right.axhspan(0, STOPPING_RULES.split_below, color=COLOURS[3], alpha=0.12, lw=0)
        right.axhline(STOPPING_RULES.split_below, color=COLOURS[3], ls="--", lw=1.2)
        drawing.panel_title(left, "agreement of neighbours", "1: all near rows share a label, 0: as by chance")
        drawing.panel_title(right, "rows that express a row", "in clusters of average size")
        figure.suptitle("When was training best?")
        drawing.note(
            figure,
            "Evaluated every few steps, without labels. Left: the fit is where the mean of three points is highest.\n"
            "Right: below the dashed line clusters are being split, and training ends.",
        )
        figure.set_label(f"Line charts of {len(seen.steps)} evaluations in training. {seen.summary()}")
    return figure


@dataclass(frozen=True)
class LabelChanges:
    """What `keep_weights="converged"` measured: NMI of labels with those of the evaluation before."""

    steps: NDArray[np.float64]  # of the joint phase
    stability: NDArray[np.float64]

    @property
    def ended(self) -> bool:
        return len(self.stability) >= STOPPING_RULES.n_unchanged and bool(
            (self.stability[-STOPPING_RULES.n_unchanged :] >= STOPPING_RULES.same_labels).all()
        )

    def summary(self) -> str:
        if self.ended:
            unchanged = f"labels stayed the same in {STOPPING_RULES.n_unchanged} evaluations"
            return f"Training ended at step {self.steps[-1]:.0f}: {unchanged}."
        return f"Training continued to its last step, {self.steps[-1]:.0f}; labels were still changing a little."


def label_changes(history: Mapping[str, Sequence[Any]]) -> LabelChanges | None:
    """The changes of labels in the history of a fit; None when there are none."""
    stability = np.asarray(history.get("stability", ()), dtype=np.float64)
    evaluated = np.isfinite(stability)
    if not evaluated.any():
        return None
    return LabelChanges(np.asarray(history["step"], dtype=np.float64)[evaluated], stability[evaluated])


def label_convergence(seen: LabelChanges) -> Figure:
    """How much the labels of one evaluation have in common with those of the evaluation before."""
    with style():
        figure = Figure(figsize=(WIDTH, 3.0), layout="constrained")
        axes = figure.subplots()
        axes.plot(seen.steps, seen.stability, ".-", color=COLOURS[0], lw=1, ms=7)
        axes.axhline(STOPPING_RULES.same_labels, color=COLOURS[3], ls="--", lw=1.2)
        low = min(float(seen.stability.min()), 0.9)
        axes.set(xlabel="joint step", ylim=(low - 0.05 * (1 - low), 1 + 0.05 * (1 - low)))
        drawing.panel_title(axes, "NMI with the labels of the evaluation before", "1: the same clusters")
        figure.suptitle("When did labels stop changing?")
        drawing.note(
            figure,
            f"Evaluated every few steps. Training ends after {STOPPING_RULES.n_unchanged} evaluations above the "
            "dashed line.",
        )
        figure.set_label(f"A line chart of {len(seen.steps)} evaluations in training. {seen.summary()}")
    return figure


def eigengap(eigenvalues: ArrayLike, k: int) -> Figure:
    """Smallest eigenvalues of the normalised Laplacian, ascending, with the gap after the k-th and the widest gap."""
    values = drawing.finite(np.asarray(eigenvalues), "eigenvalues")
    widest = suggested_k(values)
    with style():
        figure = Figure(figsize=(WIDTH, 3.4), layout="constrained")
        axes = figure.subplots()
        i = np.arange(1, len(values) + 1)
        axes.plot(i, values, ".-", color=COLOURS[0], lw=1, ms=8)
        for at, colour, words in ((k, COLOURS[3], f"asked for: {k}"), (widest, COLOURS[2], f"widest gap: {widest}")):
            if at < len(values) and (at != k or colour == COLOURS[3]):
                same = at == widest == k
                axes.axvspan(
                    at, at + 1, color=colour, alpha=0.2, lw=0, label=f"{words}, also the widest gap" if same else words
                )
        axes.set(
            xlabel="eigenvalue, smallest first",
            ylabel="eigenvalue of the Laplacian",
            ylim=(min(0.0, values.min()), None),
        )
        axes.legend(loc="lower right")
        figure.suptitle("How many clusters does the affinity show?")
        drawing.note(
            figure,
            "As many eigenvalues near 0 as there are separate groups, then a jump. A wide gap right after the number\n"
            "you asked for supports it; no clear gap means that the number is your choice.",
        )
        figure.set_label(f"Line chart of {len(values)} eigenvalues; asked for {k} clusters, widest gap after {widest}.")
    return figure  # fmt: skip


def k_curve(curve: KCurve) -> Figure:
    """The score of every candidate k and how far two shares of the rows agree, with the best and the nearly best."""
    ks, scores = np.array(curve.candidates), drawing.finite(np.array(curve.scores), "scores")
    agreement = 100 * drawing.finite(np.array(curve.agreement), "agreement")
    with style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        left.plot(ks, curve.reference, color=COLOURS[3], ls="--", lw=1.2)
        for axes, values, colour in ((left, scores, COLOURS[0]), (right, agreement, COLOURS[2])):
            axes.plot(ks, values, ".-", color=colour, lw=1, ms=6)
            at = int(np.argmax(scores))
            axes.plot(ks[at], values[at], "o", ms=10, mfc="none", mec=COLOURS[1], mew=2)
            axes.set(xscale="log", xlabel="number of clusters k")
            shown = [k for k in (2, 3, 5, 10, 20, 50, 100, 200, 500) if ks[0] <= k <= ks[-1]]
            axes.set_xticks(shown, [str(k) for k in shown])
            axes.set_xticks([], minor=True)
        low = max(float(scores.min()), -max(1.0, float(scores.max())))  # far below zero nothing can be learned
        left.set_ylim(low - 0.1, max(float(scores.max()), *curve.reference, 0.0) * 1.15 + 0.1)
        right.set_ylim(0, 105)
        drawing.panel_title(left, "score, bits", "confirmed less 3 x unconfirmed; dashed: one cloud")
        drawing.panel_title(right, "agreement of two shares, %", "100: the same clusters again")
        clear = f"k = {curve.k}" if curve.clear else "no clear k"
        figure.suptitle(f"How many clusters do the rows themselves show? {clear}")
        drawing.note(
            figure,
            f"{curve.rows:,} rows; two random shares of them are clustered for each k. The highest point is the\n"
            "answer when it is well above the dashed line; points nearly as high are as good.",
        )
        figure.set_label(f"Score and agreement for {len(ks)} numbers of clusters; {curve.summary()}")
    return figure


def suggested_k(values: ArrayLike) -> int:
    """Where the widest gap is, from 2 on: the first eigenvalue is 0 for any graph, so the gap after it is ignored."""
    gaps = np.diff(np.asarray(values, dtype=np.float64))
    return int(np.argmax(gaps[1:]) + 2) if len(gaps) > 1 else 1


def confusion(
    counts: NDArray[np.intp], partner: NDArray[np.intp], classes: Sequence[str], side: str = "known class"
) -> Figure:
    """Clusters against classes, the columns in the order of the clusters they are matched to, each row as shares."""
    matched = np.flatnonzero(partner >= 0)
    clusters = [*matched, *np.flatnonzero(partner < 0)]
    order = [*partner[matched], *(c for c in range(counts.shape[1]) if c not in set(partner.tolist()))]
    table = counts[np.ix_(clusters, order)]
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)
    few = max(table.shape) <= 20  # then every cell has room for its number
    with style():
        figure = Figure(
            figsize=(WIDTH, 1.6 + WIDTH * 0.72 * min(1.0, max(0.35, len(table) / 12))), layout="constrained"
        )
        axes = figure.subplots()
        image = axes.imshow(shares, cmap=HEAT, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
        if few:
            for i, j in np.argwhere(table > 0):
                ink = INK if shares[i, j] > 0.6 else "white"
                axes.text(j, i, f"{table[i, j]:,}", ha="center", va="center", size=8, color=ink)
        every = max(1, -(-max(table.shape) // 25))
        names = [textwrap.shorten(classes[c], 14, placeholder="…") or "…" for c in order]
        turned = 90 if max(map(len, names)) > 3 else 0
        axes.set_xticks(range(0, len(order), every), names[::every], rotation=turned, parse_math=False)
        axes.set_yticks(range(0, len(table), every), [str(c) for c in clusters[::every]])
        axes.set(xlabel=f"{side}, in the order of its cluster", ylabel="cluster")
        figure.colorbar(image, ax=axes, label="share of the cluster's rows", pad=0.02)
        figure.suptitle(f"Which {side} is in which cluster?")
        what = "Numbers are rows." if few else "Brightness is the share of the cluster's rows."
        drawing.note(figure, f"{what} Bright on the diagonal: clusters and {side}es agree. Off it: what is confused.")
        agree = table[np.arange(min(table.shape)), np.arange(min(table.shape))].sum()
        figure.set_label(f"Table of {len(table)} clusters by {len(order)} classes; {agree:,} rows on the diagonal.")
    return figure  # fmt: skip


def reliability(right: ArrayLike, *, bins: int = 10, min_rows: int = 10, **confidences: ArrayLike) -> Figure:
    """The share of right labels by confidence.

    Parameters
    ----------
    right : array of shape (n,)
        Whether the label of each row is right.
    bins : int, default=10
        Bins of confidence.
    min_rows : int, default=10
        Bins with fewer rows are left out.
    **confidences : array of shape (n,)
        One curve for each: the confidence of every label.

    Returns
    -------
    Figure
    """
    truth = np.asarray(right, dtype=np.float64)
    edges = np.linspace(0, 1, bins + 1)
    with style():
        figure = Figure(figsize=(WIDTH, 3.6), layout="constrained")
        axes = figure.subplots()
        axes.plot([0, 1], [0, 1], color=INK, ls="--", lw=1, label="calibrated")
        summaries = []
        for colour, (name, values) in zip(COLOURS, confidences.items(), strict=False):
            confidence = drawing.fractions(values, name, len(truth))
            place = np.clip(np.digitize(confidence, edges) - 1, 0, bins - 1)
            used = [i for i in range(bins) if (place == i).sum() >= min_rows]
            x, y = ([column[place == i].mean() for i in used] for column in (confidence, truth))
            error = metrics.calibration_error(confidence, truth)
            summary = f"{name.replace('_', ' ')}: mean {confidence.mean():.3f}, ECE {error:.3f}"
            axes.plot(x, y, ".-", color=colour, ms=9, label=summary)
            summaries.append(summary)
        axes.set(xlabel="confidence", ylabel="share of right labels", xlim=(0, 1), ylim=(0, 1))
        axes.legend(loc="upper left")
        figure.suptitle("Are labels right as often as their confidence says?")
        drawing.note(
            figure,
            f"Rows in {bins} bins by confidence (bins of {min_rows} rows or more). Right: in the cluster that is\n"
            "matched to their class. On the dashed line confidence is calibrated; below it, it is too high.",
        )
        figure.set_label(f"Reliability curves, {truth.mean():.3f} of the labels right; {'; '.join(summaries)}.")
    return figure


def _offsets(history: Mapping[str, Sequence[Any]]) -> drawing.Floats:
    """What to add to the steps, which start at 1 in each phase, for one axis over all phases."""
    steps, phases = np.asarray(history["step"], dtype=np.float64), list(history["phase"])
    starts = [i for i in range(1, len(phases)) if steps[i] <= steps[i - 1]]
    offsets = np.zeros(len(steps))
    for i in starts:
        offsets[i:] += steps[i - 1]
    return offsets
