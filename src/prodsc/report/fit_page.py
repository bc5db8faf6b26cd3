"""The page that every fit ends with."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from matplotlib.figure import Figure

from prodsc.methods.diagnosis import Diagnosis, diagnose
from prodsc.report import figures
from prodsc.report.page import Table, write_page
from prodsc.report.paper_figures import water_filling

if TYPE_CHECKING:
    from prodsc.methods import PRODSC

SAMPLE = 2000  # rows shown: more than a picture can tell apart, few enough to draw in seconds


def write_fit_page(
    path: Path,
    title: str,
    model: "PRODSC",
    X: np.ndarray,
    labels: np.ndarray,
    confidence: np.ndarray,
    facts: Mapping[str, str],
    scores: Mapping[str, float] | None = None,
    tables: tuple[Table, ...] = (),
) -> None:
    """Verdict, Gram matrices, map, learning curves and spectrum of a fitted model, from a sample of its rows."""
    shown = np.arange(len(X))
    if len(X) > SAMPLE:
        shown = np.sort(np.random.default_rng(0).choice(len(X), SAMPLE, replace=False))
    some = np.asarray(X[shown], dtype=np.float32)
    Z = model.transform(X[shown])
    rows, coordinates = figures.embed_2d(Z)
    sizes = np.bincount(labels, minlength=model.n_clusters)
    mean_confidence = [confidence[labels == c].mean() if sizes[c] else float("nan") for c in range(len(sizes))]
    cards = Table(
        "Clusters, largest first",
        ["cluster", "rows", "share", "mean confidence"],
        [
            [str(c), f"{n:,}", f"{n / len(labels):.1%}", f"{sure:.3f}"]
            for c, (n, sure) in enumerate(zip(sizes, mean_confidence, strict=True))
        ],
    )
    found = diagnose(model, X)
    sound = Table(
        f"Is it sound? {found.verdict.capitalize()}. {found.advice}",
        ["measured", "value", "expected", "what it is"],
        [[f.name, f"{f.value:.4g}", f.expected, f.why] for f in found.findings],
    )
    known = {f"{name} against known labels": f"{value:.3f}" for name, value in (scores or {}).items()}
    pictures = [
        (
            figures.gram(some.reshape(len(some), -1), Z, labels[shown]),
            "Before and after",
            "How much every two rows point the same way, in the input and in the learned representation. Bright "
            "squares along the diagonal and dark elsewhere mean that clusters lie in orthogonal subspaces.",
        ),
        (
            figures.map_2d(coordinates, labels[shown][rows], confidence[shown][rows]),
            "Map",
            "Each dot is a row; near dots have similar representations (t-SNE of the angle between rows). "
            "Islands of one colour are clean clusters; mixed borders are uncertain.",
        ),
        (
            figures.spectrum(Z),
            "Has it collapsed?",
            "Singular values of the representation. A long plateau means that many directions are in use; a "
            "steep fall after a few means that the representation has collapsed.",
        ),
        *predicted(found),
    ]
    if len(model.history_["step"]):  # epochs=0 without warm-up trains nothing
        curves = figures.learning_curves({name: column.tolist() for name, column in model.history_.items()})
        pictures.insert(
            2, (curves, "Training", "Each term of the loss, step by step. The curves should fall and flatten.")
        )
    write_page(
        path,
        title=title,
        facts={**facts, **known, "verdict": found.verdict},
        tables=[*tables, sound, cards],
        figures=pictures,
    )


def predicted(found: Diagnosis) -> list[tuple[Figure, str, str]]:
    """The spectrum that theory predicts, when there is a theorem for the method."""
    if found.predicted is None or found.nu is None:
        return []
    picture = water_filling(found.eigenvalues_M, found.alpha, found.gamma, found.nu, found.predicted, found.observed)
    words = (
        "Theorem 2 says how strong each direction would be at an optimum with these coefficients (filled); dots show "
        "how strong it is. Dots far below the fill on the right are directions that training has lost, or not yet "
        "brought back."
    )
    return [(picture, "As theory predicts?", words)]
