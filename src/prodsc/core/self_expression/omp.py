"""Orthogonal matching pursuit of many points at once: each step is one matrix product for a block of points."""

import torch
from torch import Tensor

from prodsc.types import Rows


def omp(X: Rows, points: slice, n_nonzero: int, tol: float, dependent: float = 1e-10) -> Tensor:
    """Coefficients, one row per point: r = x_i; j = argmax |<r, x_j>|, j != i; r = x_i - its projection on the support.

    A point stops after n_nonzero steps or when ||r|| <= tol ||x_i||. The support of each point is kept as Q T with
    orthonormal rows of Q and a triangular T, so a step costs O(d) per atom of the support.

    Parameters
    ----------
    X : Tensor of shape (n, d)
        Points as rows, which are also the atoms.
    points : slice
        Points to express.
    n_nonzero : int
        Largest number of coefficients of a point.
    tol : float
        Residual, relative to the point, at which it stops.
    dependent : float
        Share of the length of an atom outside the span of the support below which it is only rounding.

    Returns
    -------
    Tensor of shape (len(points), n)
    """
    x, own = X[points], torch.arange(len(X), device=X.device)[points]
    b, d = x.shape
    steps = min(n_nonzero, len(X) - 1, d)  # d independent atoms express every point
    Q, T = x.new_zeros(b, steps, d), torch.eye(steps, dtype=x.dtype, device=x.device).repeat(b, 1, 1)
    projections = x.new_zeros(b, steps)
    taken = own[:, None].repeat(1, steps + 1)  # the point itself, then its support
    residual, enough = x.clone(), tol * x.norm(dim=1)
    live = torch.ones(b, dtype=torch.bool, device=x.device)
    for t in range(steps):
        live = live & (residual.norm(dim=1) > enough)
        if not live.any():
            break
        scores = (residual @ X.T).abs_().scatter_(1, taken[:, : t + 1], -1.0)
        best, atom = scores.max(dim=1)
        q, inside = _orthogonalised(X[atom], Q[:, :t])
        length = q.norm(dim=1)
        live &= (best > 0) & (length > dependent * X[atom].norm(dim=1))
        Q[:, t] = torch.where(live[:, None], q / length[:, None], 0.0)
        T[:, :t, t] = torch.where(live[:, None], inside, 0.0)
        T[:, t, t] = torch.where(live, length, 1.0)
        taken[:, t + 1] = torch.where(live, atom, own)
        projections[:, t] = (Q[:, t] * residual).sum(1)
        residual -= projections[:, t, None] * Q[:, t]
    values = torch.linalg.solve_triangular(T, projections[..., None], upper=True)[..., 0]
    return x.new_zeros(b, len(X)).scatter_add_(1, taken[:, 1:], values)  # unused places hold the value 0


def _orthogonalised(atoms: Tensor, Q: Tensor) -> tuple[Tensor, Tensor]:
    """The part of each atom outside the span of its Q, and its coordinates inside; twice, because once loses digits."""
    first = (Q @ atoms[..., None])[..., 0]
    outside = atoms - (first[:, None] @ Q)[:, 0]
    second = (Q @ outside[..., None])[..., 0]
    return outside - (second[:, None] @ Q)[:, 0], first + second
