"""
Save, load, describe
====================

A model is a folder with ``model.safetensors`` and ``model.json``. There is no pickle in it, so it
can be opened without trust in its sender.
"""

import tempfile
from pathlib import Path

from sklearn.datasets import load_wine

import prodsc
from prodsc import PRODSC, export

X, y = load_wine(return_X_y=True)
model = PRODSC(n_clusters=3, scaling="standard", random_state=0).fit(X)

folder = Path(tempfile.mkdtemp()) / "wine"
model.save(folder)
for path in sorted(folder.iterdir()):
    print(f"{path.name:20} {path.stat().st_size:>9,} bytes")

# %%
# Any method is loaded by one function. The labels are the same.

again = prodsc.load(folder)
print(type(again).__name__, "with the same labels:", (again.predict(X) == model.predict(X)).all())

# %%
# A model card says what the model is, how it was made, how sound it is, and what it cannot do.

card = export.card(folder / "CARD.md", model, X, title="wine", licence="CC BY 4.0")
print("\n".join(card.read_text().splitlines()[:16]))

# %%
# The singular values of the rows and of the learned representation, of all rows and of each class.

import matplotlib.pyplot as plt

export.figure("singular-values", model, X, folder / "spectrum.png", y)
picture, ax = plt.subplots(figsize=(7.2, 4))
ax.imshow(plt.imread(folder / "spectrum.png"))
ax.axis("off")
picture.tight_layout(pad=0)
