# ruff: noqa: E501 - one case a line is easier to read
"""Fits whose labels were frozen with version 0.1, before the code was laid out anew: what a refactoring must not change.

Each case is a method, the rows it clusters and its parameters, by the names they had in version 0.1. `make.py` writes
the labels (python tests/golden/make.py); `test_golden.py` fits again and compares.
"""

import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
LABELS = HERE / "labels.npz"
SHARED_DATA = HERE.parents[1].parent / "shared" / "data"


def digits(rows: slice = slice(None)) -> np.ndarray:
    from sklearn.datasets import load_digits

    return load_digits().data[rows]


def shared(name: str, rows: Any = slice(None)) -> Callable[[], np.ndarray]:
    def read() -> np.ndarray:
        with np.load(SHARED_DATA / f"{name}.npz", allow_pickle=False) as file:
            return file["X"][rows]

    return read


def lines(n: int = 120, k: int = 4) -> np.ndarray:
    """Noisy points on k lines, clusters of different sizes."""
    rng = np.random.default_rng(0)
    sizes = np.array([0.4, 0.3, 0.2, 0.1])[:k]
    y = np.repeat(np.arange(k), np.round(sizes / sizes.sum() * n).astype(int))
    X = rng.standard_normal((len(y), 1)) * rng.standard_normal((k, 12))[y]
    return X + 0.05 * rng.standard_normal(X.shape)


def on_disk(X: np.ndarray) -> Path:
    """The rows as a .npy file, which a fit reads a batch at a time."""
    path = Path(tempfile.mkdtemp()) / "X.npy"
    np.save(path, X)
    return path


@dataclass(frozen=True)
class Case:
    name: str
    method: str
    rows: Callable[[], Any]
    parameters: dict[str, Any]
    fit: dict[str, Any] = field(default_factory=dict)  # further arguments of `fit`
    slow: bool = False  # more than about ten seconds
    data: str | None = None  # the file of ../shared/data it needs


PUBLISHED_START = {"start": "warm-up"}  # the default of features in version 0.1
SMALL = {"hidden_size": 32, "n_components": 16, "epochs": 20, "warmup_steps": 10, "n_init": 3}
PART = slice(0, 300)
ORL_RECIPE = {
    "encoder": "conv", "start": "warm-up", "channels": (3, 3, 5), "kernel_sizes": (3, 3, 3), "pretrain_epochs": 20,
    "n_components": 64, "gamma": 75, "beta": 10, "eta": 0.2, "coefficient_form": "directed", "epochs": 30,
    "batch_size": 400, "warmup_steps": 20, "eigensolver": "remembered", "learning_rate": 1e-4,
    "learning_rate_encoder": 1e-5, "label_affinity": "coefficients", "power": 1.0, "neighbour_views": 0, "keep": "last",
}  # fmt: skip

# Defaults of version 0.1 that have changed since.
TEMI_01 = {
    "n_neighbors": 50, "hidden_size": 512, "n_components": 256, "scaling": "standard", "teacher_momentum": 0.996,
    "learning_rate": 2e-4,
}  # fmt: skip
CPP_01 = {"batch_size": 1024, "scaling": "unit"}
SCAN_01 = {"n_neighbors": 20, "batch_size": 128, "learning_rate": 1e-4, "scaling": "standard"}
TURTLE_01 = {"learning_rate": 1e-3, "inner_learning_rate": 1e-3, "scaling": "standard"}

