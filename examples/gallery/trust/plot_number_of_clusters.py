"""
How many clusters?
==================

``estimate_k`` clusters two parts of the rows separately and asks on which number of clusters they
agree, beyond what data without clusters would give.
"""

import matplotlib.pyplot as plt
import numpy as np

from prodsc import estimate_k

rng = np.random.default_rng(0)
centres = 3 * rng.normal(size=(7, 15))
groups = centres[rng.integers(7, size=700)] + rng.normal(size=(700, 15))
one = rng.normal(size=(700, 15))

figure, axes = plt.subplots(1, 2, figsize=(8, 3), sharey=True)
for ax, (title, X) in zip(axes, {"seven groups": groups, "one Gaussian": one}.items(), strict=True):
    curve = estimate_k(X)
    print(f"{title}: {curve.summary()}")
    ax.plot(curve.candidates, curve.scores, ".-", label="score")
    ax.set(title=f"{title}: {'k = ' + str(curve.k) if curve.clear else 'no clear k'}", xlabel="k")
    ax.axhline(0, color="grey", lw=0.5)
axes[0].set_ylabel("bits confirmed - 3 x not confirmed")
figure.tight_layout()

# %%
# ``PRODSC(n_clusters="auto")`` does the same before it fits, and raises an error if no number is
# clear. The estimate counts groups that stand apart in the input, which need not be your classes.
