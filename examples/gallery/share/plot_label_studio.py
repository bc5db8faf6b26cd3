"""
Correct clusters by hand, and fit again
=======================================

Tasks for Label Studio carry the cluster and its confidence. What people answer comes back as known
labels of the next fit.
"""

import json
import tempfile
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from prodsc import PRODSC, adapters, metrics

X, y = load_digits(return_X_y=True)
X, y = X[:600], y[:600]
first = PRODSC(10, random_state=0).fit(X)
folder = Path(tempfile.mkdtemp())
texts = [f"image {i}" for i in range(len(X))]
adapters.label_studio(folder / "tasks.json", texts, first.labels_, first.confidence_)
tasks = json.loads((folder / "tasks.json").read_text())
print(json.dumps(tasks[0], indent=1)[:400])

# %%
# In place of people, answer the 30 tasks with the lowest confidence with the true digit, in the
# form of a Label Studio export.

asked = np.argsort(first.confidence_)[:30]
for i in asked:
    result = json.loads(json.dumps(tasks[i]["predictions"][0]["result"]))
    result[0]["value"]["choices"] = [f"digit {y[i]}"]
    tasks[i]["annotations"] = [{"result": result}]
(folder / "export.json").write_text(json.dumps(tasks))
known = adapters.read_label_studio(folder / "export.json")
second = PRODSC(10, random_state=0).fit(X, known_labels=known)
others = np.setdiff1d(np.arange(len(y)), asked)
scores = [metrics.accuracy(y[others], model.labels_[others]) for model in (first, second)]
print(f"ACC of the other rows: {scores[0]:.3f}, with 30 answers {scores[1]:.3f}")

# %%
# How sure the first fit was, and which rows were asked about.

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(6, 2.8))
bins = np.linspace(0, 1, 30)
ax.hist(first.confidence_[others], bins, label="not asked")
ax.hist(first.confidence_[asked], bins, label="asked")
ax.set(xlabel="confidence of the first fit", ylabel="rows")
ax.legend(frameon=False)
figure.tight_layout()
