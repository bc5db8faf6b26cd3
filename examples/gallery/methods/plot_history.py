"""
Watch a fit
===========

Every step of training is recorded, and scikit-learn's callbacks see fits, phases and steps as
tasks. A callback that returns True ends a phase.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import prodsc

X, y = load_digits(return_X_y=True)
model = prodsc.make("walk", n_clusters=10, random_state=0).fit(X[:600])
history = model.history_
print({name: len(column) for name, column in history.items()})

# %%
# The network of ``walk`` first learns the labels, then raises the information they keep.

figure, ax = plt.subplots(figsize=(6.5, 3))
for phase in dict.fromkeys(history["phase"].tolist()):
    steps = np.flatnonzero(history["phase"] == phase)
    ax.plot(steps, history["total"][steps], label=phase)
ax.set(xlabel="step", ylabel="loss")
ax.legend(frameon=False)
figure.tight_layout()
