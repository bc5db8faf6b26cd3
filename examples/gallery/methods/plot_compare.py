"""
Compare methods fairly
======================

``compare`` runs each method in a process of its own, over seeds, and writes one table. A run that
fails is shown and left out of the mean.
"""

import tempfile

from sklearn.datasets import load_digits

from prodsc import compare

X, y = load_digits(return_X_y=True)
table = compare(X[:500], y[:500], ["k-means", "spectral", "walk"], seeds=2, out=tempfile.mkdtemp())
print(table.markdown())

# %%
# The accuracy of each method with the standard deviation over seeds.

import matplotlib.pyplot as plt

columns = table.header()
column = columns.index("ACC")
names = [row[0] for row in table.rows()]
means = [float(row[column].split()[0]) for row in table.rows()]
figure, ax = plt.subplots(figsize=(5.5, 2.4))
ax.barh(names, means)
ax.set(xlabel="ACC (%)", xlim=(0, 100))
figure.tight_layout()
