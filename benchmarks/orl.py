"""ORL with the published recipe: scores, losses and rank at 500, 1500 and 5000 epochs.

python benchmarks/orl.py [number of seeds, 3] [name=value ...]
"""

import sys
import time
from typing import Any

import numpy as np
from snapshots import Snapshots, shared

from prodsc import PRODSC
from prodsc.runs.recipes import load_recipe

AT = (1, 500, 1500, 5000)
COLUMNS = ("ACC", "NMI", "ARI", "coding_rate", "self_expression", "block_diagonal", "rank")


def main(seeds: int, **change: Any) -> None:
    X, y = shared("orl")
    every = []
    for seed in range(seeds):
        model = PRODSC.from_flat(**load_recipe("orl").parameters | change, random_state=seed)
        snapshots = Snapshots(AT)
        began = time.perf_counter()
        model.fit(X, callbacks=[snapshots])
        pre = model.history_["reconstruction"][model.history_["phase"] == "pre-train"]
        ended = f"{pre[-1]:.2f}" if len(pre) else "none"
        print(f"seed {seed}: {time.perf_counter() - began:.0f} s, reconstruction {ended}", flush=True)
        every.append(snapshots.scores(model, X, y))
        for epoch, scores in every[-1].items():
            print(f"  epoch {epoch:>5}  " + "  ".join(f"{name} {scores[name]:.3f}" for name in COLUMNS), flush=True)
    for epoch in every[0]:
        spread = (
            f"{s} {np.mean([f[epoch][s] for f in every]):.3f} ± {np.std([f[epoch][s] for f in every]):.3f}"
            for s in COLUMNS[:3]
        )
        print(f"epoch {epoch:>5}, {seeds} seeds: " + "  ".join(spread))


if __name__ == "__main__":
    given = dict(word.split("=", 1) for word in sys.argv[2:])
    main(
        int(sys.argv[1]) if len(sys.argv) > 1 else 3,
        **{name: float(v) if "." in v else int(v) for name, v in given.items()},
    )
