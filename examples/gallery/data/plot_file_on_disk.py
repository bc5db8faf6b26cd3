"""
A file larger than memory
=========================

Give the path instead of the array. Rows are read in batches, so that the file may be larger than
memory. This one is small; the calls are the same.
"""

import tempfile
from pathlib import Path

import numpy as np

import prodsc

rng = np.random.default_rng(0)
k, n = 8, 20_000
centres = rng.normal(size=(k, 32))
y = rng.integers(k, size=n)
folder = Path(tempfile.mkdtemp())
np.save(folder / "rows.npy", (centres[y] + 0.7 * rng.normal(size=(n, 32))).astype(np.float32))
print(f"{(folder / 'rows.npy').stat().st_size / 1e6:.1f} MB")

# %%
# Fit on a random part and label everything, one block after the other.

some = np.sort(rng.choice(n, 2_000, replace=False))
rows = np.load(folder / "rows.npy", mmap_mode="r")
model = prodsc.make("walk", n_clusters=k, random_state=0).fit(rows[some])
sizes = np.zeros(k, int)
found = []
for labels, *_ in model.labelled(folder / "rows.npy"):  # then their confidence
    sizes += np.bincount(labels, minlength=k)
    found.append(labels)
print("sizes:", sizes, f" ACC {prodsc.metrics.accuracy(y, np.concatenate(found)):.3f}")

# %%
# The share of the clusters in the part and in the whole file.

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 2.8))
ax.bar(np.arange(k) - 0.2, np.bincount(model.labels_, minlength=k) / len(some), 0.4, label="2,000 fitted rows")
ax.bar(np.arange(k) + 0.2, sizes / n, 0.4, label="20,000 labelled rows")
ax.set(xlabel="cluster", ylabel="share of the rows")
ax.legend(frameon=False)
figure.tight_layout()
