"""How many labels stay the same when only the machine or the form of the input changes.

python benchmarks/determinism.py digits --method k-means --set n_clusters=10
python benchmarks/determinism.py digits --method pro-dsc --set n_clusters=10 --seeds 3

Each fit runs in a process of its own, because the number of threads is fixed when torch is loaded. Printed are the
share of rows with exactly the same label, and the ARI of the two partitions (1: the same up to the numbers of the
clusters). Batch sizes of predict and dtypes of its input are tried on one model.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

VARIANTS = {
    "again": {},
    "threads 1 and 2": {"threads": 2},
    "row order": {"order": True},
    "float64 rows": {"dtype": "float64"},
    "float16 rows": {"dtype": "float16"},
    "columns contiguous": {"fortran": True},
}


def fit(options: argparse.Namespace) -> None:
    """One fit, in a process of its own: the labels in the order of the data set."""
    import torch

    from prodsc import make
    from prodsc.sources.door import open_source
    from prodsc.sources.rows import as_array

    torch.set_num_threads(options.threads)
    X = np.asarray(as_array(open_source(options.data)))
    X = X[: options.rows] if options.rows else X
    order = np.random.default_rng(1).permutation(len(X)) if options.order else np.arange(len(X))
    rows = X[order].astype(options.dtype) if X.dtype.kind == "f" else X[order].astype(np.float32).astype(options.dtype)
    rows = np.asfortranarray(rows) if options.fortran else rows
    model = make(options.method, random_state=options.seed, **parameters(options.set)).fit(rows)
    labels = np.empty(len(X), dtype=np.int64)
    labels[order] = model.labels_
    np.save(options.out, labels)
    if options.model:
        model.save(options.model)


def predictions(folder: Path, options: argparse.Namespace) -> list[tuple[str, float]]:
    """The share of equal labels of `predict` over batch sizes, dtypes and the order of rows."""
    from prodsc import load
    from prodsc.sources.door import open_source
    from prodsc.sources.rows import as_array

    X = np.asarray(as_array(open_source(options.data)), dtype=np.float32)
    X = X[: options.rows] if options.rows else X
    model = load(folder)
    whole = model.predict(X)
    shuffled = np.random.default_rng(2).permutation(len(X))
    found = {"again": model.predict(X), "float64": model.predict(X.astype(np.float64))}
    found["row order"] = np.empty_like(whole)
    found["row order"][shuffled] = model.predict(X[shuffled])
    for size in (1, 7, 64, 1000):
        n = min(len(X), 300 * size)
        parts = [model.predict(X[i : min(i + size, n)]) for i in range(0, n, size)]
        found[f"batches of {size}"] = np.concatenate([*parts, whole[n:]])
    return [(name, float(np.mean(labels == whole))) for name, labels in found.items()]


def parameters(words: list[str]) -> dict[str, object]:
    """NAME=VALUE as JSON where it is JSON, and as text otherwise."""
    values: dict[str, object] = {}
    for word in words:
        name, _, text = word.partition("=")
        try:
            values[name] = json.loads(text)
        except ValueError:
            values[name] = text
    return values


def run(options: argparse.Namespace, out: Path, seed: int, threads: int = 1, **variant: object) -> np.ndarray:
    words = [sys.executable, __file__, options.data, "--method", options.method, "--one", "--out", str(out)]
    words += ["--seed", str(seed), "--threads", str(threads), "--rows", str(options.rows)]
    words += [f"--set={each}" for each in options.set]
    for name, value in variant.items():
        words += [f"--{name}"] if value is True else [f"--{name}", str(value)]
    number = str(threads)
    subprocess.run(words, check=True, env=os.environ | {"OMP_NUM_THREADS": number, "OPENBLAS_NUM_THREADS": number})
    return np.load(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data")
    parser.add_argument("--method", default="pro-dsc")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--rows", type=int, default=0, help="only the first rows; 0: all")
    for name in ("--one", "--order", "--fortran"):
        parser.add_argument(name, action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--threads", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--dtype", default="float32", help=argparse.SUPPRESS)
    parser.add_argument("--out", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--model", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        fit(options)
        return
    from prodsc.core.metrics import ari

    print(f"{options.method} on {options.data}, {options.seeds} seed(s)\n")
    print("| fit | equal labels, % | ARI |\n|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="prodsc-determinism-") as place:
        folder = Path(place)
        out = folder / "labels.npy"
        base = [run(options, out, seed, model=folder / f"model{seed}") for seed in range(options.seeds)]
        for name, variant in VARIANTS.items():
            other = [run(options, out, seed, **variant) for seed in range(options.seeds)]  # type: ignore[arg-type]
            equal = [100 * float(np.mean(a == b)) for a, b in zip(base, other, strict=True)]
            partition = [ari(a, b) for a, b in zip(base, other, strict=True)]
            print(f"| {name} | {min(equal):.2f} | {min(partition):.4f} |", flush=True)
        print("\n| predict of one model | equal labels, % |\n|---|---|")
        try:
            for name, share in predictions(folder / "model0", options):
                print(f"| {name} | {100 * share:.2f} |", flush=True)
        except AttributeError:
            print(f"| {options.method} cannot label new rows | |")


if __name__ == "__main__":
    main()
