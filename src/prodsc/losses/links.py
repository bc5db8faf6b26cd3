"""What is known of a few pairs of rows, as a term."""

from torch import Tensor
from torch.nn.functional import normalize

from prodsc.types import Rows, Scalar, Square


def links(Y: Rows, C: Square, R: Tensor) -> Scalar:
    """Mean of 1 - |<e_i, e_j>| over pairs that belong together (R = 1), plus mean of |<e_i, e_j>| over pairs that do
    not (R = -1), where e_i is row i as the others express it, column i of Y'C, at unit length.

    A known row so speaks for all rows that express it. Pulling at the row itself would teach the network a few rows by
    heart, and the rest of the data would follow it as a classifier of these few. Hence no gradient through C, too.
    """
    known = R.any(1)
    E = normalize(C.detach()[:, known].T @ Y)
    near, R = (E @ E.T).abs(), R[known][:, known]
    together, apart = R > 0, R < 0
    pulled = ((1 - near) * together).sum() / together.sum().clamp_min(1)
    return pulled + (near * apart).sum() / apart.sum().clamp_min(1)
