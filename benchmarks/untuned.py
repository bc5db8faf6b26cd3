"""Defaults on all data at hand: `python benchmarks/untuned.py [SEEDS] [SETS]`; `... long` trains three times longer.

PRO-DSC with nothing set but the number of clusters, beside k-means and k-NN spectral clustering, each fit in a process
of its own. It goes on where it was. Labels only score.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np

from prodsc import load_dataset
from prodsc.methods.building import AUTO_STEPS

ROWS = {"mnist": 20_000, "fashion-mnist": 20_000}  # of these sets; of others all
SETS = "digits hapt-561 mnist fashion-mnist cifar10-efflite0 flowers-efflite0 reuters-21578 coil100 orl eyaleb"
BATCH = 1024


def data_file(name: str, folder: Path) -> tuple[Path, int, int]:
    """A plain matrix of the set with its labels, and how many rows and clusters it has."""
    path = folder / f"{name}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        data = load_dataset(name)
        chosen = np.arange(len(data.X))
        if name in ROWS:
            chosen = np.sort(np.random.default_rng(0).choice(len(data.X), ROWS[name], replace=False))
        np.savez(path, X=np.asarray(data.X[chosen]).reshape(len(chosen), -1), y=data.y[chosen])
    with np.load(path) as file:
        return path, len(file["y"]), len(np.unique(file["y"]))


def main(*words: str) -> None:
    long = "long" in words
    numbers = [int(word) for word in words if word.isdigit()]
    sets = [word for word in words if word in SETS.split()] or SETS.split()
    folder = Path("untuned")
    for name in sets:
        path, n, k = data_file(name, folder)
        methods, extra = "k-means,spectral,pro-dsc", []
        if long:
            per_epoch = max(1, n // BATCH)
            methods = "pro-dsc"
            extra = ["--set", f"pro-dsc.epochs={3 * -(-(AUTO_STEPS + 2 * k) // per_epoch)}"]
        out = folder / (f"{name}-long" if long else name)
        command = [sys.executable, "-m", "prodsc", "compare", path, "--methods", methods, *extra]
        subprocess.run([*command, "--seeds", str((numbers or [5])[0]), "--out", out], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
