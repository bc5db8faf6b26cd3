"""What is known of a few pairs of rows, as a term."""

from torch import Tensor
from torch.nn.functional import normalize

from prodsc.types import Rows, Scalar, Square

KEPT = 100, 1000  # pairs together, pairs apart: as if so many more were known, and kept, so that few weigh little


def links(Y: Rows, C: Square, R: Tensor) -> Scalar:
    """Mean of 1 - |<e_i, e_j>| over pairs that belong together (R = 1), plus mean of |<e_i, e_j>| over pairs that do
    not (R = -1), where e_i is row i as the others express it, column i of Y'C, at unit length. Each mean counts KEPT
    pairs more, at 0: one row in the wrong place must not pull its whole neighbourhood along.

    A known row so speaks for all rows that express it. Pulling at the row itself would teach the network a few rows by
    heart, and the rest of the data would follow it as a classifier of these few. Hence no gradient through C, too.
    """
    known = R.any(1)
    E = normalize(C.detach()[:, known].T @ Y)
    near, R = (E @ E.T).abs(), R[known][:, known]
    together, apart = R > 0, R < 0  # every pair is there twice
    pulled = ((1 - near) * together).sum() / (together.sum() + 2 * KEPT[0])
    return pulled + (near * apart).sum() / (apart.sum() + 2 * KEPT[1])
