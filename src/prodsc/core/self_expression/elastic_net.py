"""The elastic net of many points at once, by an active set guided by the oracle region (EnSC).

    min over c, c_ii = 0:   tau ||c||_1 + (1 - tau)/2 ||c||^2 + gamma_i/2 ||x_i - X'c||^2

With delta = gamma_i (x_i - X'c), c is optimal exactly when <delta, x_j> - (1 - tau) c_j = tau sign(c_j) where c_j is
not zero and |<delta, x_j>| <= tau elsewhere. So a round solves the problem on a few atoms, then one matrix product over
all atoms either proves the point optimal or names the atoms that are missing.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from prodsc.types import Rows, Square

FEWEST_NEW = 32  # atoms that may join a support in one round; half of the support when that is more
NEWTON_STEPS = 30  # within a round; a problem that is optimal on its support, or cannot go down, takes no more
GROUP_BYTES = 32 * 2**20  # of the gathered atoms and Gram matrices that are solved together
FEWEST_TOGETHER = 8
TOLERANCE = 1e-6  # distance from the conditions above at which a point is solved
ROUNDS = 100
ROUGH_TOLERANCE = 1e-3  # within reach of single precision
ROUGH_ROUNDS = 25  # it may still miss that; the rest is for double precision
MOST_IN_GRAM = 20_000  # points whose Gram matrix is kept: 1.6 GB
RIDGE = 1e-6  # of the largest curvature; less, and rounding spoils the long steps


def point_gammas(X: Rows, points: slice, gamma: float, tau: float) -> Tensor:
    """gamma_i = gamma tau / max_j |<x_j, x_i>|, j != i: with gamma > 1 no point has c = 0; 0 without peers."""
    own = torch.arange(points.start, points.stop, device=X.device)
    most = _without_own((X[points] @ X.T).abs_(), own).amax(1)
    return torch.where(most > 0, gamma * tau / most, 0.0)


class ElasticNets:
    """Blocks of points of one X. The rounds that look for supports are in single precision, by a Gram matrix that is
    made once; double precision has only the last digits to find."""

    def __init__(self, X: Rows, tau: float):
        self.X, self.tau, self.rough = X, tau, X.float()
        self.gram = self.rough @ self.rough.T if len(X) <= MOST_IN_GRAM else None

    def __call__(self, points: slice, gammas: Tensor) -> tuple[Tensor, Tensor]:
        """Coefficients, one row per point, and how far each is from the conditions above when the rounds are over."""
        C = self.rough.new_zeros(len(gammas), len(self.X))
        _solve(C, self.rough, points, gammas.float(), self.tau, ROUGH_TOLERANCE, ROUGH_ROUNDS, self.gram)
        C = C.to(self.X)
        return C, _solve(C, self.X, points, gammas, self.tau, TOLERANCE, ROUNDS)


def _solve(
    C: Tensor, X: Rows, points: slice, gammas: Tensor, tau: float, tol: float, rounds: int, gram: Square | None = None
) -> Tensor:
    """Improve C in place until no point is farther than tol from its conditions; how far they are. `gram` is XX'."""
    x, own = X[points], torch.arange(points.start, points.stop, device=X.device)
    error = torch.full_like(gammas, torch.inf)
    rows = torch.arange(len(x), device=x.device)  # points still to solve
    for _ in range(rounds + 1):
        delta = gammas[rows, None] * (x[rows] - C[rows] @ X)
        inner = _without_own(delta @ X.T, own[rows])  # <delta, x_j> of every atom
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
        for group, m in _groups(sizes, X.shape[1] if gram is None else 0):
            some, S = rows[group], atoms[group, :m]
            g = gammas[some]
            if gram is None:
                D = X[S]
                H, b = D @ D.mT, _product(D, x[some])
            else:
                H, b = _taken(gram, S, S), _taken(gram, own[some, None], S)[:, 0]
            H *= g[:, None, None]
            H.diagonal(dim1=1, dim2=2).add_(1 - tau)
            C[some[:, None], S] = _improved(H, g[:, None] * b, C[some[:, None], S], tau, tol / 10)
    return error


def _taken(M: Square, rows: Tensor, columns: Tensor) -> Tensor:
    """M at all pairs of rows[i] and columns[i], for every i; flat numbers are three times as fast as M[..., ...]."""
    numbers = rows[:, :, None] * M.shape[1] + columns[:, None, :]
    return M.view(-1).index_select(0, numbers.view(-1)).view(numbers.shape)


def violation(gradient: Tensor, c: Tensor, tau: float) -> Tensor:
    """How far each coordinate is from its condition; gradient = <delta, x_j> - (1 - tau) c_j."""
    return torch.where(c != 0, (gradient - tau * c.sign()).abs(), (gradient.abs() - tau).clamp_min(0.0))


