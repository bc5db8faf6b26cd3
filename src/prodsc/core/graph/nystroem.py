"""Leading eigenvectors of the affinity among many rows, from their affinities with few landmarks.

With K the affinities of the rows with the landmarks, and W those among the landmarks, K W^-1 K' approximates the N x N
affinity, which is never made. Its normalised eigenvectors come from a matrix no larger than W. All rows contribute:
clusters of a sample of the rows alone differ from sample to sample.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from prodsc.core.graph.kernels import Kernel
from prodsc.types import Rows


def nystroem_directions(
    kernel: Kernel, rows: Rows, k: int, weak: float = 1e-2, rounding: float = 1e-6, min_degree: float = 1e-3
) -> Tensor:
    """The map from affinities with the landmarks to rows of the leading eigenvectors of D^-1/2 K W^-1 K' D^-1/2.

    Parameters
    ----------
    kernel : Kernel
        Affinities with m landmarks.
    rows : Tensor of shape (n, d)
        Rows whose affinity is approximated.
    k : int
        Number of eigenvectors.
    weak : float
        Eigenvectors of W with a smaller share of its largest eigenvalue are left out: they add noise. With many
        clusters at least 2k eigenvectors stay.
    rounding : float
        Share of the largest eigenvalue below which eigenvalues are rounding.
    min_degree : float
        Smallest degree of a row, as a share of the mean; a row far from all landmarks has less.

    Returns
    -------
    Tensor of shape (m, k)
        The product of the affinities of a row with it has the direction of its row of the eigenvectors.
    """
    values, vectors = torch.linalg.eigh(kernel.matrix().double())
    weakest = min(weak * values[-1], values[-min(2 * k + 1, len(values))])
    strong = values > max(weakest, rounding * values[-1])
    root = (vectors[:, strong] / values[strong].sqrt()).to(rows)  # W^-1/2, so that K W^-1 K' = FF' with F = K root

    def factors() -> Iterator[Tensor]:
        return (kernel.rows(chunk) @ root for chunk in chunks(rows))

    total = sum(F.double().sum(0) for F in factors())
    assert isinstance(total, Tensor)
    smallest = min_degree * float(total @ total) / len(rows)  # degrees are FF'1, so |F'1|^2 / n is their mean
    square = torch.zeros(len(total), len(total), dtype=total.dtype, device=total.device)
    for F in factors():
        degrees = (F @ total.to(F)).clamp_min(smallest)
        F = F / degrees.sqrt()[:, None]
        square += (F.T @ F).double()
    values, vectors = torch.linalg.eigh(square)
    leading = (vectors[:, -k:] / values[-k:].clamp_min(rounding * values[-1]).sqrt()).to(root)
    return torch.nn.functional.pad(root @ leading, (0, max(0, k - len(values))))  # there may be fewer than k


def chunks(Y: Rows, size: int = 1024) -> Iterator[Rows]:
    """Consecutive rows, `size` at a time: bounds memory at size x landmarks."""
    for start in range(0, len(Y), size):
        yield Y[start : start + size]
