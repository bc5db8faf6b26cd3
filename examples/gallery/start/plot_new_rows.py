"""
Label new rows
==============

Fit on some rows, label others. A row is labelled independently of the rows beside it.
"""

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import prodsc
from prodsc import metrics

X, y = load_digits(return_X_y=True)
train, new, y_train, y_new = train_test_split(X, y, test_size=0.5, random_state=0)
model = prodsc.make("walk", n_clusters=10, random_state=0).fit(train)
labels = model.predict(new)
print(f"ACC of the fitted rows {metrics.accuracy(y_train, model.labels_):.3f}")
print(f"ACC of the new rows    {metrics.accuracy(y_new, labels):.3f}")

# %%
# Probabilities say how sure the labels are. Keep the rows above a threshold, and accuracy rises.

import matplotlib.pyplot as plt
import numpy as np

confidence = model.predict_proba(new).max(1)
order = np.argsort(-confidence)
right = metrics.matched(y_new, labels)[order]  # whether the cluster is that of the digit
share = np.arange(1, len(order) + 1) / len(order)

figure, ax = plt.subplots(figsize=(5.5, 3.2))
ax.plot(100 * share, 100 * np.cumsum(right) / np.arange(1, len(right) + 1))
ax.set(xlabel="rows kept, the most confident first (%)", ylabel="accuracy of these (%)")
figure.tight_layout()