CASES = [
    # PRO-DSC as a user runs it
    Case("digits", "pro-dsc", digits, {"n_clusters": 10} | PUBLISHED_START, slow=True),
    Case("hapt", "pro-dsc", shared("har_hapt561", slice(None, None, 5)), {"n_clusters": 6} | PUBLISHED_START, slow=True, data="har_hapt561"),
    Case(
        "cifar10", "pro-dsc", shared("cifar10_efflite0", slice(None, None, 8)), {"n_clusters": 10} | PUBLISHED_START, slow=True,
        data="cifar10_efflite0",
    ),
    Case("orl", "pro-dsc", shared("orl"), {"n_clusters": 40}, slow=True, data="orl"),
    Case("eyaleb", "pro-dsc", shared("eyaleb_48x42", slice(0, 640)), {"n_clusters": 10}, slow=True, data="eyaleb_48x42"),
    Case(
        "reuters", "pro-dsc", shared("reuters21578_top10", slice(None, None, 4)), {"n_clusters": 10} | PUBLISHED_START, slow=True,
        data="reuters21578_top10",
    ),
    # its options
    Case("small", "pro-dsc", lambda: digits(PART), {"n_clusters": 10} | SMALL),
    Case("small from a file", "pro-dsc", lambda: on_disk(digits(PART)), {"n_clusters": 10} | SMALL),
    Case("published form", "pro-dsc", lambda: digits(PART), {"n_clusters": 10, "neighbour_views": 0, "keep": "last"} | SMALL),
    Case("lines", "pro-dsc", lines, {"n_clusters": 4} | SMALL),
    Case(
        "known labels", "pro-dsc", lambda: digits(PART), {"n_clusters": 10} | SMALL,
        {"known_labels": {0: 0, 1: 1, 2: 2, 10: 0, 11: 1, 12: 2}, "must_link": [(3, 13)], "cannot_link": [(3, 14)]},
    ),
    Case(
        "sinkhorn", "pro-dsc", lambda: digits(PART),
        {"n_clusters": 10, "normaliser": "sinkhorn", "label_affinity": "coefficients", "regulariser": "nuclear"} | SMALL,
    ),
    Case("neighbours", "pro-dsc", lambda: digits(PART), {"n_clusters": 10, "label_affinity": "neighbours"} | SMALL),
    Case("few landmarks", "pro-dsc", lambda: digits(PART), {"n_clusters": 10, "max_landmarks": 100} | SMALL),
    Case("sharp, few landmarks", "pro-dsc", lambda: digits(PART), {"n_clusters": 10, "max_landmarks": 100, "power": 8.0} | SMALL),
    Case("whitened", "pro-dsc", lambda: digits(PART), {"n_clusters": 10, "encoder": "none", "start": "whitened", "epochs": 30}),
    Case("conv", "pro-dsc", shared("orl", slice(0, 100)), {"n_clusters": 10} | ORL_RECIPE, data="orl"),
    Case("no anti-collapse", "pro-dsc", lambda: digits(PART), {"n_clusters": 10, "anti_collapse": "none", "on_collapse": "ignore"} | SMALL),
    Case("adjust", "pro-dsc", lambda: digits(PART), {"n_clusters": 10, "gamma": 5000.0, "on_collapse": "adjust"} | SMALL),
    # the other methods; senet, dsc-net and edesc start or weigh as their authors do since 0.2, and were made again
    Case("sedsc", "sedsc", lambda: digits(PART), {"n_clusters": 10, "on_collapse": "ignore"} | SMALL),
    Case("cpp", "cpp", lambda: digits(PART), {"n_clusters": 10} | SMALL | CPP_01),
    Case("cpp, one head", "cpp", lambda: digits(PART), {"n_clusters": 10, "heads": "shared"} | SMALL | CPP_01),
    Case("mlc", "mlc", lines, {"n_clusters": 4, "epochs": 50, "n_init": 3}),
    Case("k-means", "k-means", lambda: digits(PART), {"n_clusters": 10}),
    Case("spherical-k-means", "spherical-k-means", lambda: digits(PART), {"n_clusters": 10}),
    Case("spectral", "spectral", lambda: digits(PART), {"n_clusters": 10}),
    Case("ssc-omp", "ssc-omp", lambda: digits(PART), {"n_clusters": 10}),
    Case("ensc", "ensc", lambda: digits(PART), {"n_clusters": 10, "n_neighbors": 3}),
    Case("ssc", "ssc", lambda: digits(PART), {"n_clusters": 10}),
    Case("lsr", "lsr", lambda: digits(PART), {"n_clusters": 10}),
    Case("lrr", "lrr", lambda: digits(PART), {"n_clusters": 10}),
    Case("temi", "temi", lambda: digits(PART), {"n_clusters": 10, "n_heads": 3, "epochs": 5, "warmup_epochs": 1} | TEMI_01),
    Case("scan", "scan", lambda: digits(PART), {"n_clusters": 10, "n_heads": 3, "epochs": 5, "self_label_epochs": 1} | SCAN_01),
    Case("turtle", "turtle", lambda: digits(PART), {"n_clusters": 10, "steps": 30} | TURTLE_01),
    Case("senet", "senet", lambda: digits(PART), {"n_clusters": 10, "hidden_sizes": (32,), "n_components": 32, "steps": 20}),
    Case("dsc-net", "dsc-net", lambda: digits(PART), {"n_clusters": 10, "pretrain_epochs": 10, "epochs": 20}),
    Case("edesc", "edesc", lambda: digits(PART), {"n_clusters": 10, "hidden_sizes": (64,), "pretrain_epochs": 5, "steps": 10, "learning_rate": 1e-3}),
]  # fmt: skip
