"""
The theorem behind it: water filling
====================================

For fixed coefficients the optimal spectrum of the representation is known exactly. Below the bound
on gamma every direction keeps some energy. Beyond it the worst directions vanish first.
"""

import matplotlib.pyplot as plt
import torch

from prodsc import theory

d, n, eps = 64, 256, 0.1
alpha = d / (n * eps)
eigenvalues = torch.linspace(0.02, 3.6, n, dtype=torch.float64)  # of M = (I - C)(I - C)'
bound = theory.gamma_bound(alpha, n, d, float(eigenvalues[-1]))
print(f"bound on gamma: {bound:.3f}")

figure, ax = plt.subplots(figsize=(6.5, 3.4))
for factor in (0.3, 0.9, 3, 10):
    optimum = theory.water_filling(eigenvalues, alpha, factor * bound, d)
    ax.plot(optimum.spectrum, label=f"{factor:g} x bound: {optimum.rank} of {d} directions")
ax.set(xlabel="direction, ordered by the eigenvalue of M", ylabel="squared singular value of Z")
ax.legend(frameon=False, fontsize=8)
figure.tight_layout()
