"""The page of a fit: its clusters, how sound it is, and how it was made."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from prodsc.core import metrics
from prodsc.core.graph import laplacian_eigenvalues
from prodsc.core.naming import are_words, keywords, unusual_columns
from prodsc.estimators.capabilities import Capability, can, require_capability
from prodsc.files import write_text
from prodsc.pro_dsc.diagnosis import Diagnosis, diagnose
from prodsc.report import drawing, figures, fit_figures
from prodsc.report.agreement import agreement, bootstrap_std, worst_disagreements
from prodsc.report.clusters import ClusterCard, cluster_cards
from prodsc.report.found import found_number, found_sentences
from prodsc.report.layout import Layout, lay_out
from prodsc.report.map_data import PageRows, map_data
from prodsc.report.movement import bands
from prodsc.report.page import PageFigure, PageItem, PageSection, PageTable, component, render_page
from prodsc.report.previews import RowPreviews
from prodsc.report.theory_figures import water_filling

if TYPE_CHECKING:
    from prodsc.pro_dsc.estimator import PRODSC


@dataclass(frozen=True)
class OtherFit:
    """Another fit of the same rows, to compare with."""

    name: str
    labels: NDArray[np.intp]


def write_fit_page(path: Path, *content: Any, **options: Any) -> None:
    """Write the page of a fit, whole or not at all; the parameters are those of `render_fit_page`."""
    write_text(path, render_fit_page(*content, **options))


def render_fit_page(
    title: str,
    model: "PRODSC",
    X: np.ndarray,
    proba: np.ndarray | None = None,
    *,
    facts: Mapping[str, str],
    previews: RowPreviews | None = None,
    columns: Sequence[str] | None = None,
    y: np.ndarray | None = None,
    classes: Sequence[str] | None = None,
    made: Mapping[str, Any] | None = None,
    tables: Sequence[PageTable] = (),
    other: OtherFit | None = None,
    max_rows: int = 100_000,
    max_embedded: int = 2000,
    theory: bool = True,
    diagnosis: Diagnosis | None = None,
) -> str:
    """The page of a fit as text. The names of the clusters are those of the model.

    Parameters
    ----------
    title : str
        Title of the page.
    model : PRODSC
        A fitted model that can be diagnosed.
    X : array
        The rows it was fitted on.
    proba : array of shape (n, k), optional
        `predict_proba` of X; computed for the rows on the page when left out.
    facts : mapping of str to str
        Shown under the title.
    previews : RowPreviews, optional
        What is shown of a row.
    columns : sequence of str, optional
        Names of the columns of X.
    y : array of shape (n,), optional
        Known classes, only to score.
    classes : sequence of str, optional
        Names of the codes in y.
    made : mapping, optional
        The content of result.json.
    tables : sequence of PageTable, optional
        More tables.
    other : OtherFit, optional
        Another fit, to compare with.
    max_rows : int, default=100_000
        Rows on the page; of more, a random sample.
    max_embedded : int, default=2000
        Rows that t-SNE places itself: most of the time that a page takes.
    theory : bool, default=True
        Whether the page has the figures of the theory.
    diagnosis : Diagnosis, optional
        What `diagnose` says of the fit; measured when left out.

    Returns
    -------
    str
    """
    require_capability(model, Capability.DIAGNOSE, "the page of a fit")
    previews = previews or RowPreviews()
    previews.check(len(X))
    rows = drawing.sample(len(X), max_rows, seed=0)
    chunks = np.array_split(rows, -(-len(rows) // 8192))  # bounds memory
    Z = np.concatenate([model.transform(X[chunk]) for chunk in chunks])
    layout = lay_out(Z, max_embedded)
    k = model.n_clusters_
    probabilities = proba[rows] if proba is not None else np.concatenate([model.predict_proba(X[c]) for c in chunks])
    best = np.argsort(-probabilities, axis=1, kind="stable")[:, :2]
    page_rows = PageRows(
        rows,
        layout.places,
        model.clusters_[rows].astype(np.intp),
        probabilities.max(axis=1),
        best[:, -1],
        np.bincount(model.clusters_, minlength=k).tolist(),
        previews,
        names=list(model.cluster_names_),
        outlier=_outliers(model, X, chunks, rows),
    )
    table = np.ndim(X) == 2 and previews.image is None and are_words(columns)  # "column 267" tells nobody anything
    unusual = unusual_columns(X, model.clusters_, k, columns) if table else None
    cards = cluster_cards(Z, page_rows.labels, page_rows.confidence, page_rows.second, page_rows.sizes, unusual)
    needed = [row for card in cards for row in card.rows()]
    diagnosis = diagnosis or diagnose(model, X)
    eigenvalues = laplacian_eigenvalues(model.partition_.kernel, 2 * k + 5)
    sections = []
    if y is not None:
        codes, names = _codes(y, classes)
        page_rows = replace(page_rows, truth=codes[rows], classes=names)
        section, pairs = _known(page_rows, model.clusters_, codes, tables, other)
        sections.append(section)
        needed += pairs
    if other is not None:
        page_rows, section, pairs = _moved(page_rows, model.clusters_, other, k)
        sections.append(section)
        needed += pairs
    sections.append(
        _sound(model, diagnosis, eigenvalues, X, Z, page_rows) if theory else _without_figures(model, diagnosis)
    )
    if made is not None:
        sections.append(_made(made))
    data, notes = map_data(page_rows, needed, [card.exemplars[0] if card.exemplars else -1 for card in cards])
    scores = metrics.scores(y, model.clusters_) if y is not None else {}
    supported = found_number(eigenvalues, k)
    said = found_sentences(page_rows.titles(), cards, page_rows.confidence, scores, supported)
    found = PageSection("found", "What was found", "", [component("found", said, diagnosis)])
    words = None if previews.texts is None else keywords(previews.texts, model.clusters_, k)
    sections = [_map(page_rows, layout, len(X), notes), found, _clusters(page_rows, cards, words), *sections]
    numbers = {f"{name} against known labels": f"{value:.3f}" for name, value in scores.items()}
    return render_page(
        title=title,
        facts={**facts, **numbers, "labels": diagnosis.support.word, "representation": diagnosis.representation},
        tables=tables if y is None else (),
        sections=sections,
        data=data,
    )


def _outliers(model: "PRODSC", X: np.ndarray, chunks: Sequence[np.ndarray], rows: np.ndarray) -> np.ndarray | None:
    """The outlier score of the rows on the page; a saved model computes it again, an old one cannot."""
    scores = getattr(model, "outlier_score_", None)
    if scores is not None and len(scores) == len(X):
        return np.asarray(scores[rows])
    if not can(model, Capability.OUTLIER_SCORE) or model.labeller_.outliers is None:
        return None
    return np.concatenate([model.outlier_score(X[chunk]) for chunk in chunks])


# ---- the sections --------------------------------------------------------------------------------------------------


def _map(page_rows: PageRows, layout: Layout, n: int, notes: Sequence[str]) -> PageSection:
    drawn = len(page_rows.rows)
    sample = [f"{drawn:,} of {n:,} rows, drawn at random, are on the map."] if drawn < n else []
    lead = "Each dot is one row. Dots that lie together are alike; a pale dot could belong to another cluster."
    explanation = [
        "Islands of one colour are clean clusters, mixed borders are uncertain.",
        f"Made by {layout.summary()}. Two rows are near when they lie on nearly the same line through the origin, "
        "whichever way they point. t-SNE and not PCA, as k separate subspaces have k directions or more and PCA two.",
        "Which rows are neighbours means something. How far apart islands are, how large they are and what shape they "
        "have does not, and one cluster may fall into several islands.",
        *sample,
    ]
    modes = [("cluster", "cluster"), ("confidence", "confidence")]
    modes += [("outlier", "outlier score")] if page_rows.outlier is not None else []
    modes += [("class", "known class")] if page_rows.truth is not None else []
    modes += [("moved", "moved or not")] if page_rows.elsewhere is not None else []
    modes += [(f"column {i}", name) for i, name in enumerate(page_rows.previews.columns)]
    items = [component("map", modes, explanation, page_rows.outlier is not None)]
    return PageSection("map", "Map", " ".join([lead, *sample, *notes]), items)


def _clusters(
    page_rows: PageRows, cards: Sequence[ClusterCard], words: Sequence[Sequence[str]] | None = None
) -> PageSection:
    lead = "One card per cluster, the largest first. Click any row to find it on the map."
    shown = component("clusters", cards, page_rows.titles(), page_rows.name, page_rows.texts(), words)
    return PageSection("clusters", "Clusters", lead, [shown])


def _sound(
    model: "PRODSC", diagnosis: Diagnosis, eigenvalues: np.ndarray, X: np.ndarray, Z: np.ndarray, page_rows: PageRows
) -> PageSection:
    drawn = drawing.sample(len(page_rows.rows), 2000, seed=0)  # a reader cannot tell more dots apart
    some = np.asarray(X[page_rows.rows[drawn]], dtype=np.float32)
    history = {name: column.tolist() for name, column in model.history_.items()}
    pictures = [
        PageFigure(
            figures.gram(some.reshape(len(some), -1), Z[drawn], page_rows.labels[drawn]),
            "Before and after",
            "How much every two rows point the same way, in the input and in the learned representation. Bright "
            "squares along the diagonal and dark elsewhere mean that clusters lie in orthogonal subspaces.",
            heat=True,
        ),
        PageFigure(
            fit_figures.eigengap(eigenvalues, model.n_clusters_),
            f"Is {model.n_clusters_} the right number?",
            about_k(eigenvalues, model.n_clusters_),
        ),
        *_estimated(model),
        *_training_end(history),
        *_margin(history),
        PageFigure(
            figures.spectrum(Z[drawn]),
            "Has it collapsed?",
            "Singular values of the representation. A long plateau means that many directions are in use; a "
            "steep fall after a few means that the representation has collapsed.",
        ),
        *_predicted(diagnosis),
    ]
    if len(history["step"]):  # epochs=0 without warm-up trains nothing
        losses = {name: column for name, column in history.items() if name not in fit_figures.METERS}
        caption = "Each term of the loss, step by step. The curves should fall and flatten."
        pictures.append(PageFigure(figures.learning_curves(losses), "Training", caption))
    numbers = _sound_in_numbers(diagnosis)
    return replace(numbers, items=[*numbers.items, *pictures])


def _without_figures(model: "PRODSC", diagnosis: Diagnosis) -> PageSection:
    numbers = _sound_in_numbers(diagnosis)
    lead = f"{numbers.lead} The fit was so short that figures are left out; 'prodsc report' makes them."
    return replace(numbers, lead=lead, items=[*numbers.items, *_estimated(model)])  # how k was chosen always counts


def _sound_in_numbers(diagnosis: Diagnosis) -> PageSection:
    table = PageTable(
        "The numbers of the representation",
        ["measured", "value", "expected", "what it is"],
        [[f.name, f"{f.value:.4g}", f.expected, f.meaning] for f in diagnosis.findings],
    )
    lead = "What the theory says of the representation. This is the result of 'prodsc diagnose'."
    return PageSection("sound", "Is it sound? The numbers and the theory", lead, [table], folded=True)


def about_k(eigenvalues: np.ndarray, k: int, nearly: float = 0.7) -> str:
    """What the eigengap says about k; a gap of `nearly` times the widest one supports its number too."""
    widest, gaps = fit_figures.suggested_k(eigenvalues), np.diff(eigenvalues)
    asked, most = (float(gaps[j - 1]) if j <= len(gaps) else 0.0 for j in (k, widest))
    if widest == k:
        sentence = f"The widest gap comes right after eigenvalue {k}: the affinity itself supports {k} clusters."
    elif asked >= nearly * most:
        sentence = (
            f"The gap after {k} ({asked:.2f}) is nearly as wide as the widest, after {widest} ({most:.2f}): "
            f"{k} clusters are well supported, and so is the other number, as groups or parts of them."
        )
    else:
        sentence = (
            f"The widest gap ({most:.2f}) comes after eigenvalue {widest}, that after {k} is {asked:.2f}: by this "
            f"measure {widest} clusters would be more natural."
        )
    return (
        f"{sentence} It is advice, not proof: the gap shows how separate groups are, not whether they mean something."
    )


def _estimated(model: "PRODSC") -> list[PageFigure]:
    curve = model.k_curve_ if can(model, Capability.K_CURVE) else None
    return [] if curve is None else [PageFigure(fit_figures.k_curve(curve), "How k was chosen", curve.summary())]


def _training_end(history: Mapping[str, Sequence[Any]]) -> list[PageFigure]:
    """Why training ended where it did, when that was decided during training."""
    evaluations = fit_figures.evaluations(history)
    if evaluations is not None:
        figure = fit_figures.best_weights(evaluations)
        return [PageFigure(figure, "When was training best?", evaluations.summary())]
    changes = fit_figures.label_changes(history)
    if changes is not None:
        figure = fit_figures.label_convergence(changes)
        return [PageFigure(figure, "When did labels stop changing?", changes.summary())]
    return []


def _margin(history: Mapping[str, Sequence[Any]]) -> list[PageFigure]:
    figure = fit_figures.margin(history) if len(history["step"]) else None
    caption = (
        "Theorem 2 bounds the weight of self-expression, gamma: below the bound the representation keeps all its "
        "directions. The margin is the bound over the gamma in use, measured while training."
    )
    return [] if figure is None else [PageFigure(figure, "Collapse margin over time", caption)]


def _predicted(d: Diagnosis) -> list[PageFigure]:
    """The spectrum that theory predicts, when there is a theorem for the method."""
    if d.predicted is None or d.nu is None:
        return []
    figure = water_filling(d.eigenvalues_M, d.alpha, d.gamma, d.nu, d.predicted, d.observed)
    caption = (
        "Theorem 2 says how strong each direction would be at an optimum with these coefficients (filled); dots show "
        "how strong it is. Dots far below the fill on the right are directions that training has lost, or not yet "
        "brought back."
    )
    return [PageFigure(figure, "As theory predicts?", caption)]


def _known(
    page_rows: PageRows,
    labels: NDArray[np.intp],
    codes: NDArray[np.intp],
    tables: Sequence[PageTable],
    other: OtherFit | None,
) -> tuple[PageSection, list[int]]:
    matched = agreement(labels, codes, len(page_rows.sizes))
    spread = bootstrap_std(matched.counts)
    scores = metrics.scores(codes, labels)
    meaning = {
        "ACC": "rows in the right cluster, after the best one-to-one matching",
        "NMI": "information that clusters and classes share; 0 none, 1 all",
        "ARI": "pairs of rows on which both agree, corrected for chance",
    }
    other_scores = metrics.scores(codes, other.labels) if other is not None else {}
    table = PageTable(
        "Scores",
        ["score", "this fit", *(["the other fit"] if other_scores else []), "what it is"],
        [
            [
                name,
                f"{value:.3f} ± {spread[name]:.3f}",
                *([f"{other_scores[name]:.3f}"] if other_scores else []),
                meaning[name],
            ]
            for name, value in scores.items()
        ],
    )
    assert page_rows.truth is not None
    pairs = worst_disagreements(matched, page_rows.labels, page_rows.truth, page_rows.confidence)

    def describe(pair: Any) -> str:
        partner = matched.partner[pair.cluster]
        mostly = (
            f", which is matched to '{page_rows.classes[partner]}'" if partner >= 0 else ", which is matched to none"
        )
        return f"{pair.count:,} rows of '{page_rows.classes[pair.other]}' are in cluster {pair.cluster}{mostly}"

    confusion = PageFigure(
        fit_figures.confusion(matched.counts, matched.partner, page_rows.classes),
        "What is confused with what",
        "Each cluster is matched to the class it fits best, one to one.",
        heat=True,
    )
    lead = (
        "Known labels are used here, to score, and nowhere else. ± is the standard deviation over rows drawn again "
        "(bootstrap) of this one fit; other seeds vary more, and 'prodsc compare' measures that."
    )
    reliability = PageFigure(
        fit_figures.reliability(matched.partner[page_rows.labels] == page_rows.truth, confidence=page_rows.confidence),
        "Is confidence calibrated?",
        "Confidence was set without these labels, by how often neighbouring rows of the input share a cluster.",
    )
    content: list[PageItem] = [*tables, table, confusion, reliability]
    if pairs:
        content.append(component("pairs", pairs, describe, page_rows.name, page_rows.texts()))
    return PageSection("known", "Against known labels", lead, content), [row for pair in pairs for row in pair.rows]


def _moved(
    page_rows: PageRows, labels: NDArray[np.intp], other: OtherFit, k: int
) -> tuple[PageRows, PageSection, list[int]]:  # fmt: skip
    theirs = np.asarray(other.labels, dtype=np.intp)
    matched = agreement(labels, theirs, k)
    ours = np.full(matched.counts.shape[1], k, dtype=np.intp)  # k: a cluster of the other fit without a partner
    has = matched.partner >= 0
    ours[matched.partner[has]] = np.flatnonzero(has)
    moved = worst_disagreements(matched, page_rows.labels, theirs[page_rows.rows], page_rows.confidence)
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
        "rows as possible move. Colour the map by 'moved or not' to see where."
    )
    content: list[PageItem] = [component("flow", *bands(matched)), table]
    if moved:

        def describe(pair: Any) -> str:
            return f"{pair.count:,} rows of cluster {pair.cluster} are in cluster {pair.other} of the other fit"

        content.append(component("pairs", moved, describe, page_rows.name, page_rows.texts()))
    section = PageSection("moved", "How labels moved", lead, content)
    return (
        replace(page_rows, elsewhere=ours[theirs[page_rows.rows]]),
        section,
        [row for pair in moved for row in pair.rows],
    )


def _made(made: Mapping[str, Any]) -> PageSection:
    """How the fit was made, from result.json."""
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
    return PageSection(
        "made", "How it was made", lead, [component("made", made.get("command", ""), groups)], folded=True
    )


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else str(value)


def _codes(y: np.ndarray, classes: Sequence[str] | None) -> tuple[NDArray[np.intp], list[str]]:
    """Labels as codes from 0, and a name for each."""
    values, codes = np.unique(np.asarray(y), return_inverse=True)
    named = classes is not None and len(classes) > int(values.max())
    return codes.astype(np.intp), [str(classes[v]) if named and classes is not None else str(v) for v in values]
