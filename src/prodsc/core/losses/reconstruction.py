"""The reconstruction error, on which autoencoders are pre-trained."""

from torch import Tensor

from prodsc.types import Scalar


def reconstruction(X: Tensor, X_hat: Tensor) -> Scalar:
    """1/2 ||X - X_hat||_F^2 / n, summed over pixels, averaged over images.

    Parameters
    ----------
    X : Tensor of shape (n, ...)
        Rows or images.
    X_hat : Tensor of shape (n, ...)
        Their reconstruction.

    Returns
    -------
    Tensor, a scalar
    """
    return 0.5 * (X - X_hat).square().sum() / len(X)
