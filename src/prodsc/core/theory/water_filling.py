"""The exact solution of the problem in Z alone, C fixed: reverse water-filling over the spectrum of M.

    min -1/2 logdet(I + alpha Z'Z) + gamma/2 ||Z - ZC||_F^2   s.t.   ||Z||_F^2 = N

gamma multiplies the undivided term, as in the paper: the library's gamma is n times this one.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from jaxtyping import Float
from scipy.optimize import brentq
from torch import Tensor

from prodsc.core.linalg import smallest_eigenvectors
from prodsc.errors import ParameterError
from prodsc.types import Rows, Square


@dataclass(frozen=True)
class WaterFilling:
    nu: float  # the multiplier of ||Z||_F^2 = N; above -gamma lambda_min, so it can be negative
    spectrum: Float[Tensor, " r"]  # sigma_i^2, the min(d, N) eigenvalues of G = Z'Z, for lambda_i ascending: descending
    rank: int  # how many of them are positive


def water_filling(
    eigenvalues_of_M: Float[Tensor, " n"], alpha: float, gamma: float, d: int, total: float | None = None
) -> WaterFilling:
    """sigma_i^2 = max(0, 1/(nu + gamma lambda_i) - 1/alpha), nu such that they add up to `total` (default N).

    Over the min(d, N) smallest eigenvalues lambda_i of M; where the sum leaves some at zero, they are those of
    the largest lambda_i.
    """
    energy = float(len(eigenvalues_of_M) if total is None else total)
    if not (alpha > 0 and gamma >= 0 and d >= 1 and energy > 0):
        raise ParameterError(
            "Water-filling needs alpha > 0, gamma >= 0, d >= 1 and total > 0;"
            f" got alpha={alpha}, gamma={gamma}, d={d}, total={energy}."
        )
    lambdas = eigenvalues_of_M.detach().double().cpu().sort().values[:d]
    excess = gamma * (lambdas - lambdas[0])

    def fill(top: float) -> Tensor:
        """All sigma_i^2 given the largest: 1/(nu + gamma lambda_1) = top + 1/alpha, free of cancellation."""
        level = top + 1 / alpha
        return ((top - excess * level / alpha) / (1 + excess * level)).clamp(min=0)

    def surplus(top: float) -> float:
        return float(fill(top).sum()) - energy

    # The largest sigma^2 is at least the mean and at most the sum. It is the mean when all lambda_i are equal, and
    # rounding can then put the root just below it.
    low, high = energy / len(lambdas), energy
    rtol = 4 * torch.finfo(torch.float64).eps  # the finest brentq takes; the sum is then as exact
    top = low if surplus(low) >= 0 else brentq(surplus, low, high, xtol=1e-300, rtol=rtol)
    spectrum = fill(top)
    nu = 1 / (top + 1 / alpha) - gamma * float(lambdas[0])
    return WaterFilling(nu, spectrum, int((spectrum > 0).sum()))


@torch.no_grad()
def optimal_Z(C: Square, alpha: float, gamma: float, d: int) -> Rows:
    """U Diag(sigma), one minimiser as rows: u_i eigenvectors of M = (I - C)(I - C)', sigma_i by water-filling.

    The others are its rotations Z Q (n x d, Q orthogonal), and other eigenvectors where M repeats an eigenvalue.
    """
    R = torch.eye(len(C), dtype=C.dtype, device=C.device) - C
    lambdas, U = smallest_eigenvectors(R @ R.T, d)
    sigma = water_filling(lambdas, alpha, gamma, d, total=len(C)).spectrum.sqrt()
    return F.pad(U * sigma.to(U), (0, d - U.shape[1]))  # d > n leaves directions unused
