"""`make demo`: cluster the 1,797 handwritten digits of scikit-learn with three methods and write a report.

All three methods are prodsc's own, with default parameters. True labels are used only to score the results.
"""

import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table
from sklearn.datasets import load_digits

from prodsc import PRODSC, make, metrics
from prodsc.report.fit_page import write_fit_page
from prodsc.report.page import PageTable
from prodsc.report.previews import RowPreviews, row_images

SEEDS = range(3)
OUT = Path("demo")
SCORES = ("ACC", "NMI", "ARI")


def main() -> None:
    X, y = load_digits(return_X_y=True)
    methods = {"k-means": "k-means", "k-NN spectral clustering": "spectral", "PRO-DSC": "pro-dsc"}
    console = Console()
    console.print(f"digits: {len(X):,} rows x {X.shape[1]} columns, {len(np.unique(y))} classes, {len(SEEDS)} seeds\n")
    rows, first = [], None
    for title, name in methods.items():
        scores, seconds = [], []
        for seed in SEEDS:
            console.print(f"{title}, seed {seed}")
            start = time.perf_counter()
            model = make(name, n_clusters=10, random_state=seed).fit(X)
            seconds.append(time.perf_counter() - start)
            scores.append(list(metrics.scores(y, model.labels_).values()))
            first = model if name == "pro-dsc" and seed == 0 else first
        spread = zip(np.mean(scores, 0), np.std(scores, 0), strict=True)
        rows.append([title, *(f"{mean:.3f} ± {std:.3f}" for mean, std in spread), f"{np.mean(seconds):.1f}"])
    columns = ["method", *SCORES, "seconds"]
    caption = f"mean ± std over {len(SEEDS)} seeds; labels used only to score"
    screen = Table(*columns, title=f"\n{caption}", title_justify="left")
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
        previews=RowPreviews(image=row_images(X, (8, 8))),
        y=y,
        tables=[PageTable(f"Methods compared, {caption}", columns, rows)],
    )
    console.print(f"\nreport: {page.resolve()}")


if __name__ == "__main__":
    main()
