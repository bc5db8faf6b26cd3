"""The page that every fit ends with: what was found, whether to trust it, and how it was made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prodsc.core import metrics
from prodsc.core.graph import laplacian_eigenvalues
from prodsc.pro_dsc.diagnosis import Diagnosis, diagnose
from prodsc.report import drawing, figures, fit_figures
from prodsc.report.agreement import agreement, resampled, worst_pairs
from prodsc.report.clusters import Card, cards, standing_out
from prodsc.report.layout import Layout, lay_out
from prodsc.report.looks import Looks
from prodsc.report.map_data import Shown, map_data
from prodsc.report.movement import bands
from prodsc.report.page import PageFigure, PageItem, PageSection, PageTable, component, write_page
from prodsc.report.theory_figures import water_filling

if TYPE_CHECKING:
    from prodsc.pro_dsc.estimator import PRODSC

MOST_SHOWN = 100_000  # rows on the page; of more, a random sample
NEARLY = 0.7  # of the widest gap: two numbers of clusters are then both supported
DRAWN = 2000  # rows in a static picture: more than it can tell apart
CHUNK = 8192  # rows read at a time


@dataclass(frozen=True)
class OtherFit:
    """Another fit of the same rows, to compare with."""

    name: str
    labels: NDArray[np.intp]


def write_fit_page(
    path: Path,
    title: str,
    model: "PRODSC",
    X: np.ndarray,
    proba: np.ndarray | None = None,
    *,
    facts: Mapping[str, str],
    looks: Looks | None = None,
    columns: Sequence[str] | None = None,
    y: np.ndarray | None = None,
    classes: Sequence[str] | None = None,
    made: Mapping[str, Any] | None = None,
    tables: Sequence[PageTable] = (),
    other: OtherFit | None = None,
) -> None:
    """`proba` is the model's predict_proba of X, if it is known; else it is computed for the rows that are shown.

    `columns` names those of X, `classes` the codes in y.

    `made` is what result.json says of the run.
    """
    looks = looks or Looks()
    looks.check(len(X))
    rows = drawing.sample(len(X), MOST_SHOWN, seed=0)
    pieces = [rows[i : i + CHUNK] for i in range(0, len(rows), CHUNK)]
    Z = np.concatenate([model.transform(X[piece]) for piece in pieces])
    layout = lay_out(Z)
    k = model.n_clusters_
    sure = proba[rows] if proba is not None else np.concatenate([model.predict_proba(X[piece]) for piece in pieces])
    best = np.argsort(-sure, axis=1, kind="stable")[:, :2]
    shown = Shown(
        rows,
        layout.places,
        model.labels_[rows].astype(np.intp),
        sure.max(axis=1),
        best[:, -1],
        np.bincount(model.labels_, minlength=k).tolist(),
        looks,
    )
    off = standing_out(X, model.labels_, k, columns) if np.ndim(X) == 2 and looks.image is None else None
    made_cards = cards(Z, shown.labels, shown.confidence, shown.second, shown.sizes, off)
    needed = [row for card in made_cards for row in card.rows()]
    found = diagnose(model, X)
    sections = [_sound(model, found, X, Z, shown)]
    if y is not None:
        codes, names = _codes(y, classes)
        shown = replace(shown, truth=codes[rows], classes=names)
        section, pairs = _known(shown, model.labels_, codes, tables, other)
        sections.append(section)
        needed += pairs
    if other is not None:
        shown, section, pairs = _moved(shown, model.labels_, other, k)
        sections.append(section)
        needed += pairs
    if made is not None:
        sections.append(_made(made))
    data, notes = map_data(shown, needed)
    sections = [_map(shown, layout, len(X), notes), _clusters(shown, made_cards), *sections]
    scores = metrics.scores(y, model.labels_) if y is not None else {}
    numbers = {f"{name} against known labels": f"{value:.3f}" for name, value in scores.items()}
    write_page(
        path,
        title=title,
        facts={**facts, **numbers, "verdict": found.verdict},
        tables=tables if y is None else (),
        sections=sections,
        data=data,
    )


# ---- the sections --------------------------------------------------------------------------------------------------


def _map(shown: Shown, layout: Layout, n: int, notes: Sequence[str]) -> PageSection:
    sample = [f"{len(shown.rows):,} of {n:,} rows, drawn at random, are on the map."] if len(shown.rows) < n else []
    lead = (
        "Each dot is one row, coloured by its cluster; dots that lie together have similar representations. Islands of "
        "one colour are clean clusters, mixed borders are uncertain, and a pale dot could belong elsewhere."
    )
    made = [
        f"Made by {layout.words()}. Two rows are near when they lie on nearly the same line through the origin, "
        "whichever way they point. t-SNE and not PCA, as k separate subspaces have k directions or more and PCA two.",
        "Which rows are neighbours means something. How far apart islands are, how large they are and what shape they "
        "have does not, and one cluster may fall into several islands.",
        *sample,
    ]
    modes = [("cluster", "cluster"), ("confidence", "confidence")]
    modes += [("class", "known class")] if shown.truth is not None else []
    modes += [("moved", "moved or not")] if shown.elsewhere is not None else []
    return PageSection("map", "Map", " ".join([lead, *sample, *notes]), [component("map", modes, made)])


def _clusters(shown: Shown, made: Sequence[Card]) -> PageSection:
    lead = (
        "One card per cluster, the largest first. Effective dimension: how many equally strong directions would carry "
        "as much as the cluster's own. The angle to another cluster is that between their subspaces: near 90° they "
        "share nothing, far below it they overlap and may be one. Click any row to find it on the map."
    )
    texts, images = shown.texts(), shown.looks.image is not None
    return PageSection("clusters", "Clusters", lead, [component("clusters", made, shown.name, texts, images)])


def _sound(model: "PRODSC", found: Diagnosis, X: np.ndarray, Z: np.ndarray, shown: Shown) -> PageSection:
    drawn = drawing.sample(len(shown.rows), DRAWN, seed=0)
    some = np.asarray(X[shown.rows[drawn]], dtype=np.float32)
    history = {name: column.tolist() for name, column in model.history_.items()}
    eigenvalues = laplacian_eigenvalues(model.partition_.kernel, 2 * model.n_clusters_ + 5)
    pictures = [
        PageFigure(
            figures.gram(some.reshape(len(some), -1), Z[drawn], shown.labels[drawn]),
            "Before and after",
            "How much every two rows point the same way, in the input and in the learned representation. Bright "
            "squares along the diagonal and dark elsewhere mean that clusters lie in orthogonal subspaces.",
        ),
        PageFigure(
            fit_figures.eigengap(eigenvalues, model.n_clusters_),
            f"Is {model.n_clusters_} the right number?",
            about_k(eigenvalues, model.n_clusters_),
        ),
        *_estimated(model),
        *_kept(history),
        *_margin(history),
        PageFigure(
            figures.spectrum(Z[drawn]),
            "Has it collapsed?",
            "Singular values of the representation. A long plateau means that many directions are in use; a "
            "steep fall after a few means that the representation has collapsed.",
        ),
        *_predicted(found),
    ]
    if len(history["step"]):  # epochs=0 without warm-up trains nothing
        losses = {name: column for name, column in history.items() if name not in fit_figures.METERS}
        curves = figures.learning_curves(losses)
        words = "Each term of the loss, step by step. The curves should fall and flatten."
        pictures.append(PageFigure(curves, "Training", words))
    table = PageTable(
        "The numbers behind the verdict",
        ["measured", "value", "expected", "what it is"],
        [[f.name, f"{f.value:.4g}", f.expected, f.meaning] for f in found.findings],
    )
    lead = "Labels are worth only as much as the representation they come from. This is what 'prodsc diagnose' says."
    return PageSection("sound", "Is it sound?", lead, [component("verdict", found), table, *pictures])


def about_k(eigenvalues: np.ndarray, k: int) -> str:
    """What the eigengap says about the number of clusters, in words."""
    widest, gaps = fit_figures.suggested_k(eigenvalues), np.diff(eigenvalues)
    asked, most = (float(gaps[j - 1]) if j <= len(gaps) else 0.0 for j in (k, widest))
    if widest == k:
        said = f"The widest gap comes right after eigenvalue {k}: the affinity itself supports {k} clusters."
    elif asked >= NEARLY * most:
        said = (
            f"The gap after {k} ({asked:.2f}) is nearly as wide as the widest, after {widest} ({most:.2f}): "
            f"{k} clusters are well supported, and so is the other number, as groups or parts of them."
        )
    else:
        said = (
            f"The widest gap ({most:.2f}) comes after eigenvalue {widest}, that after {k} is {asked:.2f}: by this "
            f"measure {widest} clusters would be more natural."
        )
    return f"{said} It is advice, not proof: the gap sees how separate groups are, not whether they mean something."


def _estimated(model: "PRODSC") -> list[PageFigure]:
    curve = getattr(model, "k_curve_", None)
    return [] if curve is None else [PageFigure(fit_figures.k_curve(curve), "How k was chosen", curve.summary())]


def _kept(history: Mapping[str, Sequence[Any]]) -> list[PageFigure]:
    seen = fit_figures.states(history)
    if seen is not None:
        return [PageFigure(fit_figures.kept(seen), "When was training best?", seen.words())]
    settled = fit_figures.settling(history)
    if settled is not None:
        return [PageFigure(fit_figures.settled(settled), "When did labels settle?", settled.words())]
    return []


def _margin(history: Mapping[str, Sequence[Any]]) -> list[PageFigure]:
    picture = fit_figures.margin(history) if len(history["step"]) else None
    words = (
        "Theorem 2 bounds the weight of self-expression, gamma: below the bound the representation keeps all its "
        "directions. The margin is the bound over the gamma in use, measured while training."
    )
    return [] if picture is None else [PageFigure(picture, "Collapse margin over time", words)]


def _predicted(found: Diagnosis) -> list[PageFigure]:
    """The spectrum that theory predicts, when there is a theorem for the method."""
    if found.predicted is None or found.nu is None:
        return []
    picture = water_filling(found.eigenvalues_M, found.alpha, found.gamma, found.nu, found.predicted, found.observed)
    words = (
        "Theorem 2 says how strong each direction would be at an optimum with these coefficients (filled); dots show "
        "how strong it is. Dots far below the fill on the right are directions that training has lost, or not yet "
        "brought back."
    )
    return [PageFigure(picture, "As theory predicts?", words)]


def _known(
    shown: Shown, labels: NDArray[np.intp], codes: NDArray[np.intp], tables: Sequence[PageTable], other: OtherFit | None
) -> tuple[PageSection, list[int]]:
    matched = agreement(labels, codes, len(shown.sizes))
    spread = resampled(matched.counts)
    found = metrics.scores(codes, labels)
    meaning = {
        "ACC": "rows in the right cluster, after the best one-to-one matching",
        "NMI": "information that clusters and classes share; 0 none, 1 all",
        "ARI": "pairs of rows on which both agree, corrected for chance",
    }
    beside = metrics.scores(codes, other.labels) if other is not None else {}
    table = PageTable(
        "Scores",
        ["score", "this fit", *(["the other fit"] if beside else []), "what it is"],
        [
            [name, f"{value:.3f} ± {spread[name]:.3f}", *([f"{beside[name]:.3f}"] if beside else []), meaning[name]]
            for name, value in found.items()
        ],
    )
    assert shown.truth is not None
    pairs = worst_pairs(matched, shown.labels, shown.truth, shown.confidence)

    def words(pair: Any) -> str:
        partner = matched.partner[pair.cluster]
        mostly = f", which is matched to '{shown.classes[partner]}'" if partner >= 0 else ", which is matched to none"
        return f"{pair.count:,} rows of '{shown.classes[pair.other]}' are in cluster {pair.cluster}{mostly}"

    picture = PageFigure(
        fit_figures.confusion(matched.counts, matched.partner, shown.classes),
        "What is confused with what",
        "Clusters have no names, so each is matched to the class it fits best, one to one.",
    )
    lead = (
        "Known labels are used here, to score, and nowhere else. ± is the standard deviation over rows drawn again "
        "(bootstrap) of this one fit; other seeds vary more, and 'prodsc compare' measures that."
    )
    sure = PageFigure(
        fit_figures.reliability(matched.partner[shown.labels] == shown.truth, confidence=shown.confidence),
        "Is confidence what it says",
        "Confidence was set without these labels, by how far rows that are near in the input share a cluster.",
    )
    content: list[PageItem] = [*tables, table, picture, sure]
    if pairs:
        content.append(component("pairs", pairs, words, shown.name, shown.texts()))
    return PageSection("known", "Against known labels", lead, content), [row for pair in pairs for row in pair.rows]


def _moved(
    shown: Shown, labels: NDArray[np.intp], other: OtherFit, k: int
) -> tuple[Shown, PageSection, list[int]]:  # fmt: skip
    theirs = np.asarray(other.labels, dtype=np.intp)
    matched = agreement(labels, theirs, k)
    ours = np.full(matched.counts.shape[1], k, dtype=np.intp)  # k: a cluster of the other fit without a partner
    has = matched.partner >= 0
    ours[matched.partner[has]] = np.flatnonzero(has)
    moved = worst_pairs(matched, shown.labels, theirs[shown.rows], shown.confidence)
    table = PageTable(
        "Clusters of this fit and their partners",
        ["cluster", "rows", "partner in the other fit", "rows that stay", "gone", "come"],
        [
            [
                str(c),
                f"{size:,}",
                str(p) if p >= 0 else "none",
                f"{(stay := matched.counts[c, p] if p >= 0 else 0):,}",
                f"{size - stay:,}",
                f"{(matched.counts[:, p].sum() if p >= 0 else 0) - stay:,}",
            ]
            for c, (size, p) in enumerate(zip(matched.counts.sum(axis=1), matched.partner, strict=True))
        ],
    )
    lead = (
        f"Compared with {other.name}: {matched.share:.1%} of the rows stay together, {int(matched.moved.sum()):,} of "
        f"{len(labels):,} move (ARI {metrics.ari(theirs, labels):.3f}). Clusters are matched one to one so that as few "
        "as possible move. Colour the map by 'moved or not' to see where."
    )
    content: list[PageItem] = [component("flow", *bands(matched)), table]
    if moved:

        def words(pair: Any) -> str:
            return f"{pair.count:,} rows of cluster {pair.cluster} are in cluster {pair.other} of the other fit"

        content.append(component("pairs", moved, words, shown.name, shown.texts()))
    section = PageSection("moved", "How labels moved", lead, content)
    return replace(shown, elsewhere=ours[theirs[shown.rows]]), section, [row for pair in moved for row in pair.rows]


def _made(made: Mapping[str, Any]) -> PageSection:
    data, machine = made["data"], made.get("machine", {})
    of_data = {
        "file": data["file"],
        "shape": " x ".join(f"{n:,}" for n in data["shape"]),
        "type": data["dtype"],
        "fingerprint": data["fingerprint"],
    }
    cost = {
        "finished": str(made.get("finished", "")).replace("T", " ").replace("+00:00", " UTC"),
        "seconds": f"{made['seconds']:.1f}",
        "peak memory": f"{made['peak_memory_mb']:,.0f} MB",
        **{f"used {name}": _text(value) for name, value in made.get("used", {}).items()},
        **{name: _text(value) for name, value in machine.items()},
    }
    if made.get("recipe"):
        cost["recipe"] = made["recipe"]
    parameters = {name: _text(value) for name, value in made["parameters"].items()}
    groups = [("Data", of_data, True), ("Cost and machine", cost, True), ("Versions", made["versions"], False)]
    groups.append((f"All {len(parameters)} parameters", parameters, False))
    lead = "Enough to repeat the fit. The fingerprint is a sha256 of shape, type and content of the data."
    return PageSection("made", "How it was made", lead, [component("made", made.get("command", ""), groups)])


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _codes(y: np.ndarray, classes: Sequence[str] | None) -> tuple[NDArray[np.intp], list[str]]:
    """Labels as codes from 0, and a name for each."""
    values, codes = np.unique(np.asarray(y), return_inverse=True)
    named = classes is not None and len(classes) > int(values.max())
    return codes.astype(np.intp), [str(classes[v]) if named and classes is not None else str(v) for v in values]
