"""The elastic net of many points at once, by an active set guided by the oracle region (EnSC).

    min over c, c_ii = 0:   tau ||c||_1 + (1 - tau)/2 ||c||^2 + gamma_i/2 ||x_i - X'c||^2

With delta = gamma_i (x_i - X'c), c is optimal exactly when <delta, x_j> - (1 - tau) c_j = tau sign(c_j) where c_j is
not zero and |<delta, x_j>| <= tau elsewhere. So a round solves the problem on a few atoms, then one matrix product over
all atoms either proves the point optimal or names the atoms that are missing.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from prodsc.types import Rows

FEWEST_NEW = 32  # atoms that may join a support in one round; half of the support when that is more
LOCAL_STEPS = 4  # within a round: more would polish a support that the next round changes anyway
GROUP_BYTES = 32 * 2**20  # of the gathered atoms and Gram matrices that are solved together
FEWEST_TOGETHER = 8
RIDGE = 1e-10  # of the largest curvature


def point_gammas(X: Rows, points: slice, gamma: float, tau: float) -> Tensor:
    """gamma_i = gamma tau / max_j |<x_j, x_i>|, j != i: with gamma > 1 no point has c = 0; 0 without peers."""
    most = _without_own((X[points] @ X.T).abs_(), points).amax(1)
    return torch.where(most > 0, gamma * tau / most, 0.0)


def elastic_net(
    X: Rows, points: slice, gammas: Tensor, tau: float, tol: float = 1e-6, max_iter: int = 100
) -> tuple[Tensor, Tensor]:
    """Coefficients, one row per point, and how far each is from the conditions above after at most max_iter rounds."""
    x = X[points]
    C = x.new_zeros(len(x), len(X))
    error = torch.full_like(gammas, torch.inf)
    rows = torch.arange(len(x), device=x.device)  # points still to solve
    delta = gammas[:, None] * x
    for _ in range(max_iter + 1):
        inner = _without_own(delta[rows] @ X.T, points, rows)  # <delta, x_j> of every atom
        error[rows] = violation(inner - (1 - tau) * C[rows], C[rows], tau).amax(1)
        wrong = error[rows] > tol
        rows, inner = rows[wrong], inner[wrong]
        if len(rows) == 0:
            break
        used = C[rows] != 0
        score = torch.where(used, torch.inf, inner.abs_())
        sizes = used.sum(1)
        sizes = torch.minimum((score > tau).sum(1), sizes + (sizes // 2).clamp_min(FEWEST_NEW))
        atoms = score.topk(int(sizes.max()), dim=1).indices  # the support first, then the most violated conditions
        for group, m in _groups(sizes, X.shape[1]):
            some, S = rows[group], atoms[group, :m]
            D, g = X[S], gammas[some]
            H = g[:, None, None] * (D @ D.mT)
            H.diagonal(dim1=1, dim2=2).add_(1 - tau)
            c = _improved(H, g[:, None] * _product(D, x[some]), C[some[:, None], S], tau, tol / 10)
            C[some[:, None], S] = c
            delta[some] = g[:, None] * (x[some] - (c[:, None] @ D)[:, 0])
    return C, error


def violation(gradient: Tensor, c: Tensor, tau: float) -> Tensor:
    """How far each coordinate is from its condition; gradient = <delta, x_j> - (1 - tau) c_j."""
    return torch.where(c != 0, (gradient - tau * c.sign()).abs(), (gradient.abs() - tau).clamp_min(0.0))


def _improved(H: Tensor, b: Tensor, c: Tensor, tau: float, tol: float) -> Tensor:
    """A few steps on min c'Hc/2 - b'c + tau ||c||_1, each problem of the batch on its own.

    Coordinate descent finds the signs, one linear solve finds the values that go with them. No step raises the
    objective, so a wrong guess of signs costs time and nothing else.
    """
    found, live = c.clone(), torch.arange(len(c), device=c.device)
    for _ in range(LOCAL_STEPS):
        gradient = b - _product(H, c)
        go = (violation(gradient, c, tau) > tol).any(1)
        if not go.any():
            break
        if not go.all():
            live, H, b, c, gradient = live[go], H[go], b[go], c[go], gradient[go]
        c = _swept(H, c, gradient, tau)
        target = _solved(H, b, c, tau)
        exact, kept = _searched(H, b, c, target, tau), torch.where(target * c > 0, target, 0.0)
        lower = _objective(H, b, kept, tau) < _objective(H, b, exact, tau)
        c = torch.where(lower[:, None], kept, exact)
        found[live] = c
    return found


def _swept(H: Tensor, c: Tensor, gradient: Tensor, tau: float) -> Tensor:
    """One pass of coordinate descent; `gradient` = b - Hc is used up."""
    c, curvature = c.clone(), H.diagonal(dim1=1, dim2=2)
    inverse = torch.where(curvature > 0, 1 / curvature, 0.0)  # an atom of zeros stays unused
    for j in range(H.shape[1]):
        old = c[:, j].clone()
        aim = gradient[:, j] + curvature[:, j] * old
        c[:, j] = (aim - aim.clamp(-tau, tau)) * inverse[:, j]
        gradient.addcmul_((old - c[:, j])[:, None], H[:, j])
    return c


def _solved(H: Tensor, b: Tensor, c: Tensor, tau: float) -> Tensor:
    """c + d on its support A, H_AA d = b_A - tau sign(c_A) - (Hc)_A: the lowest point while no sign changes.

    The ridge makes d long and downhill where H_AA is singular (more atoms than dimensions), and vanishes with d.
    """
    on = (c != 0).to(H)
    system = (H * on[:, :, None]).mul_(on[:, None, :])
    curvature = system.diagonal(dim1=1, dim2=2)
    curvature += RIDGE * curvature.amax(1, keepdim=True) + (1 - on)
    factor, failed = torch.linalg.cholesky_ex(system)
    d = torch.cholesky_solve((on * (b - tau * c.sign() - _product(H, c)))[..., None], factor)[..., 0]
    return torch.where((failed == 0)[:, None], c + d, c)


def _searched(H: Tensor, b: Tensor, c: Tensor, target: Tensor, tau: float) -> Tensor:
    """The lowest point between c and target; the slope grows by 2 tau |d_j| where coordinate j changes sign."""
    d = target - c
    crossings, order = torch.where(c * d < 0, -c / d, torch.inf).sort(dim=1)
    jumps = 2 * tau * d.abs().gather(1, order)
    start = (d * (_product(H, c) - b + tau * c.sign())).sum(1)
    curvature = (d * _product(H, d)).sum(1)
    passed = start[:, None] + jumps.cumsum(1) + crossings * curvature[:, None] < 0
    free = -(start + (jumps * passed).sum(1)) / curvature.clamp_min(torch.finfo(H.dtype).tiny)
    ends = torch.cat([crossings, torch.full_like(crossings[:, :1], torch.inf)], dim=1)
    step = torch.minimum(free, ends.gather(1, passed.sum(1, keepdim=True))[:, 0]).clamp(0.0, 1.0)[:, None]
    reached = torch.zeros_like(c, dtype=torch.bool).scatter_(1, order, crossings == step)
    return torch.where(reached, 0.0, c + step * d)


def _objective(H: Tensor, b: Tensor, c: Tensor, tau: float) -> Tensor:
    return (c * (_product(H, c) / 2 - b)).sum(1) + tau * c.abs().sum(1)


def _product(matrices: Tensor, vectors: Tensor) -> Tensor:
    return (matrices @ vectors[..., None])[..., 0]


def _without_own(scores: Tensor, points: slice, rows: Tensor | None = None) -> Tensor:
    """No point expresses itself: its own entry becomes 0, in place."""
    own = torch.arange(points.start, points.stop, device=scores.device)
    own = own if rows is None else own[rows]
    return scores.scatter_(1, own[:, None], 0.0)


def _groups(sizes: Tensor, d: int) -> Iterator[tuple[Tensor, int]]:
    """Problems of about the same size together, the largest first: their numbers in `sizes` and that largest size."""
    order = sizes.argsort(descending=True)
    while len(order):
        m = int(sizes[order[0]])
        n = max(FEWEST_TOGETHER, GROUP_BYTES // (8 * m * (d + 3 * m)))
        yield order[:n], m
        order = order[n:]
