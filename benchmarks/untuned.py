"""Defaults on all available data: `python benchmarks/untuned.py [SEEDS] [SETS]`; `... long` trains three times longer.

PRO-DSC with nothing set but the number of clusters, beside k-means and k-NN spectral clustering, each fit in a process
of its own. Run it again to continue. Labels only score.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np

from prodsc import PRODSC, load_dataset
from prodsc.pro_dsc.defaults import resolve_auto
from prodsc.random import sorted_subset

ROWS = {"mnist": 20_000, "fashion-mnist": 20_000}  # of these sets; of others all
IMAGES = ("coil100", "orl", "eyaleb")  # k-means and spectral clustering see their pixels as rows
SETS = "digits hapt-561 mnist fashion-mnist cifar10-efflite0 flowers-efflite0 reuters-21578 coil100 orl eyaleb"


def data_file(name: str, folder: Path) -> tuple[Path, tuple[int, ...], int]:
    """A plain matrix (or images) of the set with its labels; its shape, and how many clusters it has."""
    path = folder / f"{name}.npz"
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        data = load_dataset(name)
        chosen = np.arange(len(data.X))
        if name in ROWS:
            chosen = sorted_subset(len(data.X), ROWS[name])
        X = np.asarray(data.X[chosen])
        np.savez(path, X=X if name in IMAGES else X.reshape(len(X), -1), y=data.y[chosen])
    with np.load(path) as file:
        return path, file["X"].shape, len(np.unique(file["y"]))


def main(*words: str) -> None:
    long = "long" in words
    numbers = [int(word) for word in words if word.isdigit()]
    sets = [word for word in words if word in SETS.split()] or SETS.split()
    folder = Path("untuned")
    for name in sets:
        path, shape, k = data_file(name, folder)
        methods, extra = "k-means,spectral,pro-dsc", []
        if long:
            methods = "pro-dsc"
            epochs = resolve_auto(PRODSC().flat_params(), shape, k)["epochs"]
            extra = ["--set", f"pro-dsc.epochs={3 * epochs}"]
        out = folder / (f"{name}-long" if long else name)
        command = [sys.executable, "-m", "prodsc", "compare", path, "--methods", methods, *extra]
        subprocess.run([*command, "--seeds", str((numbers or [5])[0]), "--out", out], check=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
