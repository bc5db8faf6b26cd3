"""How many rows does a fit need? Accuracy on all rows against the number of training rows.

python benchmarks/training_rows.py [FOLDER [SETS]]     # needs the data of PRODSC_DATA; half an hour on one core

A model is fitted on a random part of the rows and labels all of them with `predict_to_file`. FOLDER (docs) gets
training_rows.csv and images/training_rows.png. True labels only score.
"""

import csv
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from snapshots import shared

import prodsc

SIZES = (1000, 3000, 10_000, 30_000)
SUBSPACES, DIMENSION, WIDTH, NOISE = 20, 6, 64, 0.25
PLANS = {  # name: rows in all, numbers of training rows
    "cifar10_efflite0": (20_000, (*SIZES[:3], 20_000)),
    "subspaces-1000000": (10**6, SIZES),
    "subspaces-2000000": (2 * 10**6, (30_000, 2 * 10**6)),
    "mnist": (70_000, (*SIZES, 70_000)),
}


def subspaces(n: int, path: Path) -> np.ndarray:
    """Rows near one of some subspaces, written to a file a block at a time; the subspace of each."""
    random = np.random.default_rng(0)
    bases = np.linalg.qr(random.normal(size=(SUBSPACES, WIDTH, DIMENSION)))[0]
    y = random.integers(SUBSPACES, size=n)
    rows = np.lib.format.open_memmap(path, "w+", np.float32, (n, WIDTH))
    for start in range(0, n, 10**5):
        at = slice(start, min(start + 10**5, n))
        inside = 1 + 0.5 * random.normal(size=(len(y[at]), DIMENSION))
        clean = np.einsum("nwd,nd->nw", bases[y[at]], inside)
        rows[at] = clean + NOISE * random.normal(size=clean.shape)
    rows.flush()
    return y


def rows_of(name: str, n: int, folder: Path) -> tuple[Path, np.ndarray]:
    path = folder / "rows.npy"
    if name.startswith("subspaces"):
        return path, subspaces(n, path)
    X, y = shared(name)
    np.save(path, np.asarray(X, np.float32).reshape(len(X), -1))
    return path, y


def study(name: str) -> list[dict[str, object]]:
    n, sizes = PLANS[name]
    found = []
    with tempfile.TemporaryDirectory() as folder:
        path, y = rows_of(name, n, Path(folder))
        k, order = len(np.unique(y)), np.random.default_rng(1).permutation(n)
        for size in sizes:
            X = str(path) if size == n else np.load(path, mmap_mode="r")[np.sort(order[:size])]
            began = time.process_time()
            model = prodsc.PRODSC(k, random_state=0).fit(X)
            fitted = time.process_time()
            prodsc.predict_to_file(model, path, Path(folder) / "labels.npy", overwrite=True)
            labelled = time.process_time()
            scores = prodsc.metrics.scores(y, np.load(Path(folder) / "labels.npy"))
            row = {
                "set": name,
                "rows": n,
                "training_rows": size,
                "ACC": 100 * scores["ACC"],
                "NMI": 100 * scores["NMI"],
            }
            found.append(row | {"fit_seconds": fitted - began, "label_seconds": labelled - fitted})
            print(found[-1], flush=True)
    return found


def draw(folder: Path) -> None:
    """The picture of training_rows.csv."""
    from matplotlib.figure import Figure

    with (folder / "training_rows.csv").open() as file:
        results = list(csv.DictReader(file))
    figure = Figure(figsize=(6, 3.6), layout="constrained")
    axes = figure.subplots()
    for name in dict.fromkeys(row["set"] for row in results):
        mine = [row for row in results if row["set"] == name]
        axes.semilogx([float(r["training_rows"]) for r in mine], [float(r["ACC"]) for r in mine], "o-", label=name)
    axes.set(xlabel="training rows", ylabel="ACC on all rows, %", ylim=(0, 102))
    axes.legend(fontsize=8)
    figure.savefig(folder / "images" / "training_rows.png", dpi=110)


if __name__ == "__main__":
    torch.set_num_threads(1)
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "docs")
    done: list[dict[str, object]] = []
    for each in sys.argv[2:] or PLANS:
        done += study(each)
        with (target / "training_rows.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, done[0])
            writer.writeheader()
            writer.writerows({k: round(v, 2) if isinstance(v, float) else v for k, v in row.items()} for row in done)
        draw(target)
