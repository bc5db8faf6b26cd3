"""Labels at scale: landmarks against exact spectral clustering, a million rows, and `predict` against the bare network.

python benchmarks/bench_labels.py [alternatives [SETS]]

Among the alternatives are graphs of approximate neighbours, where FAISS and PyNNDescent are installed
(`pip install faiss-cpu pynndescent`; prodsc itself does not need them).
"""

import resource
import sys
import time
from collections.abc import Callable

import numpy as np
import scipy.sparse
import torch
from bench_step import subspaces
from sklearn.datasets import load_digits
from snapshots import shared

from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.core.graph import GramKernel, neighbour_graph, spectral_labels, spectral_partition
from prodsc.pro_dsc.defaults import nystroem_landmarks_for

SETS = ("subspaces", "digits", "cifar10_efflite0", "mnist", "har_hapt561")
CLUSTERS = {"har_hapt561": 6}
MANY = 30_000  # rows, beyond which exact ways are left out


def known(name: str) -> tuple[torch.Tensor, np.ndarray, int, int]:
    """Unit rows to cluster, their classes, k, and landmarks: fewer for few rows, so that some are left to extend to.

    The rows of the synthetic set are clustered as they are; of the real ones, the Y of a fit with default settings.
    """
    if name.startswith("subspaces"):
        X, y = subspaces(int(name.partition("-")[2] or 20_000), 128, 100, dim=4)
        return torch.from_numpy(X), y, 100, nystroem_landmarks_for(100)
    X, y = load_digits(return_X_y=True) if name == "digits" else (part[:10_000] for part in shared(name))
    X, k = np.asarray(X, dtype=np.float32).reshape(len(X), -1), CLUSTERS.get(name, 10)
    model = PRODSC(k).fit(X)
    return model.labeller_.Y(model._new_rows(X)), y, k, min(nystroem_landmarks_for(k), len(X) // 2)


def clustered(Y: torch.Tensor, k: int, n_landmarks: int, seed: int = 0) -> np.ndarray:
    """Labels as the estimator gives them: all rows as landmarks is exact spectral clustering."""
    chosen = torch.from_numpy(np.sort(np.random.default_rng(seed).permutation(len(Y))[:n_landmarks]))
    return spectral_partition(GramKernel(Y[chosen]), k, 10, seed, rows=Y if len(chosen) < len(Y) else None).labels(Y)


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
    model = PRODSC.from_flat(
        100, encoder="none", start="whitened", n_components=128, epochs=0, label_affinity="gram"
    ).fit(X)
    seconds, wall = time.process_time() - began, time.perf_counter() - wall
    return {
        "seconds": seconds,
        "wall": wall,
        "GB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        "ACC": 100 * metrics.scores(y, model.labels_)["ACC"],
    }


def throughput(hidden_size: int, n: int, rounds: int = 7) -> float:
    """Rows a second of `predict` over those of the network's forward pass alone (both heads, the same chunks), of a fit
    of n rows, exact (2,048) or not (8,192)."""
    X, _ = subspaces(n, 768, 10)
    model = PRODSC.from_flat(10, hidden_size=hidden_size, epochs=1, warmup_steps=1).fit(X)
    network, rows = model.network_, model._new_rows(X)

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


def nearest_by_faiss(Y: np.ndarray, n_neighbors: int) -> np.ndarray:
    import faiss

    faiss.omp_set_num_threads(1)
    cells = int(4 * len(Y) ** 0.5)
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(Y.shape[1]), Y.shape[1], cells, faiss.METRIC_INNER_PRODUCT)
    index.nprobe = 16
    index.train(Y)
    index.add(Y)
    return index.search(Y, n_neighbors + 1)[1][:, 1:].clip(min=0)


def nearest_by_pynndescent(Y: np.ndarray, n_neighbors: int) -> np.ndarray:
    from pynndescent import NNDescent

    index = NNDescent(Y, metric="cosine", n_neighbors=n_neighbors + 1, random_state=0, n_jobs=1)
    return index.neighbor_graph[0][:, 1:]


def graph_labels(near: np.ndarray, k: int) -> np.ndarray:
    n, many = near.shape
    G = scipy.sparse.csr_array((np.ones(near.size), (np.repeat(np.arange(n), many), near.ravel())), shape=(n, n))
    return spectral_labels(scipy.sparse.csr_array((G + G.T) / 2), k, 10, 0)


def alternatives(name: str) -> None:
    """Other ways to label many rows, on the rows where all run: ACC and processor seconds."""
    Y, y, k, m = known(name)
    chosen = torch.arange(0, len(Y), -(-len(Y) // m))
    ways = {
        "all rows, approximated from landmarks": lambda: clustered(Y, k, m),
        "as many landmarks, clustered alone": lambda: spectral_partition(GramKernel(Y[chosen]), k, 10, 0).labels(Y),
        "all rows, exact": lambda: clustered(Y, k, len(Y)),
        "10 neighbours, exact search": lambda: spectral_labels(neighbour_graph(Y.numpy(), 10), k, 10, 0),
        "10 neighbours, FAISS": lambda: graph_labels(nearest_by_faiss(Y.numpy(), 10), k),
        "10 neighbours, PyNNDescent": lambda: graph_labels(nearest_by_pynndescent(Y.numpy(), 10), k),
    }
    for way, work in ways.items():
        if len(Y) > MANY and "exact" in way:
            continue
        began = time.process_time()
        try:
            found = work()
        except ImportError as missing:
            print(f"{name}: {way}: not run ({missing})", flush=True)
            continue
        acc = 100 * metrics.scores(y, found)["ACC"]
        print(f"{name}: {way}: ACC {acc:.1f}, {time.process_time() - began:.1f} s", flush=True)


if __name__ == "__main__":
    torch.set_num_threads(1)
    asked = sys.argv[1:]
    for name in [word for word in asked if word != "alternatives"] or SETS:
        alternatives(name) if "alternatives" in asked else print(name, accuracy_lost(name), flush=True)
