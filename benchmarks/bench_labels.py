"""Labels at scale: landmarks against exact spectral clustering, a million rows, and `predict` against the bare network.

python benchmarks/bench_labels.py [alternatives]
"""

import resource
import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from bench_step import subspaces
from looks import shared
from sklearn.datasets import load_digits

from prodsc import PRODSC, metrics
from prodsc.graph import GramKernel, condensed, spectral_labels, spectral_partition
from prodsc.graph.affinity import neighbour_graph
from prodsc.methods.defaults import landmarks_for

SETS = ("subspaces", "digits", "cifar10_efflite0")


def known(name: str) -> tuple[torch.Tensor, np.ndarray, int, int]:
    """Unit rows to cluster, their classes, k, and landmarks: fewer for few rows, so that some are left to extend to.

    The rows of the synthetic set are clustered as they are; of the real ones, the Y of a fit with default settings.
    """
    if name == "subspaces":
        X, y = subspaces(20_000, 128, 100, dim=4)
        return torch.from_numpy(X), y, 100, landmarks_for(100)
    X, y = load_digits(return_X_y=True) if name == "digits" else (part[:10_000] for part in shared(name))
    return PRODSC(10).fit(X)._y(X), y, 10, min(landmarks_for(10), len(X) // 2)


def clustered(Y: torch.Tensor, k: int, n_landmarks: int, seed: int = 0) -> np.ndarray:
    """Labels as the estimator gives them: all rows as landmarks is exact spectral clustering."""
    chosen = np.sort(np.random.default_rng(seed).permutation(len(Y))[:n_landmarks])
    partition = spectral_partition(GramKernel(Y[torch.from_numpy(chosen)]), k, 10, seed)
    return (condensed(partition, GramKernel) if n_landmarks < len(Y) else partition).labels(Y)


def accuracy_lost(name: str) -> dict[str, float]:
    """ACC of exact spectral clustering less that of landmarks (the mean of three draws), in points."""
    Y, y, k, m = known(name)
    seconds, scores = [], []
    for n_landmarks, seeds in ((len(Y), [0]), (m, [0, 1, 2])):
        began = time.process_time()
        found = [100 * metrics.scores(y, clustered(Y, k, n_landmarks, seed))["ACC"] for seed in seeds]
        seconds.append((time.process_time() - began) / len(seeds))
        scores.append(float(np.mean(found)))
    return {
        "lost": scores[0] - scores[1],
        "exact": scores[0],
        "landmarks": scores[1],
        "n_landmarks": m,
        "exact seconds": seconds[0],
        "seconds": seconds[1],
    }


def labelled(n: int) -> dict[str, float]:
    """Everything a fit does except steps of training, on n x 128 with k = 100: checks, whitening, labels."""
    X, y = subspaces(n, 128, 100, dim=4)
    wall, began = time.perf_counter(), time.process_time()
    model = PRODSC(100, encoder="none", start="whitened", n_components=128, epochs=0, label_affinity="gram").fit(X)
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    return {
        "seconds": seconds,
        "wall": wall,
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "ACC": 100 * metrics.scores(y, model.labels_)["ACC"],
    }


def throughput(hidden_size: int, n: int = 8192, rounds: int = 3) -> float:
    """Rows a second of `predict` over those of the network's forward pass alone (both heads, the same chunks), of a fit
    of more rows than it clusters exactly."""
    X, _ = subspaces(n, 768, 10)
    model = PRODSC(10, hidden_size=hidden_size, epochs=1, warmup_steps=1).fit(X)
    network, rows = model.network_, model._rows(X)

    def bare() -> None:
        with torch.inference_mode():
            for chunk in rows.chunks():
                H = network.encode(chunk)
                network.z(H), network.y(H)

    spent: dict[Callable[[], object], list[float]] = {bare: [], lambda: model.predict(X): []}
    for _ in range(rounds):
        for work, times in spent.items():
            began = time.process_time()
            work()
            times.append(time.process_time() - began)
    alone, whole = (float(np.median(times)) for times in spent.values())
    return alone / whole


def alternatives(name: str) -> None:
    """Other ways to label many rows, on the rows where all run: ACC and processor seconds."""
    Y, y, k, m = known(name)
    ways = {
        "landmarks": lambda: clustered(Y, k, m),
        "1,024 landmarks": lambda: clustered(Y, k, 1024),
        "10 nearest neighbours, exact": lambda: spectral_labels(neighbour_graph(Y.numpy(), 10), k, 10, 0),
        "low rank: (YY')^2 on landmarks": lambda: spectral_labels((Y[:m] @ Y[:m].T).square(), k, 10, 0),
    }
    for way, work in ways.items():
        began = time.process_time()
        found = work()
        acc = 100 * metrics.scores(y[: len(found)], found)["ACC"]
        print(f"{name}: {way}: ACC {acc:.1f}, {time.process_time() - began:.1f} s", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    for name in SETS:
        alternatives(name) if "alternatives" in sys.argv[1:] else print(name, accuracy_lost(name), flush=True)
