"""Spectral clustering of landmarks, and the labels it gives to any other row (Nystroem extension).

    affinity -> D^-1/2 W D^-1/2 -> k eigenvectors -> rows normalised -> k-means

With at most `max_landmarks` rows, every row is a landmark and this is exact spectral clustering. With more rows, either
the landmarks alone are clustered, or many rows by their affinities with the landmarks (nystroem.py). In both cases the
cost is linear in the number of rows: no N x N matrix is made.
"""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import torch
from torch import Tensor
from torch.nn.functional import normalize

from prodsc.core.graph.constraints import LandmarkConstraints
from prodsc.core.graph.eigen import leading_eigenvectors
from prodsc.core.graph.kernels import Kernel
from prodsc.core.graph.kmeans import kmeans, seeded_kmeans
from prodsc.core.graph.nystroem import chunks, nystroem_directions
from prodsc.types import Affinity, Embedding, Rows

FAILED_SWAPS_PER_INIT = 2  # of k-means in a spectral embedding, after which its result stays


@dataclass(frozen=True)
class Partition:
    """k clusters of the landmarks, and the map from any row to its cluster.

    Parameters
    ----------
    kernel : Kernel
        Affinities of rows with the m landmarks.
    degrees : Tensor of shape (m,)
        Degrees of the landmarks.
    directions : Tensor of shape (m, k)
        Eigenvectors divided by their eigenvalues.
    centres : Tensor of shape (k, k)
        Centres of k-means in the spectral embedding.
    variance : float
        Variance of a coordinate in the mixture that gives probabilities: that within clusters, until `calibrate`
        raises it.
    inertia : float
        Mean squared distance to the nearest centre.
    """

    kernel: Kernel
    degrees: Tensor
    directions: Tensor
    centres: Tensor
    variance: float
    inertia: float

    def embed(self, Y: Rows) -> Embedding:
        """Unit rows of the spectral embedding, n x k; a landmark gets its own row of the eigenvectors."""
        scaled = (self.directions / self.degrees.sqrt()[:, None]).T
        return normalize(
            (scaled @ self.kernel.rows(Y).T).T
        )  # the degree of the row itself cancels; a product with few long rows is fast

    def distances(self, Y: Rows) -> Tensor:
        """Squared distances of each row to the centres, n x k."""
        return torch.cat([torch.cdist(self.embed(chunk), self.centres).square() for chunk in chunks(Y)])

    def labels(self, Y: Rows) -> np.ndarray:
        """The nearest centre of each row."""
        return self.distances(Y).argmin(1).cpu().numpy()

    def probabilities(self, Y: Rows) -> np.ndarray:
        """Posterior of a mixture of equal spherical Gaussians at the centres, n x k; largest at the label."""
        return posterior(self.distances(Y), self.variance).cpu().numpy()

    def labels_and_confidence(self, Y: Rows) -> tuple[Tensor, Tensor]:
        """Labels and their probabilities."""
        distances = self.distances(Y)
        return distances.argmin(1).cpu(), posterior(distances, self.variance).amax(1).cpu()

    def ordered(self, labels: np.ndarray) -> "tuple[Partition, np.ndarray]":
        """The same clusters, the largest first, and the labels numbered so (`largest_first`)."""
        order, renamed = largest_first(labels, len(self.centres))
        return replace(self, centres=self.centres[torch.from_numpy(order)]), renamed


def posterior(distances: Tensor, variance: float) -> Tensor:
    """Probabilities of a mixture of equal spherical Gaussians.

    Parameters
    ----------
    distances : Tensor of shape (n, k)
        Squared distances to the centres.
    variance : float
        Variance of a coordinate.

    Returns
    -------
    Tensor of shape (n, k)
    """
    return torch.softmax(-distances.double() / (2 * variance), dim=1)


