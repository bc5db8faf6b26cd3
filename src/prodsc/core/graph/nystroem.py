"""Eigenvectors of the affinity among many rows, told by a few landmarks.

The affinities K of the rows with the landmarks, and W among the landmarks, make K W^-1 K' of the N x N matrix that is
never made. Its normalised eigenvectors come from a matrix no larger than W, whatever N is, and every row has its say in
them: clusters of a sample of the rows alone differ from sample to sample.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from prodsc.core.graph.kernels import Kernel
from prodsc.types import Rows

WEAK = 1e-2  # of the largest eigenvalue of W: below it an eigenvector adds noise to K W^-1 K'
NONE = 1e-6  # of the same: rounding
LONELY = 1e-3  # of the mean degree: what K W^-1 K' makes of a row that is far from all landmarks may be below
CHUNK = 1024  # rows at a time: bounds memory at CHUNK x landmarks


def nystroem_directions(kernel: Kernel, rows: Rows, k: int) -> Tensor:
    """m x k: affinities of a row with the m landmarks, times this, point where its row of the k leading eigenvectors of
    D^-1/2 K W^-1 K' D^-1/2 points, over the given rows."""
    values, vectors = torch.linalg.eigh(kernel.matrix().double())
    weak = min(WEAK * values[-1], values[-min(2 * k + 1, len(values))])  # many clusters are many weak directions
    strong = values > max(weak, NONE * values[-1])
    root = (vectors[:, strong] / values[strong].sqrt()).to(rows)  # W^-1/2, so that K W^-1 K' = FF' with F = K root

    def factors() -> Iterator[Tensor]:
        return (kernel.rows(chunk) @ root for chunk in chunks(rows))

    total = sum(F.double().sum(0) for F in factors())
    assert isinstance(total, Tensor)
    lonely = LONELY * float(total @ total) / len(rows)  # degrees are FF'1, so |F'1|^2 / n is their mean
    square = torch.zeros(len(total), len(total), dtype=total.dtype, device=total.device)
    for F in factors():
        degrees = (F @ total.to(F)).clamp_min(lonely)
        F = F / degrees.sqrt()[:, None]
        square += (F.T @ F).double()
    values, vectors = torch.linalg.eigh(square)
    lead = (vectors[:, -k:] / values[-k:].clamp_min(NONE * values[-1]).sqrt()).to(root)
    return torch.nn.functional.pad(root @ lead, (0, max(0, k - len(values))))  # fewer are strong than were asked for


def chunks(Y: Rows, size: int = CHUNK) -> Iterator[Rows]:
    for start in range(0, len(Y), size):
        yield Y[start : start + size]
