"""Spectral clustering of landmarks, and the labels it gives to any other row (Nystroem extension).

    affinity -> D^-1/2 W D^-1/2 -> k eigenvectors -> rows normalised -> k-means

With no more rows than `max_landmarks` every row is a landmark and this is exact spectral clustering. Of more, either
the landmarks alone are clustered, or many rows by what their affinities with the landmarks say of the affinities among
themselves (nystroem.py). Either way the cost is linear in the number of rows: no N x N matrix is ever made.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse.csgraph
import scipy.sparse.linalg
import torch
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from torch import Tensor
from torch.nn.functional import normalize

from prodsc.core.graph.kernels import Kernel
from prodsc.core.graph.nystroem import chunks, nystroem_directions
from prodsc.core.linalg import largest_eigenvectors
from prodsc.random import generator
from prodsc.types import Affinity, Rows, Square

RESTARTS = 100  # of ARPACK when a tolerance is enough; one that stalls would go on for an hour
SPARSE = 0.1  # of the entries of an affinity, below which products with it are made without the others
NEGLIGIBLE = 1e-8  # an error of eigenvalues, relative
SEPARATE = 1e-9  # normalised affinity below which rows have nothing to do with each other
DENSE_BELOW = 256  # rows, up to which a sparse matrix is as well a dense one
PIECES = 1e-5  # eigenvalues below it are those of separate parts
MISSES = 2  # swaps that do not help, for each start of k-means, after which a spectral embedding is left alone
SWAP_STEPS = 10  # of k-means, to see whether one helps
WORTHWHILE = 1e-4  # of the inertia: less is no help


@dataclass(frozen=True)
class Partition:
    """k clusters of the landmarks, and how to find the cluster of any row."""

    kernel: Kernel
    degrees: Tensor  # of the landmarks, m
    directions: Tensor  # eigenvectors over their eigenvalues, m x k
    centres: Tensor  # of k-means in the spectral embedding, k x k
    variance: float  # of a coordinate, by which probabilities fall; within clusters, until `calibrated` widens it
    inertia: float  # mean squared distance to the centre

    def embed(self, Y: Rows) -> Rows:
        """Unit rows of the spectral embedding; a landmark gets exactly its own eigenvector row."""
        scaled = (self.directions / self.degrees.sqrt()[:, None]).T
        return normalize((scaled @ self.kernel.rows(Y).T).T)  # the row's own degree cancels; a few long rows are fast

    def distances(self, Y: Rows) -> Tensor:
        """Squared distances of each row to the k centres."""
        return torch.cat([torch.cdist(self.embed(chunk), self.centres).square() for chunk in chunks(Y)])

    def labels(self, Y: Rows) -> np.ndarray:
        return self.distances(Y).argmin(1).cpu().numpy()

    def probabilities(self, Y: Rows) -> np.ndarray:
        """Posterior of a mixture of equal spherical Gaussians at the centres: largest where the label is."""
        return self._posterior(self.distances(Y)).cpu().numpy()

    def labels_and_confidence(self, Y: Rows) -> tuple[Tensor, Tensor]:
        """Labels and their probabilities."""
        distances = self.distances(Y)
        return distances.argmin(1).cpu(), self._posterior(distances).amax(1).cpu()

    def _posterior(self, distances: Tensor) -> Tensor:
        return posterior(distances, self.variance)

    def ordered(self, labels: np.ndarray) -> "tuple[Partition, np.ndarray]":
        """The same clusters, the largest first (ties: the one seen first), and the labels renamed so."""
        order, renamed = largest_first(labels, len(self.centres))
        return replace(self, centres=self.centres[torch.from_numpy(order)]), renamed


def posterior(distances: Tensor, variance: float) -> Tensor:
    """n x k probabilities of a mixture of equal spherical Gaussians, from squared distances to its centres."""
    return torch.softmax(-distances.double() / (2 * variance), dim=1)


def largest_first(labels: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """The clusters in order of size (ties: the one seen first), and the labels renamed by that order."""
    sizes = np.bincount(labels, minlength=k)
    first = np.full(k, len(labels))
    np.minimum.at(first, labels, np.arange(len(labels)))
    order = np.lexsort((first, -sizes))
    names = np.empty(k, dtype=np.int64)
    names[order] = np.arange(k)
    return order, names[labels]


def spectral_labels(W: Affinity | scipy.sparse.sparray, n_clusters: int, n_init: int, seed: int) -> np.ndarray:
    """Labels of the rows of a given affinity, dense or sparse, the largest cluster first: for methods whose affinity
    says nothing of rows that were not there."""
    if not isinstance(W, Tensor):
        _warn_of_pieces(W, n_clusters)
    vectors = leading_eigenvectors(W, n_clusters)[2]
    embedding = normalize(vectors).cpu().numpy()
    centres, _ = kmeans(embedding, n_clusters, n_init, seed, MISSES * n_init)
    labels = torch.cdist(torch.from_numpy(embedding), torch.from_numpy(centres).to(vectors)).argmin(1).numpy()
    return largest_first(labels, n_clusters)[1]


def _warn_of_pieces(W: scipy.sparse.sparray, n_clusters: int) -> None:
    """With more pieces than clusters the leading eigenvectors are any k of many that are equally good."""
    pieces = scipy.sparse.csgraph.connected_components(W, directed=False, return_labels=False)
    if pieces > n_clusters:
        warnings.warn(
            f"the graph of the rows falls into {pieces} pieces, more than n_clusters={n_clusters}, and nothing says "
            "which of them belong together. Connect more rows (a larger k_max or n_neighbors), or ask for more.",
            UserWarning,
            stacklevel=2,
        )


def leading_eigenvectors(
    W: Affinity | scipy.sparse.sparray, k: int, tolerance: float = 0.0
) -> tuple[Tensor, Tensor, Tensor]:
    """Degrees of W, and the k largest eigenvalues of D^-1/2 W D^-1/2 with their vectors, in descending or (of a sparse
    W) ascending order. `tolerance` is that of a sparse one, relative (0: to the last digit)."""
    if not isinstance(W, Tensor):
        found = _sparse_eigenvectors(W, k, tolerance) if k < W.shape[0] - 1 else None  # ARPACK wants k well below n
        if found is not None:
            return found
        W = torch.from_numpy(W.toarray())
    elif W.device.type == "cpu" and W.count_nonzero() < SPARSE * W.numel():
        found = leading_eigenvectors(scipy.sparse.csr_array(W.numpy()), k, tolerance or NEGLIGIBLE)
        return found[0].to(W), found[1].to(W), found[2].to(W)
    degrees = W.sum(1).clamp_min(torch.finfo(W.dtype).tiny)
    values, vectors = largest_eigenvectors(normalised(W, degrees), k)
    return degrees, values.to(W), vectors.to(W)


def laplacian_eigenvalues(kernel: Kernel, most: int) -> np.ndarray:
    """The smallest eigenvalues of I - D^-1/2 W D^-1/2 over the landmarks, ascending: as many near 0 as parts of W."""
    values = leading_eigenvectors(kernel.matrix(), min(most, len(kernel.landmarks)))[1]
    return np.sort(1 - values.double().cpu().numpy())


def eigengap(kernel: Kernel, k: int) -> float:
    """How clearly the landmarks fall into k clusters: 1 for k separate parts, 0 for more, else how much smaller the
    last of the k eigenvalues of I - D^-1/2 W D^-1/2 are than the next ones. A tenth of k of each are looked at, as the
    gap at k itself is noise where k is large."""
    some = max(1, k // 10)
    values = laplacian_eigenvalues(kernel, k + some)
    last, next_ones = values[k - some : k].mean(), values[k:].mean()
    return 0.0 if next_ones < PIECES else float(1 - last / next_ones)


def _sparse_eigenvectors(W: scipy.sparse.sparray, k: int, tolerance: float) -> tuple[Tensor, Tensor, Tensor] | None:
    """`leading_eigenvectors` of each piece of the graph, the largest of all, or None when ARPACK stalls.

    Every piece has an eigenvalue 1, and of one that is there many times ARPACK may find but a few.
    """
    degrees = np.maximum(np.asarray(W.sum(axis=1)).ravel(), np.finfo(np.float64).tiny)
    scale = scipy.sparse.diags_array(degrees**-0.5)
    N = scipy.sparse.csr_array(scale @ W @ scale)
    N.data[N.data < SEPARATE] = 0.0
    N.eliminate_zeros()
    _, piece = scipy.sparse.csgraph.connected_components(N, directed=False)
    pieces = np.split(np.argsort(piece, kind="stable"), np.cumsum(np.bincount(piece))[:-1])
    found = []
    for rows in pieces:
        of_piece = _of_connected(N[rows][:, rows], k, tolerance)
        if of_piece is None:
            return None
        found += [(value, rows, vector) for value, vector in zip(of_piece[0], of_piece[1].T, strict=True)]
    found = sorted(found, key=lambda pair: pair[0])[-k:]
    vectors = np.zeros((len(degrees), k))
    for column, (_, rows, vector) in enumerate(found):
        vectors[rows, column] = vector
    return torch.from_numpy(degrees), torch.tensor([value for value, *_ in found]), torch.from_numpy(vectors)


def _of_connected(N: scipy.sparse.csr_array, k: int, tolerance: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Eigenvalues, ascending, and eigenvectors, or None when ARPACK stalls: a graph nearly in pieces."""
    n = N.shape[0]
    if n <= max(DENSE_BELOW, k + 1):  # ARPACK wants k well below n
        values, vectors = np.linalg.eigh(N.toarray())
        return values[-k:], vectors[:, -k:]
    start = generator(0).standard_normal(n)  # ARPACK would draw from the global state
    try:
        return scipy.sparse.linalg.eigsh(
            N, k, which="LA", v0=start, tol=tolerance, maxiter=RESTARTS if tolerance else None
        )
    except scipy.sparse.linalg.ArpackNoConvergence:
        return None


