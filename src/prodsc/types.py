"""Names for the tensors that travel through the package. Code works with rows: Z is n x d."""

from jaxtyping import Float
from torch import Tensor

Rows = Float[Tensor, "n d"]  # one point a row
Square = Float[Tensor, "n n"]
Affinity = Float[Tensor, "n n"]  # non-negative, symmetric
Scalar = Float[Tensor, ""]
