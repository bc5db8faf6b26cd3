"""
Rows that belong to no cluster
==============================

Every row gets a cluster. ``outlier_score`` tells rows that resemble none of them.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from prodsc import PRODSC

X, y = load_digits(return_X_y=True)
known = y != 9  # the model never sees a nine
fitted, left_out = X[known][:600], X[~known]
held_back = X[known][600:900]
model = PRODSC(n_clusters=9, random_state=0).fit(fitted)

scores = {
    "fitted rows": model.outlier_score(fitted, raw=True),
    "new rows of known digits": model.outlier_score(held_back, raw=True),
    "nines, never seen": model.outlier_score(left_out, raw=True),
}
both = np.concatenate([scores["new rows of known digits"], scores["nines, never seen"]])
strange = np.repeat([0, 1], [len(held_back), len(left_out)])
print(f"AUROC of nines against new rows of known digits: {roc_auc_score(strange, both):.3f}")

# %%
# The residual of self-expression: how badly the training rows express a row.

figure, ax = plt.subplots(figsize=(6.5, 3))
bins = np.linspace(both.min(), both.max(), 40)
for name, values in scores.items():
    ax.hist(values, bins, density=True, histtype="step", lw=1.5, label=name)
ax.set(xlabel="residual", yticks=[])
ax.legend(frameon=False, fontsize=8)
figure.tight_layout()
