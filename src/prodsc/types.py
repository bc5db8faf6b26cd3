"""Names for tensors and matrices. Points are rows: Z is n x d."""

from typing import TypeAlias

import scipy.sparse
from jaxtyping import Float
from torch import Tensor

Rows = Float[Tensor, "n d"]  # one point per row
RowChunk = Float[Tensor, "_ d"]  # some of the points
OtherRows = Float[Tensor, "m d"]  # another set of points with the same columns
Embedding = Float[Tensor, "n k"]  # the same points with other columns
Square = Float[Tensor, "n n"]
Affinity = Float[Tensor, "n n"]  # non-negative, symmetric
Scalar = Float[Tensor, ""]
SparseMatrix: TypeAlias = scipy.sparse.csr_array | scipy.sparse.csc_array