@dataclass(frozen=True)
class Known:
    """What is known of the landmarks."""

    R: Tensor  # m x m: 1 for two that belong together, -1 for two that do not, 0 where nothing is known
    labels: np.ndarray  # codes from 0, -1 where the label is not known

    def affinity(self, W: Affinity) -> Affinity:
        """W with the largest affinity for pairs that belong together, and none for those that do not."""
        return W.masked_fill(self.R > 0, W.amax()).masked_fill(self.R < 0, 0.0)


def spectral_partition(
    kernel: Kernel, n_clusters: int, n_init: int, seed: int, known: Known | None = None, rows: Rows | None = None
) -> Partition:
    """Cluster the landmarks of a kernel, or the given `rows` by their affinities with the landmarks."""
    if rows is None:
        degrees, directions = _of_landmarks(kernel, n_clusters, known)
    else:
        assert known is None, "what is known is known of landmarks"
        directions = nystroem_directions(kernel, rows, n_clusters)
        degrees = torch.ones_like(directions[:, 0])
    fitted = Partition(kernel, degrees, directions, directions.new_zeros(n_clusters, n_clusters), 1.0, 0.0)
    embedding = torch.cat([fitted.embed(chunk) for chunk in chunks(kernel.landmarks if rows is None else rows)])
    if known is None or known.labels.max() < 0:
        centres, inertia = kmeans(embedding.cpu().numpy(), n_clusters, n_init, seed, MISSES * n_init)
    else:
        centres, inertia = seeded_kmeans(embedding.cpu().numpy(), n_clusters, n_init, seed, known.labels)
    mean_inertia = inertia / len(embedding)
    return replace(
        fitted,
        centres=torch.from_numpy(centres).to(embedding),
        variance=max(mean_inertia / n_clusters, 1e-6),
        inertia=mean_inertia,
    )


