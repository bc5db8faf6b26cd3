"""The term for known pairs of rows."""

from torch import Tensor
from torch.nn.functional import normalize

from prodsc.types import Rows, Scalar, Square


def links(Y: Rows, C: Square, R: Tensor, prior_pairs: tuple[int, int] = (100, 1000)) -> Scalar:
    """Mean of 1 - |<e_i, e_j>| over pairs that belong together, plus mean of |<e_i, e_j>| over pairs that do not.

    e_i is row i as the other rows express it: column i of Y'C, scaled to length 1. So the gradient acts on all rows
    that express a constrained row. A gradient on the row itself would make the network memorise a few rows and become
    a classifier of these few; for the same reason there is no gradient through C.

    Parameters
    ----------
    Y : Tensor of shape (n, d)
        Unit rows.
    C : Tensor of shape (n, n)
        Coefficients; column j expresses point j.
    R : Tensor of shape (n, n)
        1 for two rows that belong together, -1 for two that do not, 0 where nothing is known.
    prior_pairs : tuple of int
        Pairs with value 0 that each mean counts in addition, together and apart: with few known pairs, one row in the
        wrong place must not move its whole neighbourhood.

    Returns
    -------
    Tensor, a scalar
    """
    known = R.any(1)
    E = normalize(C.detach()[:, known].T @ Y)
    near, R = (E @ E.T).abs(), R[known][:, known]
    together, apart = R > 0, R < 0  # each pair occurs twice
    pulled = ((1 - near) * together).sum() / (together.sum() + 2 * prior_pairs[0])
    return pulled + (near * apart).sum() / (apart.sum() + 2 * prior_pairs[1])
