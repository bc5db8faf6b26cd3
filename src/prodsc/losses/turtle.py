"""TURTLE's inner problem: a linear classifier fitted to given labels for a few steps."""

import torch
from torch import Tensor

from prodsc.types import Rows

BETAS, TINY = (0.9, 0.999), 1e-8  # Adam's


@torch.no_grad()
def fitted_classifier(X: Rows, T: Rows, weight: Tensor, bias: Tensor, steps: int, learning_rate: float) -> Rows:
    """Logits XW + b after `steps` of Adam on -mean_i sum_k t_ik log softmax(XW + b)_ik, from the given W and b.

    The gradient is X'E and 1'E with E = (softmax(XW + b) - T)/n. Labels are constants here: no gradient leaves.
    """
    W = torch.cat([weight, bias[None]])
    first, second = torch.zeros_like(W), torch.zeros_like(W)
    for t in range(1, steps + 1):
        E = (torch.softmax(X @ W[:-1] + W[-1], dim=1) - T) / len(X)
        G = torch.cat([X.T @ E, E.sum(0, keepdim=True)])
        first.lerp_(G, 1 - BETAS[0])
        second.lerp_(G.square(), 1 - BETAS[1])
        slope = first / (1 - BETAS[0] ** t)
        W -= learning_rate * slope / ((second / (1 - BETAS[1] ** t)).sqrt() + TINY)
    return X @ W[:-1] + W[-1]
