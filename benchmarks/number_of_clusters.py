"""How many clusters? The estimate beside the true number, on real data and on data made without clusters.

    python benchmarks/number_of_clusters.py [digits coil100 ...]

Labels are read only to print the true number. Beside the rule of `prodsc k` stands what the widest gap between the
eigenvalues of the same graph says (the usual rule), from 2 to the largest candidate. The constants of the rule were
chosen on the sets marked "tuned"; the others were looked at once, with the rule as it is.
"""

import sys
import time

import numpy as np
import torch
from torch.nn.functional import normalize

from prodsc import load_dataset
from prodsc.core.graph import leading_eigenvectors
from prodsc.core.graph.neighbours import nearest_neighbours
from prodsc.core.graph.number import K_OPTIONS, KCurve, graph_within
from prodsc.pro_dsc.number import estimate_k

TUNED = ("digits", "cifar10-efflite0", "coil100", "flowers-efflite0", "blobs-12", "gaussian-20", "uniform-2")
CONFIRMED = (
    "hapt-561", "orl", "mnist", "fashion-mnist", "eyaleb", "reuters-21578", "blobs-3", "blobs-40", "gaussian-5",
    "uniform-10",
)  # fmt: skip
HEAD = "| data | rows | true k | estimate | nearly as good | score, bits | one cloud | widest eigengap | CPU s |"


def rows_of(name: str) -> tuple[np.ndarray, str]:
    """Rows and the true number of clusters; names with a number are made up: blobs-K, gaussian-WIDTH, uniform-WIDTH."""
    kind, _, number = name.partition("-")
    rng = np.random.default_rng(0)
    if kind == "blobs":
        centres = 3 * rng.standard_normal((int(number), 20))
        return centres[rng.integers(0, int(number), 2000)] + 0.8 * rng.standard_normal((2000, 20)), number
    if kind == "gaussian":
        return rng.standard_normal((2000, int(number))), "none"
    if kind == "uniform":
        return rng.random((2000, int(number))), "none"
    data = load_dataset(name)
    assert data.y is not None
    return data.X.reshape(len(data.X), -1), str(len(np.unique(data.y)))


def widest_gap(X: np.ndarray) -> int:
    """k before the widest gap of the eigenvalues of the graph that the rule uses, on at most 2,000 rows."""
    rng = np.random.default_rng(0)
    points = torch.from_numpy(np.asarray(X[np.sort(rng.permutation(len(X))[:2000])], dtype=np.float32))
    graph = graph_within(nearest_neighbours(normalize(points), K_OPTIONS.n_searched).numpy(), np.arange(len(points)))
    most = min(K_OPTIONS.max_k, len(points) // K_OPTIONS.min_rows_per_cluster)
    values = leading_eigenvectors(graph, most + 1, 1e-6)[1].numpy()
    gaps = -np.diff(np.sort(values)[::-1])
    return int(np.argmax(gaps[1:]) + 2)


def line(name: str) -> str:
    X, true = rows_of(name)
    began = time.process_time()
    curve: KCurve = estimate_k(X)
    took = time.process_time() - began
    others = ", ".join(str(k) for k in curve.near if k != curve.k) if curve.clear else ""
    found = f"**{curve.k}**" if curve.clear else f"no clear k ({curve.k})"
    cells = [
        name, f"{curve.rows:,}", true, found, others or "-", f"{max(curve.scores):.2f}",
        f"{curve.null_score:.2f}", str(widest_gap(X)), f"{took:.0f}",
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


if __name__ == "__main__":
    asked = sys.argv[1:]
    for words, names in (("Tuned on", TUNED), ("Confirmed on", CONFIRMED)):
        print(f"\n{words}:\n\n{HEAD}\n|" + "---|" * (HEAD.count("|") - 1), flush=True)
        for name in names:
            if not asked or name in asked:
                print(line(name), flush=True)
