"""TURTLE's inner problem: a linear classifier fitted to given labels for a few steps."""

import torch
from torch import Tensor
from torch.nn.functional import linear

from prodsc.types import Rows

BETAS, TINY = (0.9, 0.999), 1e-8  # Adam's


@torch.no_grad()
def fitted_classifier(X: Rows, T: Rows, weight: Tensor, bias: Tensor, steps: int, learning_rate: float) -> Rows:
    """Logits XW' + b after `steps` of Adam on -mean_i sum_k t_ik log softmax(XW' + b)_ik, from the given W and b.

    The gradient is E'X and E'1 with E = (softmax(XW' + b) - T)/n. Labels are constants here: no gradient leaves.
    """
    fitted = [weight.clone(), bias.clone()]
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in fitted]
    for t in range(1, steps + 1):
        E = (torch.softmax(linear(X, *fitted), dim=1) - T) / len(X)
        for p, G, (first, second) in zip(fitted, (E.T @ X, E.sum(0)), moments, strict=True):
            first.lerp_(G, 1 - BETAS[0])
            second.lerp_(G.square(), 1 - BETAS[1])
            spread = (second / (1 - BETAS[1] ** t)).sqrt() + TINY
            p -= learning_rate * first / (1 - BETAS[0] ** t) / spread
    return linear(X, *fitted)
