"""How many groups? The number that two halves of the rows agree on, or "no clear k".

python examples/how_many.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, make_blobs

from prodsc import PRODSC, estimate_k


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)

    print(estimate_k(load_digits().data), "\n")
    print(estimate_k(np.random.default_rng(0).normal(size=(500, 10))), "\n")  # one cloud has no groups

    X, _ = make_blobs(500, 12, centers=6, random_state=0)
    model = PRODSC("auto", scaling="standard", epochs=60).fit(X)
    report = model.report(X, title=f"{model.n_clusters_} groups")
    print(report)
    print(report.save(folder / "report.html"))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/how_many"))
