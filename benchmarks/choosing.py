"""Which method for which data: every method on every data set, over seeds, with k given. Labels only score.

    PRODSC_DATA=../shared/data OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1 \
        python benchmarks/choosing.py --methods k-means,pro-dsc --seeds 5 [--sets digits,orl] [--labels FOLDER]

Appends to docs/choosing.csv one line for each fit (set, method, seed, ACC, NMI, ARI, processor seconds) and skips what
is there already, so it can be stopped and run again. With `--labels` the labels of each fit are kept in a folder, and
how far seeds agree (mean ARI of all pairs) is written to docs/choosing_agreement.csv. `--table` prints the Markdown
tables of docs/choosing.md from both files without fitting; `--when` prints the short table of the site's front page
and of the paper. UMAP and EVoC compile on first use: fit something small before their seconds are measured.
"""

import argparse
import csv
import os
import time
import warnings
from collections import defaultdict
from itertools import combinations
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import prodsc
from prodsc.core.metrics import accuracy, ari, nmi
from prodsc.random import sorted_subset

RESULTS = Path(__file__).parents[1] / "docs" / "choosing.csv"
AGREEMENT = RESULTS.with_name("choosing_agreement.csv")
FILES = {
    "HAPT-561": "har_hapt561",
    "CIFAR-10 features": "cifar10_efflite0",
    "Flowers features": "flowers102_efflite0",
    "MNIST pixels": "mnist",
    "Fashion-MNIST pixels": "fashion_mnist",
    "CIFAR-10 pixels": "cifar10",
    "Reuters tf-idf": "reuters21578_top10",
    "AID CLIP": "aid7_clip_vitl14",
    "Pets CLIP": "pets37_clip_vitb32",
    "DTD CLIP": "dtd47_clip_vitb32",
    "Caltech CLIP": "caltech100_clip_vitb32",
    "Flowers CLIP": "flowers102_clip_vitb32",
    "ORL": "orl",
    "COIL-100": "coil100",
    "Extended Yale B": "eyaleb_48x42",
}
SETS = ["digits", *FILES]
KINDS = {  # rows of the short table: kind of data -> sets of that kind
    "embeddings of photographs (CLIP)": ("AID CLIP", "Pets CLIP", "DTD CLIP", "Caltech CLIP", "Flowers CLIP"),
    "features of a supervised network": ("CIFAR-10 features", "Flowers features"),
    "pixels of digits and clothes": ("digits", "MNIST pixels", "Fashion-MNIST pixels"),
    "pixels of photographs": ("CIFAR-10 pixels",),
    "tf-idf of texts": ("Reuters tf-idf",),
    "measurements of sensors": ("HAPT-561",),
    "faces": ("ORL", "Extended Yale B"),
    "objects from all sides": ("COIL-100",),
}
MAX_ROWS = 20_000  # of MNIST and Fashion-MNIST, the only larger sets
IMAGES = ("ORL", "COIL-100", "Extended Yale B")  # PRO-DSC gets these as images, other methods as rows of pixels


