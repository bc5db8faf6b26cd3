"""The coding rate of parts of the data (MCR², MLC, CPP), and the coding length of clustered data."""

import torch
from torch import Tensor

from prodsc.core.losses.coding_rate import coding_rate, scale
from prodsc.types import Rows, Scalar, Square


def coding_rate_parts(Z: Rows, Pi: Square, eps: float) -> Scalar:
    """R_c = sum_j t_j/(2n) logdet(I + d/(t_j eps) Z' diag(Pi_j) Z), with Pi_j the column j of Pi and t_j its sum.

    Parameters
    ----------
    Z : Tensor of shape (n, d)
        Representation, one point per row.
    Pi : Tensor of shape (n, n)
        Memberships; column j is one part.
    eps : float
        Precision of the code.

    Returns
    -------
    Tensor, a scalar
    """
    d = Z.shape[1]
    rows, columns = torch.tril_indices(d, d, device=Z.device)
    t = Pi.sum(0)
    # Lower triangles only: half of the n^2 d^2 products that all matrices together cost.
    M = (d / (eps * t))[:, None] * (Pi.T @ (Z[:, rows] * Z[:, columns]))
    with torch.no_grad():
        shifted = M.new_zeros(len(M), d, d)
        shifted[:, rows, columns] = M
        shifted.diagonal(dim1=1, dim2=2).add_(1.0)
        L = torch.linalg.cholesky(shifted)
        slope = torch.cholesky_inverse(L)[:, rows, columns] * torch.where(rows == columns, 1.0, 2.0).to(M)
        level = 2 * L.diagonal(dim1=1, dim2=2).log().sum(1) - (slope * M).sum(1)
    logdet = level + (slope * M).sum(1)  # its tangent: same value and gradient, no backward pass of Cholesky
    return (t * logdet).sum() / (2 * len(Z))


def coding_length(Z: Rows, labels: Tensor, eps: float) -> Scalar:
    """sum_j (m_j + d)/2 logdet(I + d/(eps m_j) Z_j'Z_j) - m_j log(m_j/m): nats that code m rows by cluster.

    Parameters
    ----------
    Z : Tensor of shape (n, d)
        Representation, one point per row.
    labels : Tensor of shape (n,)
        Cluster of each point.
    eps : float
        Precision of the code.

    Returns
    -------
    Tensor, a scalar
    """
    m, d = Z.shape
    total = Z.new_zeros(())
    for j in labels.unique():
        part = Z[labels == j]
        m_j = len(part)
        total = total - (m_j + d) * coding_rate(part, scale(m_j, d, eps)) + m_j * -torch.log(Z.new_tensor(m_j / m))
    return total
