"""The representation that attains the optimum of water-filling, for tests of the theory."""

import torch
import torch.nn.functional as F

from prodsc.core.linalg import smallest_eigenvectors
from prodsc.core.theory import water_filling


def optimal_Z(C: torch.Tensor, alpha: float, gamma: float, d: int) -> torch.Tensor:
    """U Diag(sigma), one minimiser as rows: u_i eigenvectors of M = (I - C)(I - C)', sigma_i by water-filling.

    The others are its rotations Z Q (n x d, Q orthogonal), and other eigenvectors where M repeats an eigenvalue.
    """
    R = torch.eye(len(C), dtype=C.dtype) - C
    lambdas, U = smallest_eigenvectors(R @ R.T, d)
    sigma = water_filling(lambdas, alpha, gamma, d, total=len(C)).spectrum.sqrt()
    return F.pad(U * sigma.to(U), (0, d - U.shape[1]))  # d > n leaves directions unused
