"""`make demo`: the 1,797 handwritten digits that ship with scikit-learn, clustered three ways, and a page to look at.

Labels are used only to score, after the fact.
"""

import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table as Screen
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits

from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.report.fit_page import write_fit_page
from prodsc.report.looks import Looks, pictures
from prodsc.report.page import Table

SEEDS = range(3)
OUT = Path("demo")
SCORES = ("ACC", "NMI", "ARI")


def main() -> None:
    X, y = load_digits(return_X_y=True)
    methods = {
        "k-means": lambda seed: KMeans(10, n_init=10, random_state=seed),
        "spectral clustering": lambda seed: SpectralClustering(10, affinity="nearest_neighbors", random_state=seed),
        "PRO-DSC": lambda seed: PRODSC(10, random_state=seed, verbose=1),
    }
    console = Console()
    console.print(f"digits: {len(X):,} rows x {X.shape[1]} columns, {len(np.unique(y))} classes, {len(SEEDS)} seeds\n")
    rows, first = [], None
    for name, make in methods.items():
        found, seconds = [], []
        for seed in SEEDS:
            console.print(f"{name}, seed {seed}")
            began = time.perf_counter()
            model = make(seed).fit(X)
            seconds.append(time.perf_counter() - began)
            found.append(list(metrics.scores(y, model.labels_).values()))
            first = model if name == "PRO-DSC" and seed == 0 else first
        spread = zip(np.mean(found, 0), np.std(found, 0), strict=True)
        rows.append([name, *(f"{mean:.3f} ± {std:.3f}" for mean, std in spread), f"{np.mean(seconds):.1f}"])
    columns = ["method", *SCORES, "seconds"]
    caption = f"mean ± std over {len(SEEDS)} seeds; labels used only to score"
    screen = Screen(*columns, title=f"\n{caption}", title_justify="left")
    for row in rows:
        screen.add_row(*row)
    console.print(screen)

    assert isinstance(first, PRODSC)
    console.print("PRO-DSC, seed 0, the first 20 rows: digit ", y[:20].tolist())
    console.print("                                  cluster ", first.labels_[:20].tolist())
    OUT.mkdir(exist_ok=True)
    page = OUT / "report.html"
    write_fit_page(
        page,
        "Digits",
        first,
        X,
        first.predict_proba(X),
        facts={"data": "scikit-learn digits", "rows": f"{len(X):,}", "columns": str(X.shape[1]), "clusters": "10"},
        looks=Looks(image=pictures(X, (8, 8))),
        y=y,
        tables=[Table(f"Methods compared, {caption}", columns, rows)],
    )
    console.print(f"\nPictures: {page.resolve()}")


if __name__ == "__main__":
    main()
