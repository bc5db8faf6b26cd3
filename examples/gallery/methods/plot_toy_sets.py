"""
Methods on small shapes
=======================

Groups by distance, by connection and by direction. No method finds all of them; each line of
methods has its own idea of a group.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import make_blobs, make_moons

import prodsc
from prodsc import metrics

rng = np.random.default_rng(0)
lines = np.concatenate([np.outer(rng.normal(size=100), [np.cos(a), np.sin(a)]) for a in (0.2, 1.2, 2.2)])
sets = {
    "blobs": make_blobs(300, centers=3, random_state=3),
    "moons": make_moons(300, noise=0.06, random_state=0),
    "lines through 0": (lines + 0.03 * rng.normal(size=lines.shape), np.repeat([0, 1, 2], 100)),
}
methods = {
    "k-means": {"scaling": "standard"},
    "spectral": {"scaling": "standard"},
    "ensc": {},
    "lsr": {},
}

figure, axes = plt.subplots(len(sets), len(methods), figsize=(8.5, 6.4))
for row, (title, (X, y)) in zip(axes, sets.items(), strict=True):
    for ax, (name, parameters) in zip(row, methods.items(), strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # sparse solvers say when a graph falls into pieces
            model = prodsc.make(name, n_clusters=len(set(y)), random_state=0, **parameters).fit(X)
        ax.scatter(*X.T, c=model.labels_, s=5, cmap="viridis")
        ax.set(xticks=[], yticks=[], title=f"{name}: {metrics.accuracy(y, model.labels_):.2f}")
    row[0].set_ylabel(title)
figure.tight_layout()
