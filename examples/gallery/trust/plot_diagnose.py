"""
A fit that collapses, and one that does not
===========================================

If self-expression weighs too much, all rows move into few directions. Theorem 2 of the paper says
how large its weight ``gamma`` may be. ``diagnose`` measures how far a fit is from that.
"""

import warnings

import matplotlib.pyplot as plt
from sklearn.datasets import load_digits

from prodsc import PRODSC, diagnose

X, _ = load_digits(return_X_y=True)
X = X[:400]
healthy = PRODSC(10, random_state=0).fit(X)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the fit warns, as it should
    too_much = PRODSC(10, gamma=100 * healthy.gamma_, random_state=0).fit(X)

for name, model in {"default gamma": healthy, "100 times as large": too_much}.items():
    found = diagnose(model, X)
    print(f"{name}:", *found.sentences(), sep="\n  ")

# %%
# The spectrum of the representation. Few large values and a steep fall mean few directions.

figure, ax = plt.subplots(figsize=(6, 3.2))
for name, model in {"default gamma": healthy, "100 times as large": too_much}.items():
    ax.semilogy(diagnose(model, X).observed[:64].clip(1e-4), label=name)
ax.set(xlabel="direction", ylabel="squared singular value of Z")
ax.legend(frameon=False)
figure.tight_layout()