def _improved(H: Tensor, b: Tensor, c: Tensor, tau: float, tol: float) -> Tensor:
    """Steps on min c'Hc/2 - b'c + tau ||c||_1, none of which raises it, each problem of the batch on its own.

    One pass of coordinate descent lets atoms in; Newton steps then find the values of those in, or drop them.
    """
    c, gradient = _swept(H, c, b - _product(H, c), tau)
    found, live = c.clone(), torch.arange(len(c), device=c.device)
    for _ in range(NEWTON_STEPS):
        d = _newton_direction(H, c, gradient, tau)
        Hd = _product(H, d)
        along, step = _line_search(c, d, gradient, Hd, tau)
        kept = torch.where((c + d) * c > 0, c + d, 0.0)  # the whole step at once, without what changes sign on it
        options = torch.stack([c, along, kept])
        gradients = torch.stack([gradient, gradient - step * Hd, b - _product(H, kept)])
        values = tau * options.abs().sum(2) - (options * (b + gradients)).sum(2) / 2
        best = values.argmin(0)
        each = torch.arange(len(c), device=c.device)
        c, gradient = options[best, each], gradients[best, each]
        found[live] = c
        go = (best > 0) & ((c != 0) & ((gradient - tau * c.sign()).abs() > tol)).any(1)
        if not go.any():
            break
        if not go.all():
            live, H, b, c, gradient = live[go], H[go], b[go], c[go], gradient[go]
    return found


def _swept(H: Tensor, c: Tensor, gradient: Tensor, tau: float) -> tuple[Tensor, Tensor]:
    """One pass of coordinate descent over c, and its gradient b - Hc."""
    c, gradient, curvature = c.clone(), gradient.clone(), H.diagonal(dim1=1, dim2=2)
    inverse = torch.where(curvature > 0, 1 / curvature, 0.0)  # an atom of zeros stays unused
    for j in range(H.shape[1]):
        old = c[:, j].clone()
        aim = gradient[:, j] + curvature[:, j] * old
        c[:, j] = (aim - aim.clamp(-tau, tau)) * inverse[:, j]
        gradient.addcmul_((old - c[:, j])[:, None], H[:, j])
    return c, gradient


def _newton_direction(H: Tensor, c: Tensor, gradient: Tensor, tau: float) -> Tensor:
    """d with H_AA d_A = gradient_A - tau sign(c_A) on the support A of c: to the lowest point while no sign changes.

    Where H_AA is singular (tau = 1 and more atoms than dimensions), the ridge makes d long and downhill; it vanishes
    with d, so it moves no optimum.
    """
    on = (c != 0).to(H)
    system = (H * on[:, :, None]).mul_(on[:, None, :])
    curvature = system.diagonal(dim1=1, dim2=2)
    curvature += (RIDGE * curvature.amax(1, keepdim=True) - (1 - tau)).clamp_min(0.0) + (1 - on)
    factor, failed = torch.linalg.cholesky_ex(system)
    d = torch.cholesky_solve((on * (gradient - tau * c.sign()))[..., None], factor)[..., 0]
    return torch.where((failed == 0)[:, None], d, 0.0)


def _line_search(c: Tensor, d: Tensor, gradient: Tensor, Hd: Tensor, tau: float) -> tuple[Tensor, Tensor]:
    """The lowest point from c to c + d, and its share of d: the slope grows by 2 tau |d_j| where c_j changes sign."""
    crossings, order = torch.where(c * d < 0, -c / d, torch.inf).sort(dim=1)
    jumps = 2 * tau * d.abs().gather(1, order)
    start = (d * (tau * c.sign() - gradient)).sum(1, keepdim=True)
    curvature = (d * Hd).sum(1, keepdim=True)
    passed = start + jumps.cumsum(1) + crossings * curvature < 0
    free = -(start + (jumps * passed).sum(1, keepdim=True)) / curvature.clamp_min(torch.finfo(c.dtype).tiny)
    ends = torch.cat([crossings, torch.full_like(start, torch.inf)], dim=1)
    step = torch.minimum(free, ends.gather(1, passed.sum(1, keepdim=True))).clamp(0.0, 1.0)
    reached = torch.zeros_like(c, dtype=torch.bool).scatter_(1, order, crossings == step)
    return torch.where(reached, 0.0, c + step * d), step


def _product(matrices: Tensor, vectors: Tensor) -> Tensor:
    return (matrices @ vectors[..., None])[..., 0]


def _without_own(scores: Tensor, own: Tensor) -> Tensor:
    """No point expresses itself: its own entry becomes 0, in place."""
    return scores.scatter_(1, own[:, None], 0.0)


def _groups(sizes: Tensor, d: int) -> Iterator[tuple[Tensor, int]]:
    """Problems of about the same size together, the largest first: their numbers in `sizes` and that largest size."""
    order = sizes.argsort(descending=True)
    while len(order):
        m = int(sizes[order[0]])
        n = max(FEWEST_TOGETHER, GROUP_BYTES // (8 * m * (d + 3 * m)))
        yield order[:n], m
        order = order[n:]
