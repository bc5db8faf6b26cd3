"""What a convolutional pre-feature is pre-trained on."""

from torch import Tensor

from prodsc.types import Scalar


def reconstruction(X: Tensor, X_hat: Tensor) -> Scalar:
    """1/2 ||X - X_hat||_F^2 / n, summed over pixels, averaged over images."""
    return 0.5 * (X - X_hat).square().sum() / len(X)
