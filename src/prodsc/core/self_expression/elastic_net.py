"""The elastic net of many points at once, by an active set guided by the oracle region (EnSC).

    min over c, c_ii = 0:   tau ||c||_1 + (1 - tau)/2 ||c||^2 + gamma_i/2 ||x_i - X'c||^2

With delta = gamma_i (x_i - X'c), c is optimal exactly when <delta, x_j> - (1 - tau) c_j = tau sign(c_j) where c_j is
not zero and |<delta, x_j>| <= tau elsewhere. So a round solves the problem on a few atoms, then one matrix product over
all atoms either proves the point optimal or gives the atoms that are missing.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from prodsc.types import Rows, Square


@dataclass(frozen=True)
class SolverOptions:
    """When the solver of the elastic net stops, and how much it does at a time."""

    tolerance: float = 1e-6  # distance from the conditions of optimality at which a point is solved
    max_rounds: int = 100
    rough_tolerance: float = 1e-3  # that of the rounds in single precision
    max_rough_rounds: int = 25  # which may miss their tolerance: the rest is for double precision
    min_new_atoms: int = 32  # that may join a support in one round; half of the support if that is more
    newton_steps: int = 30  # within a round, at most
    ridge: float = 1e-6  # share of the largest curvature; with less, rounding spoils long steps
    max_gram_points: int = 20_000  # whose Gram matrix is stored: 1.6 GB
    group_bytes: int = 32 * 2**20  # of the atoms and Gram matrices that are solved together
    min_group: int = 8  # problems that are solved together


SOLVER_OPTIONS = SolverOptions()


def point_gammas(X: Rows, points: slice, gamma: float, tau: float) -> Tensor:
    """gamma_i = gamma tau / max_j |<x_j, x_i>|, j != i: with gamma > 1 no point has c = 0; 0 if all products are 0.

    Parameters
    ----------
    X : Tensor of shape (n, d)
        Points as rows.
    points : slice
        Points whose gamma is computed.
    gamma : float
        Common factor.
    tau : float
        Weight of the l1 norm, from 0 to 1.

    Returns
    -------
    Tensor of shape (len(points),)
    """
    own = torch.arange(points.start, points.stop, device=X.device)
    most = _without_own((X[points] @ X.T).abs_(), own).amax(1)
    return torch.where(most > 0, gamma * tau / most, 0.0)


class ElasticNets:
    """Solves blocks of points of one X.

    The rounds that search for supports are in single precision, with a Gram matrix that is made once. Double precision
    then finds the last digits.

    Parameters
    ----------
    X : Tensor of shape (n, d)
        Points as rows, which are also the atoms.
    tau : float
        Weight of the l1 norm, from 0 to 1.
    options : SolverOptions
        When to stop, and how much to do at a time.
    """

    def __init__(self, X: Rows, tau: float, options: SolverOptions | None = None):
        self.X, self.tau, self.rough = X, tau, X.float()
        self.options = options = options or SOLVER_OPTIONS
        self.gram = self.rough @ self.rough.T if len(X) <= options.max_gram_points else None

    def __call__(self, points: slice, gammas: Tensor) -> tuple[Tensor, Tensor]:
        """Coefficients, one row per point, and the distance of each point from the conditions of optimality."""
        o = self.options
        C = self.rough.new_zeros(len(gammas), len(self.X))
        rough = gammas.float()
        _solve(C, self.rough, points, rough, self.tau, o.rough_tolerance, o.max_rough_rounds, o, self.gram)
        C = C.to(self.X)
        return C, _solve(C, self.X, points, gammas, self.tau, o.tolerance, o.max_rounds, o)


def _solve(
    C: Tensor,
    X: Rows,
    points: slice,
    gammas: Tensor,
    tau: float,
    tol: float,
    rounds: int,
    options: SolverOptions,
    gram: Square | None = None,
) -> Tensor:
    """Improve C in place until all points are within tol of their conditions; returns the distances. `gram` is XX'."""
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
        sizes = torch.minimum((score > tau).sum(1), sizes + (sizes // 2).clamp_min(options.min_new_atoms))
        atoms = score.topk(int(sizes.max()), dim=1).indices  # the support first, then the most violated conditions
        for group, m in _groups(sizes, X.shape[1] if gram is None else 0, options):
            some, S = rows[group], atoms[group, :m]
            g = gammas[some]
            if gram is None:
                D = X[S]
                H, b = D @ D.mT, _product(D, x[some])
            else:
                H, b = _taken(gram, S, S), _taken(gram, own[some, None], S)[:, 0]
            H *= g[:, None, None]
            H.diagonal(dim1=1, dim2=2).add_(1 - tau)
            C[some[:, None], S] = _improve(H, g[:, None] * b, C[some[:, None], S], tau, tol / 10, options)
    return error


def _taken(M: Square, rows: Tensor, columns: Tensor) -> Tensor:
    """M at all pairs of rows[i] and columns[i], for every i; flat indices are three times as fast as M[..., ...]."""
    numbers = rows[:, :, None] * M.shape[1] + columns[:, None, :]
    return M.view(-1).index_select(0, numbers.view(-1)).view(numbers.shape)


def violation(gradient: Tensor, c: Tensor, tau: float) -> Tensor:
    """Distance of each coordinate from its condition of optimality; gradient = <delta, x_j> - (1 - tau) c_j."""
    return torch.where(c != 0, (gradient - tau * c.sign()).abs(), (gradient.abs() - tau).clamp_min(0.0))


def _improve(H: Tensor, b: Tensor, c: Tensor, tau: float, tol: float, options: SolverOptions) -> Tensor:
    """Steps on min c'Hc/2 - b'c + tau ||c||_1, none of which raises it, for each problem of the batch.

    One pass of coordinate descent adds atoms to the support; Newton steps then find their values, or drop them.
    """
    c, gradient = _swept(H, c, b - _product(H, c), tau)
    improved, live = c.clone(), torch.arange(len(c), device=c.device)
    for _ in range(options.newton_steps):
        d = _newton_direction(H, c, gradient, tau, options.ridge)
        Hd = _product(H, d)
        along, step = _line_search(c, d, gradient, Hd, tau)
        kept = torch.where((c + d) * c > 0, c + d, 0.0)  # the whole step, without coordinates that change sign
        choices = torch.stack([c, along, kept])
        gradients = torch.stack([gradient, gradient - step * Hd, b - _product(H, kept)])
        values = tau * choices.abs().sum(2) - (choices * (b + gradients)).sum(2) / 2
        best = values.argmin(0)
        each = torch.arange(len(c), device=c.device)
        c, gradient = choices[best, each], gradients[best, each]
        improved[live] = c
        go = (best > 0) & ((c != 0) & ((gradient - tau * c.sign()).abs() > tol)).any(1)
        if not go.any():
            break
        if not go.all():
            live, H, b, c, gradient = live[go], H[go], b[go], c[go], gradient[go]
    return improved


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


def _newton_direction(H: Tensor, c: Tensor, gradient: Tensor, tau: float, ridge: float) -> Tensor:
    """d with H_AA d_A = gradient_A - tau sign(c_A) on the support A of c: to the lowest point while no sign changes.

    Where H_AA is singular (tau = 1 and more atoms than dimensions), the ridge makes d long and downhill; it vanishes
    with d, so it does not move the optimum.
    """
    on = (c != 0).to(H)
    system = (H * on[:, :, None]).mul_(on[:, None, :])
    curvature = system.diagonal(dim1=1, dim2=2)
    curvature += (ridge * curvature.amax(1, keepdim=True) - (1 - tau)).clamp_min(0.0) + (1 - on)
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


def _groups(sizes: Tensor, d: int, options: SolverOptions) -> Iterator[tuple[Tensor, int]]:
    """Problems of about the same size together, the largest first: their numbers in `sizes` and that largest size."""
    order = sizes.argsort(descending=True)
    while len(order):
        m = int(sizes[order[0]])
        n = max(options.min_group, options.group_bytes // (8 * m * (d + 3 * m)))
        yield order[:n], m
        order = order[n:]
