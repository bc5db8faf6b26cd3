"""
A table with columns of different units
=======================================

Columns such as alcohol in percent and proline in mg/l need ``scaling="standard"``.
"""

import matplotlib.pyplot as plt
from sklearn.datasets import load_wine

from prodsc import PRODSC, metrics

wine = load_wine(as_frame=True)
for scaling in ("unit", "standard"):
    model = PRODSC(n_clusters=3, scaling=scaling, random_state=0).fit(wine.data)
    print(f"scaling={scaling!r:10} ACC {metrics.accuracy(wine.target, model.labels_):.3f}")

# %%
# The names of the columns stay with the model, and describe the clusters.

print(list(model.feature_names_in_)[:4])
standardised = (wine.data - wine.data.mean()) / wine.data.std()
means = standardised.groupby(model.labels_).mean()

figure, ax = plt.subplots(figsize=(6.5, 2.8))
picture = ax.imshow(means, cmap="RdBu_r", vmin=-1.5, vmax=1.5, aspect="auto")
ax.set_xticks(range(means.shape[1]), means.columns, rotation=60, ha="right", fontsize=7)
ax.set_yticks(range(3), [f"cluster {c}" for c in range(3)])
figure.colorbar(picture, label="mean, in standard deviations")
figure.tight_layout()
