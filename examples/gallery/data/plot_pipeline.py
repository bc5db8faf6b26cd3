"""
A scikit-learn pipeline
=======================

Estimators work at the end of a pipeline, and also in the middle: ``transform`` gives the learned
representation, and any other step may follow.
"""

from sklearn.cluster import HDBSCAN
from sklearn.datasets import load_breast_cancer
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from prodsc import PRODSC, metrics

X, y = load_breast_cancer(return_X_y=True)
pipeline = make_pipeline(StandardScaler(), PCA(12), PRODSC(2, scaling="none", random_state=0))
labels = pipeline.fit_predict(X)
print(f"ACC {metrics.accuracy(y, labels):.3f}")

# %%
# Two coordinates of the input and two of the representation. Training turns groups towards
# directions of their own.

import matplotlib.pyplot as plt

Z = pipeline.transform(X)
figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.4))
places = {"input": PCA(2).fit_transform(StandardScaler().fit_transform(X)), "Z": PCA(2).fit_transform(Z)}
for ax, (title, P) in zip(axes, places.items(), strict=True):
    ax.scatter(*P.T, c=labels, s=8, cmap="coolwarm")
    ax.set(title=f"{title}: principal directions", xticks=[], yticks=[])
figure.tight_layout()

# %%
# HDBSCAN on the representation finds the dense parts and calls the rest noise.

found = HDBSCAN(min_cluster_size=40, copy=True).fit_predict(Z)
print("clusters of HDBSCAN on Z:", sorted(set(found.tolist())))
