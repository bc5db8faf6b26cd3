"""SENet's terms: a batch is expressed by a dictionary, with an elastic net on the coefficients."""

from torch import Tensor

from prodsc.types import OtherRows, Rows, Scalar


def dictionary_expression(X: Rows, C: Tensor, dictionary: OtherRows) -> Scalar:
    """1/2 ||X - CD||_F^2 / n: row i of C expresses row i of X by the rows of D.

    Parameters
    ----------
    X : Tensor of shape (n, d)
        Points to express.
    C : Tensor of shape (n, m)
        Coefficients; row i expresses row i of X.
    dictionary : Tensor of shape (m, d)
        D.

    Returns
    -------
    Tensor, a scalar
    """
    return 0.5 * (X - C @ dictionary).square().sum() / len(X)


def elastic_net(C: Tensor, tau: float) -> Scalar:
    """sum_ij (tau |c_ij| + (1 - tau)/2 c_ij^2) / n.

    Parameters
    ----------
    C : Tensor of shape (n, m)
        Coefficients.
    tau : float
        Weight of the l1 norm, from 0 to 1.

    Returns
    -------
    Tensor, a scalar
    """
    return (tau * C.abs() + (1 - tau) / 2 * C.square()).sum() / len(C)
