"""Labels of 10^5, 10^6 and 10^7 rows (d 128, k 100): rows a second and peak memory, beside FAISS and UMAP.

python benchmarks/label_scale.py [FOLDER]        # needs faiss-cpu, umap-learn and matplotlib

The rows are made a block at a time while they are labelled; the time to make them is not counted. Every method and
size is a process of its own, on one thread, and all of them see the same rows. FOLDER (docs) gets label_scale.csv
and images/label_scale.png.
"""

import csv
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

SIZES = (10**5, 10**6, 10**7)
WIDTH, CLUSTERS, BLOCK, NOISE = 128, 100, 2**16, 0.6
FITTED = 10_000  # rows that every method is fitted on
UMAP_ROWS = 10**5  # of more rows, UMAP would take hours
METHODS = ("bare network", "prodsc", "prodsc with outliers", "faiss", "umap")


def block(number: int, n: int = BLOCK) -> tuple[np.ndarray, np.ndarray]:
    """Rows around one of the centres, and which; a function of the number of the block."""
    centres = np.random.default_rng(0).normal(size=(CLUSTERS, WIDTH)).astype(np.float32)
    random = np.random.default_rng((1, number))
    y = random.integers(CLUSTERS, size=n)
    return centres[y] + NOISE * random.standard_normal((n, WIDTH), np.float32), y


class Rows:
    """An iterator of blocks that knows how long making them took."""

    def __init__(self, n: int):
        self.n, self.seconds, self.y = n, 0.0, []

    def __iter__(self) -> Iterator[np.ndarray]:
        for number, start in enumerate(range(0, self.n, BLOCK)):
            began = time.process_time()
            X, y = block(number, min(BLOCK, self.n - start))
            self.seconds += time.process_time() - began
            self.y.append(y.astype(np.int16))
            yield X


def labeller(method: str, folder: Path) -> Callable[[Rows], np.ndarray]:
    """A function from rows to labels (or None), of a method that was fitted on the first rows."""
    X, _ = block(-1 % 2**31, FITTED)
    if method == "faiss":
        import faiss

        faiss.omp_set_num_threads(1)
        means = faiss.Kmeans(WIDTH, CLUSTERS, seed=0, nredo=5)
        means.train(X)
        return lambda rows: np.concatenate([means.index.search(part, 1)[1][:, 0] for part in rows])
    if method == "umap":
        import umap
        from sklearn.cluster import KMeans

        reducer = umap.UMAP(n_components=10, random_state=0).fit(X)
        means = KMeans(CLUSTERS, n_init=3, random_state=0).fit(reducer.embedding_)
        return lambda rows: np.concatenate([means.predict(reducer.transform(part)) for part in rows])
    import torch

    import prodsc

    torch.set_num_threads(1)
    model = prodsc.load(folder)
    if method == "bare network":
        network = model.network_

        def forward(rows: Rows) -> np.ndarray:
            with torch.inference_mode():
                parts = [network.outputs(network.encode(torch.from_numpy(part))).argmax(1) for part in rows]
            return torch.cat(parts).numpy()

        return forward

    def label(rows: Rows) -> np.ndarray:
        out = folder / f"{os.getpid()}.npy"
        prodsc.predict_to_file(model, iter(rows), out, with_outliers=method.endswith("outliers"))
        return np.load(out)

    return label


def peak_mb() -> float:
    """Peak memory of this process. (ru_maxrss of a child process begins with that of its parent.)"""
    status = Path("/proc/self/status").read_text()
    return float(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1]) / 2**10


def measure(method: str, n: int, folder: Path) -> dict[str, float]:
    """One method on n rows, in this process."""
    work, rows = labeller(method, folder), Rows(n)
    before = peak_mb()
    began = time.process_time()
    labels = work(rows)
    seconds = time.process_time() - began - rows.seconds
    peak = peak_mb()
    from prodsc.core.metrics import accuracy

    acc = 100 * accuracy(np.concatenate(rows.y)[: 10**6], labels[: 10**6])
    return {"seconds": seconds, "rows_a_second": n / seconds, "peak_mb": peak, "mb_before": before, "acc": acc}


def main(folder: Path) -> None:
    from prodsc import PRODSC

    with tempfile.TemporaryDirectory() as work:
        PRODSC(CLUSTERS, random_state=0).fit(block(-1 % 2**31, FITTED)[0]).save(work)
        results = []
        for method in METHODS:
            for n in SIZES if method != "umap" else (UMAP_ROWS,):
                words = [sys.executable, __file__, "--one", method, str(n), work]
                done = subprocess.run(words, check=True, capture_output=True, text=True)
                results.append({"method": method, "rows": n, **json.loads(done.stdout.splitlines()[-1])})
                print(results[-1], flush=True)
    with (folder / "label_scale.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, results[0])
        writer.writeheader()
        writer.writerows({k: round(v, 3) if isinstance(v, float) else v for k, v in row.items()} for row in results)
    draw(folder)


def draw(folder: Path) -> None:
    """The picture of label_scale.csv."""
    from matplotlib.figure import Figure

    with (folder / "label_scale.csv").open() as file:
        results = list(csv.DictReader(file))
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    axes = figure.subplots(1, 2)
    for method in METHODS:
        mine = [row for row in results if row["method"] == method]
        n = np.array([float(row["rows"]) for row in mine])
        for ax, name in zip(axes, ("seconds", "peak_mb"), strict=True):
            values = np.array([float(row[name]) for row in mine])
            slope = np.polyfit(np.log(n), np.log(values), 1)[0] if len(n) > 1 else np.nan
            label = f"{method} (slope {slope:.2f})" if len(n) > 1 else method
            ax.loglog(n, values, "o-", label=label if name == "seconds" else method)
    axes[0].set(xlabel="rows", ylabel="processor seconds")
    axes[1].set(xlabel="rows", ylabel="peak memory, MB")
    axes[0].legend(fontsize=8)
    figure.savefig(folder / "images" / "label_scale.png", dpi=110)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]), Path(sys.argv[4]))))
    else:
        main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
