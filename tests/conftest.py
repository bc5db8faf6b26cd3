"""What tests share: the real data beside the project, small blobs, and a fast estimator."""

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from jaxtyping import install_import_hook

install_import_hook(["prodsc.core", "prodsc.nn"], "shape_checks.checked")  # false shapes fail

settings.register_profile("no deadline", deadline=None)  # a busy machine is slow, not wrong
settings.load_profile("no deadline")

SHARED_DATA = Path(__file__).parents[1].parent / "shared" / "data"
os.environ.setdefault("PRODSC_DATA", str(SHARED_DATA))  # real data sets by name, also in processes that tests start
SMALL = {"hidden_size": 32, "n_components": 16, "epochs": 20, "warmup_steps": 10, "n_init": 3, "device": "cpu"}
RIVAL_LIBRARIES = {  # method -> what the extra `rivals` installs for it
    **dict.fromkeys(("umap-k-means", "umap-gmm", "umap-hdbscan"), "umap"),
    "evoc": "evoc",
    "leiden": "graspologic_native",
}


@pytest.fixture
def shared_data():
    """Path of a named real data set, or skip."""

    def locate(name: str) -> Path:
        path = SHARED_DATA / name
        if not path.exists():
            pytest.skip(f"{name} is not in {SHARED_DATA}: real data are not part of the project")
        return path

    return locate


def union_of_subspaces(n_per_class=60, n_classes=3, dimension=2, ambient=20, noise=0.01, seed=0):
    """Points on independent random subspaces, and their classes."""
    rng = np.random.default_rng(seed)
    parts = [
        rng.standard_normal((n_per_class, dimension)) @ rng.standard_normal((dimension, ambient))
        for _ in range(n_classes)
    ]
    X = np.concatenate(parts) + noise * rng.standard_normal((n_per_class * n_classes, ambient))
    return X, np.repeat(np.arange(n_classes), n_per_class)


@pytest.fixture(scope="session")
def blobs():
    """Three clear groups, 150 x 12, and their classes."""
    rng = np.random.default_rng(0)
    centres = 4 * rng.standard_normal((3, 12))
    y = np.repeat(np.arange(3), [70, 50, 30])
    return centres[y] + rng.standard_normal((150, 12)), y
