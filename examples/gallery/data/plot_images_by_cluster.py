"""
Images in one folder per cluster
================================

After a fit the images can be sorted into folders, to look at them or to hand them on.
"""

import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

import prodsc
from prodsc import export

images = (load_digits().images[:400] * 15.9).astype(np.uint8)
X = images.reshape(len(images), -1)
model = prodsc.make("walk", n_clusters=10, random_state=0).fit(X)

target = Path(tempfile.mkdtemp()) / "by-cluster"
source = target.parent / "digits.npy"
np.save(source, images)
export.folders(target, source, model.labels_, model.predict_proba(X).max(1))
for folder in sorted(path for path in target.iterdir() if path.is_dir()):
    print(folder.name, len(list(folder.iterdir())), "images")

# %%
# The mean image of each cluster.

import matplotlib.pyplot as plt

figure, axes = plt.subplots(1, 10, figsize=(9, 1.3))
for cluster, ax in enumerate(axes):
    ax.imshow(images[model.labels_ == cluster].mean(0), cmap="gray_r")
    ax.set_title(cluster, fontsize=8)
    ax.axis("off")
figure.tight_layout(pad=0.3)
