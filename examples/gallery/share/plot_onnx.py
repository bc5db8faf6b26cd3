"""
Labels without PyTorch
======================

A method that labels rows by a network can be written as an ONNX file. Whoever labels with it needs
onnxruntime and NumPy alone.
"""

import tempfile
from pathlib import Path

import numpy as np
import onnxruntime
from sklearn.datasets import load_digits

import prodsc
from prodsc import export

X = load_digits().data.astype(np.float32)
model = prodsc.make("walk", n_clusters=10, random_state=0).fit(X[:600])
path = export.onnx(Path(tempfile.mkdtemp()) / "digits.onnx", model)
print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")

# %%
# The scaling of the rows is part of the file. Labels are those of ``predict``.

session = onnxruntime.InferenceSession(path)
labels, probabilities = session.run(["labels", "probabilities"], {"rows": X})
print("same labels:", (labels == model.predict(X)).all())
print(f"largest difference of a probability: {abs(probabilities - model.predict_proba(X)).max():.1e}")

# %%
# Where the two confidences differ at all, it is by rounding.

import matplotlib.pyplot as plt

figure, ax = plt.subplots(figsize=(4, 3.6))
ax.scatter(model.predict_proba(X).max(1), probabilities.max(1), s=4)
ax.set(xlabel="confidence by PyTorch", ylabel="confidence by onnxruntime")
figure.tight_layout()
