"""Default settings on the digits of scikit-learn, over seeds, beside k-means and spectral clustering.

python benchmarks/digits.py [number of seeds, 5]
"""

import sys
import time

import numpy as np
from sklearn.cluster import KMeans, SpectralClustering
from sklearn.datasets import load_digits

from prodsc import PRODSC
from prodsc.core import metrics


def main(seeds: int) -> None:
    X, y = load_digits(return_X_y=True)
    methods = {
        "k-means": lambda s: KMeans(10, n_init=10, random_state=s),
        "spectral": lambda s: SpectralClustering(10, affinity="nearest_neighbors", random_state=s),
        "pro-dsc": lambda s: PRODSC(10, random_state=s),
    }
    for name, make in methods.items():
        began = time.perf_counter()
        found = [metrics.scores(y, make(seed).fit(X).labels_) for seed in range(seeds)]
        seconds = (time.perf_counter() - began) / seeds
        spread = "  ".join(
            f"{s} {np.mean([f[s] for f in found]):.3f} ± {np.std([f[s] for f in found]):.3f}"
            for s in ("ACC", "NMI", "ARI")
        )
        print(
            f"{name:<10} {spread}   {seconds:.1f} s a fit   ACC per seed {[round(f['ACC'], 3) for f in found]}",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 5)
