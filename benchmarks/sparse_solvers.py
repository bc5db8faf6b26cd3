"""SSC-OMP against a Python loop over points, EnSC against scikit-learn's ElasticNet point by point: one run, MNIST.

    OMP_NUM_THREADS=1 python benchmarks/sparse_solvers.py [rows] [points of ours] [points of the peers]

10,000 rows, PCA to 500, unit length. Our side expresses the first 2,000 by all the others, in its blocks; the peers 100
of those, one at a time. What all rows would take is extrapolated from the time of a point. Processor seconds, as the
clock of a shared machine says nothing.
"""

import sys
import time
from collections.abc import Callable

import numpy as np
import torch
from sklearn.decomposition import PCA
from sklearn.linear_model import ElasticNet

from prodsc.core.self_expression.elastic_net import ElasticNets, point_gammas
from prodsc.core.self_expression.omp import omp
from prodsc.core.self_expression.sparse import blocks
from prodsc.random import sorted_subset
from prodsc.sources.door import load_dataset

K_MAX, TOLERANCE = 10, 1e-6
GAMMA, TAU = 50.0, 0.9
DEFAULTS = (10_000, 2_000, 100)


def rows_of_mnist(n: int) -> np.ndarray:
    """n random images, PCA to 500, unit length."""
    images = load_dataset("mnist").X
    chosen = sorted_subset(len(images), n)
    flat = images[chosen].reshape(n, -1).astype(np.float64) / 255
    X = PCA(500, random_state=0).fit_transform(flat)
    return X / np.linalg.norm(X, axis=1, keepdims=True)


def timed(work: Callable[[], np.ndarray], n: int) -> tuple[np.ndarray, float]:
    """What `work` gives, and milliseconds of processor time for each of n points."""
    began = time.process_time()
    found = work()
    return found, 1e3 * (time.process_time() - began) / n


def loop_omp(X: np.ndarray, i: int) -> np.ndarray:
    """The coefficients of one point, as the algorithm is written."""
    x, support = X[i], []
    residual, c = x, np.zeros(0)
    while len(support) < K_MAX and np.linalg.norm(residual) > TOLERANCE:
        scores = np.abs(X @ residual)
        scores[i] = 0
        support.append(int(scores.argmax()))
        atoms = X[support].T
        c = np.linalg.lstsq(atoms, x, rcond=None)[0]
        residual = x - atoms @ c
    found = np.zeros(len(X))
    found[support] = c
    return found


def peer_elastic_net(X: np.ndarray, i: int, gamma: float) -> np.ndarray:
    """scikit-learn's coefficients of one point at its own tolerance, 1e-4; a smaller one only takes it longer.

    The point's own column is put to zero for the time, which copies nothing.
    """
    own = X[i].copy()
    X[i] = 0  # X.T is in Fortran's order, as scikit-learn wants it
    model = ElasticNet(
        alpha=1 / (gamma * X.shape[1]), l1_ratio=TAU, fit_intercept=False, copy_X=False, max_iter=100_000
    )
    model.fit(X.T, own, check_input=False)
    X[i] = own
    return model.coef_


def objective(X: np.ndarray, i: int, c: np.ndarray, gamma: float) -> float:
    return TAU * np.abs(c).sum() + (1 - TAU) / 2 * c @ c + gamma / 2 * np.square(X[i] - c @ X).sum()


def main(n: int, n_ours: int, n_peer: int) -> None:
    X = rows_of_mnist(n)
    points, (_, d) = torch.from_numpy(X.copy()), X.shape
    sample = sorted_subset(n_ours, n_peer, 1)
    print(f"{n} x {d}; ours on {n_ours} points, peers on {n_peer} of them, milliseconds of processor time a point")

    def solved(solve: Callable[[slice], torch.Tensor], values: int) -> np.ndarray:
        kept = []
        for block in blocks(n_ours, values):
            C = solve(block).numpy()
            mine = sample[(sample >= block.start) & (sample < block.stop)] - block.start
            kept.append(C[mine])
        return np.concatenate(kept)

    ours, fast = timed(lambda: solved(lambda b: omp(points, b, K_MAX, TOLERANCE), n + K_MAX * (d + K_MAX)), n_ours)
    theirs, slow = timed(lambda: np.stack([loop_omp(X, i) for i in sample]), n_peer)
    same = np.mean([(a != 0).tolist() == (b != 0).tolist() for a, b in zip(ours, theirs, strict=True)])
    print(
        f"SSC-OMP (k_max {K_MAX}): ours {fast:.2f}, loop {slow:.2f}: {slow / fast:.1f} times; "
        f"same support for {same:.1%}"
    )
    print(f"  all {n}, extrapolated: ours {fast * n / 1e3:.0f} s, loop {slow * n / 1e3:.0f} s")

    worst, nets = [], ElasticNets(points, TAU)

    def net(block: slice) -> torch.Tensor:
        C, error = nets(block, point_gammas(points, block, GAMMA, TAU))
        worst.append(float(error.max()))
        return C

    gammas = [float(point_gammas(points, slice(i, i + 1), GAMMA, TAU)) for i in sample]
    ours, fast = timed(lambda: solved(net, n), n_ours)
    reached = np.array([objective(X, i, c, g) for i, c, g in zip(sample, ours, gammas, strict=True)])
    print(f"EnSC (gamma {GAMMA:g}, tau {TAU}): ours {fast:.2f}, farthest from the KKT conditions {max(worst):.1g}")
    theirs, slow = timed(
        lambda: np.stack([peer_elastic_net(X, i, g) for i, g in zip(sample, gammas, strict=True)]), n_peer
    )
    other = np.array([objective(X, i, c, g) for i, c, g in zip(sample, theirs, gammas, strict=True)])
    above = (other - reached) / reached
    print(
        f"  scikit-learn: {slow:.2f}: {slow / fast:.1f} times; its objective is above ours by "
        f"{above.min():.1e} to {above.max():.1e} of it"
    )
    print(f"  all {n}, extrapolated: ours {fast * n / 1e3:.0f} s, scikit-learn {slow * n / 1e3:.0f} s")


if __name__ == "__main__":
    main(*(int(word) for word in [*sys.argv[1:], *DEFAULTS[len(sys.argv) - 1 :]]))
