"""The inner problem of TURTLE: a linear classifier fitted to given labels for a few steps."""

import torch
from torch import Tensor
from torch.nn.functional import linear

from prodsc.types import Embedding, Rows


@torch.no_grad()
def fitted_classifier(
    X: Rows, T: Embedding, weight: Tensor, bias: Tensor, steps: int, learning_rate: float
) -> Embedding:
    """Logits XW' + b after `steps` of Adam on -mean_i sum_k t_ik log softmax(XW' + b)_ik, from the given W and b.

    The gradient is E'X and E'1 with E = (softmax(XW' + b) - T)/n. Labels are constants here: there is no gradient.

    Parameters
    ----------
    X : Tensor of shape (n, d)
        Features.
    T : Tensor of shape (n, k)
        Probabilities of the labels.
    weight : Tensor of shape (k, d)
        W at the start.
    bias : Tensor of shape (k,)
        b at the start.
    steps : int
        Steps of Adam.
    learning_rate : float
        Learning rate of Adam.

    Returns
    -------
    Tensor of shape (n, k)
    """
    beta1, beta2, eps = 0.9, 0.999, 1e-8  # the defaults of Adam
    fitted = [weight.clone(), bias.clone()]
    moments = [(torch.zeros_like(p), torch.zeros_like(p)) for p in fitted]
    for t in range(1, steps + 1):
        E = (torch.softmax(linear(X, *fitted), dim=1) - T) / len(X)
        for p, G, (first, second) in zip(fitted, (E.T @ X, E.sum(0)), moments, strict=True):
            first.lerp_(G, 1 - beta1)
            second.lerp_(G.square(), 1 - beta2)
            spread = (second / (1 - beta2**t)).sqrt() + eps
            p -= learning_rate * first / (1 - beta1**t) / spread
    return linear(X, *fitted)
