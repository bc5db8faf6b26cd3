"""The page that every fit ends with."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from prodsc.report import figures
from prodsc.report.page import Table, write_page

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
    """Gram matrices, map, learning curves and spectrum of a fitted model, from a sample of its rows."""
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
    ]
    if len(model.history_["step"]):  # epochs=0 without warm-up trains nothing
        curves = figures.learning_curves({name: column.tolist() for name, column in model.history_.items()})
        pictures.insert(
            2, (curves, "Training", "Each term of the loss, step by step. The curves should fall and flatten.")
        )
    write_page(path, title=title, facts={**facts, **known}, tables=[*tables, cards], figures=pictures)
