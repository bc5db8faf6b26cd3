"""
Can the probabilities be believed?
==================================

Sort the rows by confidence and compare it with how often the labels are right. Probabilities are
calibrated without labels, so read them as an upper estimate.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

from prodsc import PRODSC, metrics

X, y = load_digits(return_X_y=True)
X, y = X[:800], y[:800]
model = PRODSC(n_clusters=10, random_state=0).fit(X)
confidence = model.predict_proba(X).max(1)
right = metrics.matched(y, model.labels_)
print(f"mean confidence {confidence.mean():.3f}, right {right.mean():.3f}")

# %%
# Ten bins with the same number of rows.

order = np.array_split(np.argsort(confidence), 10)
figure, ax = plt.subplots(figsize=(4.2, 4))
ax.plot([0, 1], [0, 1], color="grey", lw=0.8)
ax.plot([confidence[bin].mean() for bin in order], [right[bin].mean() for bin in order], "o-")
ax.set(xlabel="confidence", ylabel="share of right labels", xlim=(0, 1.02), ylim=(0, 1.02))
figure.tight_layout()
