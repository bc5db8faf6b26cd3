"""The exact solution of the problem in Z alone, C fixed: reverse water-filling over the spectrum of M.

    min -1/2 logdet(I + alpha Z'Z) + gamma/2 ||Z - ZC||_F^2   s.t.   ||Z||_F^2 = N

gamma multiplies the undivided term, as in the paper: the library's gamma is n times this one.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from scipy.optimize import brentq
from torch import Tensor

from prodsc.errors import ParameterError


@dataclass(frozen=True)
class WaterFilling:
    """The optimum of the problem in Z.

    Parameters
    ----------
    nu : float
        The multiplier of ||Z||_F^2 = N; above -gamma lambda_min, so it can be negative.
    spectrum : tensor
        sigma_i^2, the min(d, N) eigenvalues of G = Z'Z, descending (for lambda_i ascending).
    rank : int
        How many of them are positive.
    """

    nu: float
    spectrum: Float[Tensor, " r"]
    rank: int


def water_filling(
    eigenvalues_of_M: Float[Tensor, " n"], alpha: float, gamma: float, d: int, total: float | None = None
) -> WaterFilling:
    """sigma_i^2 = max(0, 1/(nu + gamma lambda_i) - 1/alpha), nu such that they add up to `total` (default N).

    Over the min(d, N) smallest eigenvalues lambda_i of M; where the sum leaves some at zero, they are those of
    the largest lambda_i.

    Parameters
    ----------
    eigenvalues_of_M : Tensor of shape (n,)
        lambda_i, in any order.
    alpha : float
        d / (n eps).
    gamma : float
        Weight of the undivided term.
    d : int
        Dimension of the representation.
    total : float, optional
        Sum of the sigma_i^2, by default n.

    Returns
    -------
    WaterFilling

    Raises
    ------
    ParameterError
        If a number is outside its range.
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
    rtol = 4 * torch.finfo(torch.float64).eps  # the finest that brentq accepts
    top = low if surplus(low) >= 0 else brentq(surplus, low, high, xtol=1e-300, rtol=rtol)
    spectrum = fill(top)
    nu = 1 / (top + 1 / alpha) - gamma * float(lambdas[0])
    return WaterFilling(nu, spectrum, int((spectrum > 0).sum()))
