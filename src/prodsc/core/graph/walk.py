"""A random walk on the graph of nearest neighbours: its weights, its eigenvectors, and draws from it."""

from dataclasses import dataclass

import numpy as np
import scipy.sparse

from prodsc.random import generator


@dataclass(frozen=True)
class Walk:
    """A symmetric graph of n rows and the random walk on it."""

    weights: scipy.sparse.csr_array  # n x n
    degrees: np.ndarray  # sums of its rows
    step: scipy.sparse.csr_array  # probabilities of one step: rows of the weights divided by their sum

    @property
    def n_rows(self) -> int:
        return len(self.degrees)


def make_walk(neighbours: np.ndarray, distances: np.ndarray) -> Walk:
    """The walk on UMAP's fuzzy graph.

    The weight of a neighbour j of row i is exp(-(d_ij - d_i1) / s_i), with s_i such that the weights of the row
    add up to log2(m + 1). Both directions are united as probabilities: w + w' - w w'.

    Parameters
    ----------
    neighbours : ndarray of shape (n, m)
        Numbers of the nearest rows, the nearest first.
    distances : ndarray of shape (n, m)
        How far they are.

    Returns
    -------
    Walk
    """
    n, m = neighbours.shape
    beyond = (distances - distances[:, :1]).astype(np.float64)
    # A row whose neighbours are all equally far would get s = 0; UMAP, too, bounds it by the mean distance.
    widths = np.maximum(_widths(beyond, np.log2(m + 1)), max(1e-3 * float(distances.mean()), 1e-12))
    directed = np.exp(-beyond / widths[:, None])
    W = scipy.sparse.csr_array((directed.ravel(), (np.repeat(np.arange(n), m), neighbours.ravel())), (n, n))
    W = scipy.sparse.csr_array(W + W.T - W * W.T)
    degrees = np.asarray(W.sum(axis=1)).ravel()
    step = scipy.sparse.csr_array(scipy.sparse.diags_array(1 / degrees) @ W).astype(np.float32)
    return Walk(W, degrees, step)


def _widths(beyond: np.ndarray, total: float) -> np.ndarray:
    """The s of each row for which exp(-beyond / s) adds up to `total`, by bisection of all rows at once."""
    low, high = np.zeros(len(beyond)), np.full(len(beyond), np.inf)
    width = np.ones(len(beyond))
    for _ in range(40):  # single precision needs 24 halvings, and some doublings come before them
        too_wide = np.exp(-beyond / width[:, None]).sum(1) > total
        high, low = np.where(too_wide, width, high), np.where(too_wide, low, width)
        width = np.where(np.isinf(high), 2 * width, (low + high) / 2)
    return width


def walk_eigenvectors(walk: Walk, n_vectors: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Leading eigenvectors of D^-1/2 W D^-1/2, by subspace iteration with Chebyshev polynomials.

    The first half is exact up to single precision. The last few are not, and need not be: Z gives them little weight.

    Parameters
    ----------
    walk : Walk
    n_vectors : int
        At most so many, and fewer than there are rows.
    seed : int
        Seed of the start of the iteration.

    Returns
    -------
    values : ndarray of shape (m,)
        The largest first.
    vectors : ndarray of shape (n, m)
    """
    scale = scipy.sparse.diags_array(1 / np.sqrt(walk.degrees))
    S = scipy.sparse.csr_array(scale @ walk.weights @ scale).astype(np.float32)
    n_vectors = min(n_vectors, walk.n_rows - 1)
    if walk.n_rows <= 4 * n_vectors:  # where the subspace would be most of the space, the dense solver is faster
        values, vectors = np.linalg.eigh(S.toarray())
    else:
        width = n_vectors + n_vectors // 10 + 1  # a few more, as the last converge slowly
        values, vectors = _iterate_subspace(S, generator(seed).standard_normal((walk.n_rows, width), np.float32))
    order = np.argsort(-values, kind="stable")[:n_vectors]
    return values[order], vectors[:, order]


def _iterate_subspace(
    S: scipy.sparse.csr_array, basis: np.ndarray, rounds: int = 3, degree: int = 10
) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of S in a subspace near its leading eigenvectors.

    A round multiplies the basis by a Chebyshev polynomial of S, which is small between -1 and the smallest value found
    so far and grows steeply above it, and then solves the problem inside the subspace (Rayleigh and Ritz).
    """
    smallest = 0.3  # a first guess; neighbour graphs have more eigenvalues above it than we look for
    for _ in range(rounds):
        centre, half_width = (smallest - 1) / 2, (smallest + 1) / 2
        before, basis = basis, (S @ basis - centre * basis) / half_width
        for _ in range(degree - 1):
            before, basis = basis, 2 / half_width * (S @ basis - centre * basis) - before
        basis = np.linalg.qr(basis)[0]
        inside = basis.T @ (S @ basis)
        values, rotation = np.linalg.eigh((inside + inside.T) / 2)
        basis, smallest = basis @ rotation, max(float(values[0]), 0.0)
    return values, basis


def walk_representation(values: np.ndarray, vectors: np.ndarray, gamma: float) -> np.ndarray:
    """Z in closed form: what PRO-DSC learns without a network when C is the walk.

    The optimum of -1/2 logdet(I + alpha Z'Z) + gamma/2 ||Z - ZC||^2 has the eigenvectors of C and, where no
    direction is lost, squared singular values that fall like 1 / (1 + gamma (1 - v)^2) with the eigenvalue v.

    Parameters
    ----------
    values, vectors
        As `walk_eigenvectors` gives them.
    gamma : float
        Weight of self-expression.

    Returns
    -------
    ndarray of shape (n, m)
        Unit rows.
    """
    Z = vectors / np.sqrt(1 + gamma * (1 - values) ** 2)
    return (Z / np.maximum(np.linalg.norm(Z, axis=1, keepdims=True), 1e-12)).astype(np.float32)


class WalkSampler:
    """Draws ends of random walks.

    Parameters
    ----------
    walk : Walk
    """

    def __init__(self, walk: Walk):
        self.weights = walk.weights
        self.before = np.concatenate([[0], np.cumsum(walk.weights.data)])  # weight of all edges before each edge

    def ends(self, rows: np.ndarray, random: np.random.Generator, max_steps: int = 3) -> np.ndarray:
        """Ends of walks from some rows; all lengths from 1 to `max_steps` are equally likely.

        Parameters
        ----------
        rows : ndarray of int
            Where the walks begin.
        random : numpy.random.Generator
        max_steps : int

        Returns
        -------
        ndarray of int
            One row for each walk.
        """
        length = random.integers(1, max_steps + 1, len(rows))
        for t in range(max_steps):
            rows = np.where(t < length, self._step(rows, random), rows)
        return rows

    def _step(self, rows: np.ndarray, random: np.random.Generator) -> np.ndarray:
        first, last = self.weights.indptr[rows], self.weights.indptr[rows + 1]
        drawn = self.before[first] + random.random(len(rows)) * (self.before[last] - self.before[first])
        edges = np.searchsorted(self.before, drawn, "right") - 1
        return self.weights.indices[np.clip(edges, first, last - 1)]