def load(name: str, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Rows (or images) and classes of a set."""
    if name == "digits":
        return load_digits(return_X_y=True)
    with np.load(Path(os.environ["PRODSC_DATA"]) / f"{FILES[name]}.npz") as file:
        X, y = file["X"], file["y"]
    if len(X) > MAX_ROWS:
        chosen = sorted_subset(len(X), MAX_ROWS)
        X, y = X[chosen], y[chosen]
    if name in IMAGES and method == "pro-dsc":
        return X, y
    return X.reshape(len(X), -1).astype(np.float32), y


def measure(name: str, method: str, seed: int, kept: Path | None) -> list[str]:
    """One line of the file; the labels go to the folder `kept`."""
    X, y = load(name, method)
    began = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        labels = prodsc.make(method, n_clusters=len(np.unique(y)), random_state=seed).fit(X).labels_
    seconds = time.process_time() - began
    if kept is not None:
        kept.mkdir(parents=True, exist_ok=True)
        np.save(kept / f"{name}--{method}--{seed}.npy", labels)
    scores = [f"{score(y, labels):.4f}" for score in (accuracy, nmi, ari)]
    return [name, method, str(seed), *scores, f"{seconds:.1f}"]


def read_results() -> list[dict[str, str]]:
    """All lines of the file."""
    if not RESULTS.exists():
        return []
    with RESULTS.open() as file:
        return list(csv.DictReader(file))


def append(line: list[str]) -> None:
    """Add a line to the file."""
    is_new = not RESULTS.exists()
    with RESULTS.open("a", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if is_new:
            writer.writerow(["set", "method", "seed", "ACC", "NMI", "ARI", "CPU s"])
        writer.writerow(line)


def write_agreement(kept: Path) -> None:
    """Mean ARI of all pairs of seeds, for what has labels in the folder; other lines of the file stay."""
    found: dict[tuple[str, str], list[np.ndarray]] = defaultdict(list)
    for path in sorted(kept.glob("*.npy")):
        name, method, _ = path.stem.split("--")
        found[name, method].append(np.load(path))
    lines = {(line["set"], line["method"]): line for line in read_agreement()}
    for (name, method), labels in found.items():
        if len(labels) > 1:
            mean = np.mean([ari(a, b) for a, b in combinations(labels, 2)])
            lines[name, method] = {"set": name, "method": method, "seeds": str(len(labels)), "ARI": f"{mean:.4f}"}
    with AGREEMENT.open("w", newline="") as file:
        writer = csv.DictWriter(file, ["set", "method", "seeds", "ARI"], lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines[key] for key in sorted(lines, key=lambda key: (SETS.index(key[0]), key[1])))


def read_agreement() -> list[dict[str, str]]:
    """All lines of the file of agreement."""
    if not AGREEMENT.exists():
        return []
    with AGREEMENT.open() as file:
        return list(csv.DictReader(file))


def agreement_table() -> str:
    """Mean ARI between seeds as Markdown; the best of a row is bold."""
    values = {(line["set"], line["method"]): (100 * float(line["ARI"]), line["seeds"]) for line in read_agreement()}
    methods = list(dict.fromkeys(method for _, method in values))
    rows = ["| data | " + " | ".join(methods) + " |", "|---" * (1 + len(methods)) + "|"]
    for name in SETS:
        known = {method: values[name, method] for method in methods if (name, method) in values}
        best = max((mean for mean, _ in known.values()), default=None)
        cells = []
        for method in methods:
            mean, n_seeds = known.get(method, (None, ""))
            text = "-" if mean is None else f"{mean:.1f}" + ("" if n_seeds == "5" else f" ({n_seeds})")
            cells.append(f"**{text}**" if mean is not None and mean == best else text)
        if known:
            rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def table(column: str) -> str:
    """Mean (and standard deviation, for ACC and NMI) of each method on each set as Markdown; the best is bold."""
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    for line in read_results():
        values[line["set"], line["method"]].append(
            100 * float(line[column]) if column != "CPU s" else float(line[column])
        )
    methods = list(dict.fromkeys(method for _, method in values))
    rows = ["| data | " + " | ".join(methods) + " |", "|---" * (1 + len(methods)) + "|"]
    for name in SETS:
        means = {method: np.mean(values[name, method]) for method in methods if (name, method) in values}
        best = (min if column == "CPU s" else max)(means, key=means.__getitem__) if means else None
        cells = []
        for method in methods:
            if method not in means:
                cells.append("-")
                continue
            found = values[name, method]
            text = f"{means[method]:.0f}" if column == "CPU s" else f"{means[method]:.1f} ± {np.std(found):.1f}"
            text += "" if len(found) == 5 else f" ({len(found)})"
            cells.append(f"**{text}**" if method == best and column != "CPU s" else text)
        rows.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def mean_scores(kind: str, column: str = "ACC") -> dict[str, float]:
    """Mean over the sets of a kind, in the unit of the file, of each method that was run on all of them; best first."""
    values: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for line in read_results():
        if line["set"] in KINDS[kind]:
            values[line["method"]][line["set"]].append(float(line[column]))
    complete = {m: sets for m, sets in values.items() if len(sets) == len(KINDS[kind])}
    means = {method: float(np.mean([np.mean(v) for v in sets.values()])) for method, sets in complete.items()}
    return dict(sorted(means.items(), key=lambda item: -item[1]))


def which_when() -> str:
    """The two most accurate methods for each kind of data, beside k-means and PRO-DSC, as Markdown."""
    rows = ["| your data | most accurate | next | k-means | pro-dsc | sets |", "|---|---|---|---|---|---|"]
    for kind, sets in KINDS.items():
        means = mean_scores(kind)
        best, second, *_ = [f"`{method}` {100 * mean:.1f}" for method, mean in means.items()] + ["-"] * 2
        known = [f"{100 * means[method]:.1f}" if method in means else "-" for method in ("k-means", "pro-dsc")]
        rows.append(f"| {kind} | {best} | {second} | {' | '.join(known)} | {', '.join(sets)} |")
    return "\n".join(rows)


def main() -> None:
    """Fit what is missing, or print the tables."""
    parser = argparse.ArgumentParser(description="Every method on every data set.")
    parser.add_argument("--methods", default="k-means,spectral,evoc,umap-k-means,umap-gmm,scan,turtle,pro-dsc")
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--labels", type=Path)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--when", action="store_true")
    options = parser.parse_args()
    if options.when:
        print(which_when())
        return
    if options.table:
        print("\n\n".join([*(table(column) for column in ("ACC", "NMI", "CPU s")), agreement_table()]))
        return
    done = {(line["set"], line["method"], line["seed"]) for line in read_results()}
    for seed in range(options.seeds):
        for name in options.sets.split(","):
            for method in options.methods.split(","):
                if (name, method, str(seed)) not in done:
                    line = measure(name, method, seed, options.labels)
                    append(line)
                    print(*line, flush=True)
    if options.labels is not None:
        write_agreement(options.labels)


if __name__ == "__main__":
    main()
