"""SENet's terms: a batch is expressed by a dictionary, with an elastic net on the coefficients."""

from torch import Tensor

from prodsc.types import Rows, Scalar


def dictionary_expression(X: Rows, C: Tensor, dictionary: Rows) -> Scalar:
    """1/2 ||X - CD||_F^2 / n: row i of C expresses row i of X by the rows of D."""
    return 0.5 * (X - C @ dictionary).square().sum() / len(X)


def elastic_net(C: Tensor, tau: float) -> Scalar:
    """sum_ij (tau |c_ij| + (1 - tau)/2 c_ij^2) / n."""
    return (tau * C.abs() + (1 - tau) / 2 * C.square()).sum() / len(C)
