"""Writes models/: one small saved model of every method, by the code of version 0.1. They must load for ever."""

import shutil
import warnings

import numpy as np
from cases import HERE, lines

from prodsc import make

TINY = {"hidden_size": 8, "n_components": 4, "epochs": 3, "warmup_steps": 2, "n_init": 2}
METHODS = {
    "pro-dsc": TINY | {"neighbour_views": 3, "keep": "best"},
    "sedsc": TINY | {"on_collapse": "ignore"},
    "cpp": TINY,
    "mlc": {"head_hidden_size": 8, "epochs": 3, "warmup_steps": 2, "n_init": 2},
    "k-means": {}, "spherical-k-means": {}, "spectral": {}, "ssc-omp": {}, "ensc": {}, "lsr": {}, "ssc": {}, "lrr": {},
    "temi": {"n_heads": 2, "hidden_size": 8, "n_components": 4, "warmup_epochs": 0, "epochs": 3},
    "scan": {"n_heads": 2, "epochs": 3, "self_label_epochs": 1},
    "turtle": {"inner_steps": 2, "steps": 5},
    "senet": {"hidden_sizes": (8,), "n_components": 8, "steps": 5},
    "dsc-net": {"hidden_size": 8, "n_components": 4, "pretrain_epochs": 3, "epochs": 3},
    "edesc": {"hidden_sizes": (8,), "subspace_dim": 2, "pretrain_epochs": 3, "steps": 3},
}  # fmt: skip


def main() -> None:
    X = lines()
    shutil.rmtree(HERE / "models", ignore_errors=True)
    for name, parameters in METHODS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = make(name, n_clusters=4, device="cpu", **parameters).fit(X)
        model.save(HERE / "models" / name)
        found = {"labels": model.labels_}
        if hasattr(model, "predict"):
            found["predicted"] = model.predict(X[::-1] * 1.5)
        np.savez_compressed(HERE / "models" / name / "expected.npz", **found)


if __name__ == "__main__":
    main()
