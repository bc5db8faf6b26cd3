"""New rows the next day, with their columns in another order and a gap: labels by the model of yesterday.

python examples/next_day.py [FOLDER]
"""

import sys
from pathlib import Path

import numpy as np
from sklearn.datasets import load_wine

from prodsc.cli import cli


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    wine = load_wine(as_frame=True).data
    wine.insert(0, "bottle", [f"W{i:03d}" for i in range(len(wine))])
    order = np.random.default_rng(0).permutation(len(wine))
    wine.iloc[order[:120]].to_csv(folder / "monday.csv", index=False)
    tuesday = wine.iloc[order[120:]].copy()
    tuesday.iloc[3, 5] = np.nan
    tuesday[tuesday.columns[::-1]].to_csv(folder / "tuesday.csv", index=False)

    def prodsc(*words: object) -> None:
        """The command line, here without a terminal."""
        print("$ prodsc", *words)
        cli.main([str(word) for word in words], standalone_mode=False)

    options = ["--id", "bottle", "--impute", "median", "--scaling", "standard", "--epochs", 60]
    prodsc("fit", folder / "monday.csv", "-k", 3, *options, "--out", folder / "run", "--overwrite", "--quiet")
    prodsc("predict", folder / "run", folder / "tuesday.csv", "-o", folder / "tuesday_labels.csv", "--overwrite")
    print((folder / "tuesday_labels.csv").read_text()[:300])


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "demo/next_day"))
