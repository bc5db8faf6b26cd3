"""L2, how well each point is written as a combination of the others."""

from prodsc.types import Rows, Scalar, Square


def self_expression(Z: Rows, C: Square) -> Scalar:
    """L2 = 1/2 ||Z' - Z'C||_F^2 / n with points as columns of Z'; in rows, the residual is Z - C'Z.

    Parameters
    ----------
    Z : Tensor of shape (n, d)
        Representation, one point per row.
    C : Tensor of shape (n, n)
        Coefficients; column j expresses point j.

    Returns
    -------
    Tensor, a scalar
    """
    return 0.5 * (Z - C.T @ Z).square().sum() / len(Z)


def walk_expression(Z: Rows, Z_near: Rows) -> Scalar:
    """L2 = 1/2 ||Z - Z_near||_F^2 / n: each point is expressed by the end of one walk from it.

    Parameters
    ----------
    Z : Tensor of shape (n, d)
        Representation, one point per row.
    Z_near : Tensor of shape (n, d)
        That of the ends.

    Returns
    -------
    Tensor, a scalar
    """
    return 0.5 * (Z - Z_near).square().sum() / len(Z)
