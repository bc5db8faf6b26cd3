"""
Handwritten digits
==================

Cluster 600 images of digits without labels and look at what each cluster holds.
"""

# %%
# Each row of ``X`` is an image of 8 x 8 pixels. The true digits ``y`` only score the result.

from sklearn.datasets import load_digits

from prodsc import PRODSC, metrics

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]
model = PRODSC(n_clusters=10, random_state=0).fit(X)
for name, value in metrics.scores(y, model.labels_).items():
    print(f"{name} {value:.3f}")

# %%
# Eight rows of each cluster, the most confident first. Cluster 0 is the largest.

import matplotlib.pyplot as plt
import numpy as np

figure, axes = plt.subplots(10, 8, figsize=(5, 6.4), subplot_kw={"xticks": [], "yticks": []})
for cluster, row in enumerate(axes):
    members = np.flatnonzero(model.labels_ == cluster)
    members = members[np.argsort(-model.confidence_[members])]
    for ax in row:
        ax.axis("off")
    for ax, i in zip(row, members, strict=False):
        ax.imshow(X[i].reshape(8, 8), cmap="gray_r")
    row[0].set_title(f"cluster {cluster}", fontsize=7, loc="left", pad=2)
figure.tight_layout(pad=0.3)