def _of_landmarks(kernel: Kernel, k: int, known: Known | None) -> tuple[Tensor, Tensor]:
    """Degrees of the landmarks, and what takes their affinities to rows of the eigenvectors."""
    W = kernel.matrix() if known is None else known.affinity(kernel.matrix())
    degrees, values, vectors = leading_eigenvectors(W, k)
    usable = values.abs() > 1e-6  # an eigenvalue at zero carries no affinity, only rounding
    return degrees, torch.where(usable, vectors / torch.where(usable, values, 1.0), 0.0)


def normalised(W: Square, degrees: Tensor) -> Square:
    """D^-1/2 W D^-1/2."""
    scale = degrees.rsqrt()
    return scale[:, None] * W * scale


def kmeans(points: np.ndarray, n_clusters: int, n_init: int, seed: int, misses: int = 0) -> tuple[np.ndarray, float]:
    """Centres and inertia of the best of n_init runs, the best by inertia, mended by swaps until so many miss."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters: said below
        found = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(points)
        if misses and n_clusters > 2:
            found = _swapped(found, points, misses, seed)
    distinct = len(np.unique(found.labels_))
    if distinct < n_clusters:
        warnings.warn(
            f"only {distinct} of n_clusters={n_clusters} clusters have rows: the data have fewer distinct points. "
            f"Lower n_clusters.",
            UserWarning,
            stacklevel=2,
        )
    return found.cluster_centers_, float(found.inertia_)


def _swapped(found: KMeans, points: np.ndarray, misses: int, seed: int) -> KMeans:
    """k-means after swaps: a centre that is hardly missed goes to a point that is far from all, until so many in a row
    do not help. Of a hundred clusters any ten runs leave a few split and as many merged."""
    random = generator(seed, len(points))
    missed, best, few = 0, found, max(3, found.n_clusters // 20)
    while missed < misses:
        distances = np.square(best.transform(points))
        nearest = np.partition(distances, 1, axis=1)[:, :2]
        cost = np.bincount(best.labels_, nearest[:, 1] - nearest[:, 0], best.n_clusters)
        centres = best.cluster_centers_.copy()
        far = nearest[:, 0].astype(np.float64)
        if not far.any():
            break
        centres[random.choice(np.argsort(cost)[:few])] = points[random.choice(len(points), p=far / far.sum())]
        tried = KMeans(best.n_clusters, init=centres, n_init=1, max_iter=SWAP_STEPS).fit(points)
        better = tried.inertia_ < (1 - WORTHWHILE) * best.inertia_
        best, missed = (tried, 0) if better else (best, missed + 1)
    return best if best is found else KMeans(best.n_clusters, init=best.cluster_centers_, n_init=1).fit(points)


def seeded_kmeans(
    points: np.ndarray, n_clusters: int, n_init: int, seed: int, labels: np.ndarray
) -> tuple[np.ndarray, float]:
    """`kmeans` whose first centres start as the means of the known labels (codes from 0, -1 for unknown); the others
    start far from those, drawn as k-means++ draws."""
    means = np.stack([points[labels == code].mean(0) for code in np.unique(labels[labels >= 0])])
    runs = []
    for i in range(n_init if len(means) < n_clusters else 1):  # without a draw all runs are one
        random, start = generator(seed, i), means
        while len(start) < n_clusters:
            far = ((points[:, None] - start) ** 2).sum(2).min(1)
            start = np.vstack([start, points[random.choice(len(points), p=far / far.sum())]])
        runs.append(KMeans(n_clusters, init=start, n_init=1).fit(points))
    best = min(runs, key=lambda run: run.inertia_)
    return best.cluster_centers_, float(best.inertia_)
