"""MNIST and Fashion-MNIST seen by an ImageNet encoder: `python benchmarks/encoder_features.py mnist [rows] [seeds]`.

Draws rows at random, extracts their EfficientNet-Lite0 features (an encoder trained WITH ImageNet labels) and compares
PRO-DSC at its defaults with k-means and k-NN spectral clustering on them. It goes on where it was.
"""

import subprocess
import sys
from pathlib import Path

import numpy as np

from prodsc import load_dataset
from prodsc.random import sorted_subset


def main(name: str, rows: int = 6000, seeds: int = 3) -> None:
    folder = Path("compared") / f"{name}-efflite0"
    folder.mkdir(parents=True, exist_ok=True)
    images, features = folder / "images.npz", folder / "features.npz"
    if not images.exists():
        data = load_dataset(name)
        chosen = sorted_subset(len(data.X), rows)
        np.savez_compressed(images, X=data.X[chosen], y=data.y[chosen])
    prodsc = [sys.executable, "-m", "prodsc"]
    if not features.exists():
        subprocess.run([*prodsc, "extract", images, "--encoder", "efficientnet-lite0", "-o", features], check=True)
    how = ["--methods", "k-means,spectral,pro-dsc", "--seeds", str(seeds), "--out", folder]
    subprocess.run([*prodsc, "compare", features, *how], check=True)


if __name__ == "__main__":
    main(sys.argv[1], *map(int, sys.argv[2:]))
