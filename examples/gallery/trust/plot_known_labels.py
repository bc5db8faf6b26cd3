"""
A few known labels
==================

A fit needs no labels. If some are known, it uses them, and names the clusters by them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics.cluster import contingency_matrix

from prodsc import PRODSC, metrics

X, y = load_digits(return_X_y=True)
X, y = X[:500], y[:500]
known = np.concatenate([np.flatnonzero(y == digit)[:6] for digit in range(10)])  # six of each digit
others = np.setdiff1d(np.arange(len(y)), known)

fits = {
    "no labels": PRODSC(10, random_state=0).fit(X),
    "six of each": PRODSC(10, random_state=0).fit(X, known_labels={int(i): str(y[i]) for i in known}),
}
accuracy = {name: metrics.accuracy(y[others], model.labels_[others]) for name, model in fits.items()}
print({name: round(value, 3) for name, value in accuracy.items()})
print("clusters and their names:", fits["six of each"].known_clusters_)

# %%
# Which digits share a cluster, without and with the labels. Only rows whose label was not given.

figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.6))
for ax, (name, model) in zip(axes, fits.items(), strict=True):
    table = contingency_matrix(y[others], model.labels_[others])
    table = table[:, np.argsort(table.argmax(0))]  # clusters in the order of their most frequent digit
    ax.imshow(table, cmap="Blues")
    ax.set(title=f"{name}: ACC {accuracy[name]:.2f}", xlabel="cluster", ylabel="digit")
    ax.set(xticks=[], yticks=range(10))
figure.tight_layout()
