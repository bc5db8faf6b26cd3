"""
Subspaces in high dimension
===========================

Rows on five random planes of a space of 30 dimensions. Distances do not show the planes, and
k-means fails. Expressing each row by the others finds them.
"""

import matplotlib.pyplot as plt
import numpy as np

import prodsc
from prodsc import metrics

rng = np.random.default_rng(0)
k, each = 5, 60
X = np.concatenate([rng.normal(size=(each, 2)) @ rng.normal(size=(2, 30)) for _ in range(k)])
X += 0.05 * rng.normal(size=X.shape)
y = np.repeat(np.arange(k), each)

fits = {name: prodsc.make(name, n_clusters=k, random_state=0).fit(X) for name in ("k-means", "lsr", "ensc")}
for name, model in fits.items():
    print(f"{name:8} ACC {metrics.accuracy(y, model.labels_):.3f}")

# %%
# The absolute cosines of the rows, and the affinity that EnSC makes of them. Rows are sorted by
# plane: the affinity has a block for each.

unit = X / np.linalg.norm(X, axis=1, keepdims=True)
affinity = fits["ensc"].affinity(X)
affinity = np.asarray(affinity.todense() if hasattr(affinity, "todense") else affinity)
figure, axes = plt.subplots(1, 2, figsize=(7, 3.5))
for ax, (title, M) in zip(axes, {"|cosine|": abs(unit @ unit.T), "affinity of EnSC": affinity}.items(), strict=True):
    ax.imshow(M, cmap="magma", vmax=np.quantile(M, 0.98))
    ax.set(title=title, xticks=[], yticks=[])
figure.tight_layout()