def largest_first(labels: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Number clusters by size, the largest first; of equal sizes the one that occurs first.

    Parameters
    ----------
    labels : ndarray of shape (n,)
    k : int
        Number of clusters.

    Returns
    -------
    order : ndarray of shape (k,)
        Old numbers in the new order.
    renamed : ndarray of shape (n,)
        New labels.
    """
    sizes = np.bincount(labels, minlength=k)
    first = np.full(k, len(labels))
    np.minimum.at(first, labels, np.arange(len(labels)))
    order = np.lexsort((first, -sizes))
    new_number = np.empty(k, dtype=np.int64)
    new_number[order] = np.arange(k)
    return order, new_number[labels]


def spectral_labels(W: Affinity | scipy.sparse.sparray, n_clusters: int, n_init: int, seed: int) -> np.ndarray:
    """Labels of the rows of a given affinity, for methods that cannot label other rows.

    Parameters
    ----------
    W : Tensor or sparse array of shape (n, n)
        Symmetric, not negative.
    n_clusters : int
    n_init : int
        Number of starts of k-means.
    seed : int

    Returns
    -------
    ndarray of shape (n,)
        Cluster 0 is the largest.
    """
    if not isinstance(W, Tensor):
        _warn_of_components(W, n_clusters)
    vectors = leading_eigenvectors(W, n_clusters)[2]
    embedding = normalize(vectors).cpu().numpy()
    centres, _ = kmeans(embedding, n_clusters, n_init, seed, FAILED_SWAPS_PER_INIT * n_init)
    labels = torch.cdist(torch.from_numpy(embedding), torch.from_numpy(centres).to(vectors)).argmin(1).numpy()
    return largest_first(labels, n_clusters)[1]


def _warn_of_components(W: scipy.sparse.sparray, n_clusters: int) -> None:
    """With more components than clusters the leading eigenvectors are any k of many that are equally good."""
    n = scipy.sparse.csgraph.connected_components(W, directed=False, return_labels=False)
    if n > n_clusters:
        warnings.warn(
            f"the graph of the rows has {n} connected components, more than n_clusters={n_clusters}, so which of them "
            "form a cluster is arbitrary. Connect more rows (a larger k_max or n_neighbors), or raise n_clusters.",
            UserWarning,
            stacklevel=2,
        )


def spectral_partition(
    kernel: Kernel,
    n_clusters: int,
    n_init: int,
    seed: int,
    constraints: LandmarkConstraints | None = None,
    rows: Rows | None = None,
) -> Partition:
    """Cluster the landmarks of a kernel, or the given rows by their affinities with the landmarks.

    Parameters
    ----------
    kernel : Kernel
        Affinities of rows with the landmarks.
    n_clusters : int
    n_init : int
        Number of starts of k-means.
    seed : int
    constraints : LandmarkConstraints, optional
        Known labels and pairs of the landmarks; not together with `rows`.
    rows : Tensor of shape (n, d), optional
        Rows to cluster instead of the landmarks.

    Returns
    -------
    Partition
    """
    if rows is None:
        degrees, directions = _directions_of_landmarks(kernel, n_clusters, constraints)
    else:
        assert constraints is None, "constraints are on landmarks"
        directions = nystroem_directions(kernel, rows, n_clusters)
        degrees = torch.ones_like(directions[:, 0])
    fitted = Partition(kernel, degrees, directions, directions.new_zeros(n_clusters, n_clusters), 1.0, 0.0)
    embedding = torch.cat([fitted.embed(chunk) for chunk in chunks(kernel.landmarks if rows is None else rows)])
    if constraints is None or constraints.labels.max() < 0:
        centres, inertia = kmeans(embedding.cpu().numpy(), n_clusters, n_init, seed, FAILED_SWAPS_PER_INIT * n_init)
    else:
        centres, inertia = seeded_kmeans(embedding.cpu().numpy(), n_clusters, n_init, seed, constraints.labels)
    mean_inertia = inertia / len(embedding)
    return replace(
        fitted,
        centres=torch.from_numpy(centres).to(embedding),
        variance=max(mean_inertia / n_clusters, 1e-6),
        inertia=mean_inertia,
    )


def _directions_of_landmarks(kernel: Kernel, k: int, constraints: LandmarkConstraints | None) -> tuple[Tensor, Tensor]:
    """Degrees of the landmarks, and the map from their affinities to rows of the eigenvectors."""
    W = kernel.matrix() if constraints is None else constraints.apply(kernel.matrix())
    degrees, values, vectors = leading_eigenvectors(W, k)
    usable = values.abs() > 1e-6  # an eigenvalue of zero is rounding
    return degrees, torch.where(usable, vectors / torch.where(usable, values, 1.0), 0.0)
