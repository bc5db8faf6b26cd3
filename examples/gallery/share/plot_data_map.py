"""
A map with nested layers
========================

``adapters.data_map`` gives coordinates and layers of clusters, from fine to coarse, as datamapplot,
Embedding Atlas and others draw them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import prodsc
from prodsc import adapters

X, y = load_digits(return_X_y=True)
X = X[:700]
model = prodsc.make("walk", n_clusters=10, random_state=0).fit(X)
mapped = adapters.data_map(model, X)
print([len(names) for names in mapped.names], "clusters in the layers")

# %%
# The finest layer and the next one. ``datamapplot.create_plot(mapped.coordinates,
# mapped.label_layers[0])`` draws the same with placed names.

figure, axes = plt.subplots(1, 2, figsize=(9, 4.4))
for ax, labels, names in zip(axes, mapped.layers, mapped.names, strict=False):
    ax.scatter(*mapped.coordinates.T, c=labels, cmap="tab10", s=8)
    for cluster, name in enumerate(names):
        place = np.median(mapped.coordinates[labels == cluster], axis=0)
        ax.text(*place, name, ha="center", fontsize=7, bbox={"fc": "white", "alpha": 0.7, "lw": 0})
    ax.set(xticks=[], yticks=[], title=f"{len(names)} clusters")
figure.tight_layout()
