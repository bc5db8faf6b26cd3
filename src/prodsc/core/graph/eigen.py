"""Leading eigenvectors of a normalised affinity: dense, sparse, and by connected component."""

import numpy as np
import scipy.linalg
import scipy.sparse
import scipy.sparse.csgraph
import torch
from torch import Tensor

from prodsc.core.graph.kernels import Kernel
from prodsc.core.linalg import EIGEN_LIMITS, arpack, largest_eigenvectors
from prodsc.types import Affinity, Square


def normalised_affinity(W: Square, degrees: Tensor) -> Square:
    """D^-1/2 W D^-1/2 of a dense affinity."""
    scale = degrees.rsqrt()
    return scale[:, None] * W * scale


def leading_eigenvectors(
    W: Affinity | scipy.sparse.sparray, k: int, tolerance: float = 0.0, sparse_below: float = 0.1
) -> tuple[Tensor, Tensor, Tensor]:
    """Degrees of an affinity and the leading eigenvectors of D^-1/2 W D^-1/2.

    Parameters
    ----------
    W : Tensor or sparse array of shape (n, n)
        Symmetric, not negative.
    k : int
        Number of eigenvectors, at most n of them.
    tolerance : float
        Relative error of the eigenvalues of a sparse affinity. 0: to the last digit.
    sparse_below : float
        Share of entries other than zero below which a dense affinity is treated as a sparse one.

    Returns
    -------
    degrees : Tensor of shape (n,)
    values : Tensor of shape (k,)
        The largest eigenvalues, descending. Of equal ones, that of the largest component comes first.
    vectors : Tensor of shape (n, k)
    """
    if not isinstance(W, Tensor):
        return _by_component(W, k, tolerance)
    if W.device.type == "cpu" and W.count_nonzero() < sparse_below * W.numel():
        degrees, values, vectors = _by_component(scipy.sparse.csr_array(W.numpy()), k, tolerance or 1e-8)
    else:
        degrees = W.sum(1).clamp_min(torch.finfo(W.dtype).tiny)
        values, vectors = largest_eigenvectors(normalised_affinity(W, degrees), k)
    return degrees.to(W), values.to(W), vectors.to(W)


def laplacian_eigenvalues(kernel: Kernel, n: int) -> np.ndarray:
    """The n smallest eigenvalues of I - D^-1/2 W D^-1/2 over the landmarks, ascending.

    As many of them are near 0 as W has components.
    """
    values = leading_eigenvectors(kernel.matrix(), min(n, len(kernel.landmarks)))[1]
    return np.sort(1 - values.double().cpu().numpy())


def eigengap(kernel: Kernel, k: int, negligible: float = 1e-5) -> float:
    """How clearly the landmarks fall into k clusters: 1 for k components, 0 for more than k.

    Otherwise, by what share the last of the k eigenvalues of I - D^-1/2 W D^-1/2 are smaller than the next ones. Each
    side is the mean of k/10 eigenvalues, because the gap at k itself is noise where k is large.

    Parameters
    ----------
    kernel : Kernel
    k : int
        Number of clusters.
    negligible : float
        Eigenvalues below it are those of separate components.

    Returns
    -------
    float
    """
    n = max(1, k // 10)
    values = laplacian_eigenvalues(kernel, k + n)
    last, following = values[k - n : k].mean(), values[k:].mean()
    return 0.0 if following < negligible else float(1 - last / following)


def cluster_qr(vectors: np.ndarray) -> np.ndarray:
    """Labels from k eigenvectors without random starts (Damle, Minden and Ying, 2019).

    Pivoted QR chooses k rows that are far apart; a rotation brings them near to the axes; the label of a row is its
    largest coordinate. scikit-learn has the same function, but only in a private module.

    Parameters
    ----------
    vectors : ndarray of shape (n, k)
        Eigenvectors as columns.

    Returns
    -------
    ndarray of shape (n,)
    """
    k = vectors.shape[1]
    pivots = scipy.linalg.qr(vectors.T, mode="r", pivoting=True)[1][:k]
    left, _, right = scipy.linalg.svd(vectors[pivots].T)
    return np.abs(vectors @ (left @ right)).argmax(1)


def _by_component(
    W: scipy.sparse.sparray, k: int, tolerance: float, disconnected: float = 1e-9
) -> tuple[Tensor, Tensor, Tensor]:
    """`leading_eigenvectors` of each connected component, then the largest of all.

    Every component has an eigenvalue of exactly 1, and of equal eigenvalues ARPACK may find too few. Entries below
    `disconnected` of the normalised affinity do not connect.
    """
    degrees = np.maximum(np.asarray(W.sum(axis=1)).ravel(), np.finfo(np.float64).tiny)
    scale = scipy.sparse.diags_array(degrees**-0.5)
    N = scipy.sparse.csr_array(scale @ W @ scale)
    N.data[N.data < disconnected] = 0.0
    N.eliminate_zeros()
    _, component = scipy.sparse.csgraph.connected_components(N, directed=False)
    rows_of = np.split(np.argsort(component, kind="stable"), np.cumsum(np.bincount(component))[:-1])
    rows_of.sort(key=len, reverse=True)
    pairs = []
    for rows in rows_of:
        values, vectors = _of_connected(N[rows][:, rows], min(k, len(rows)), tolerance)
        pairs += [(value, rows, vector) for value, vector in zip(values, vectors.T, strict=True)]
    pairs = sorted(pairs, key=lambda pair: -round(float(pair[0]), 9))[:k]
    columns = np.zeros((len(degrees), len(pairs)))
    for column, (_, rows, vector) in enumerate(pairs):
        columns[rows, column] = vector
    values = np.array([value for value, *_ in pairs])
    return torch.from_numpy(degrees), torch.from_numpy(values), torch.from_numpy(columns)


def _of_connected(N: scipy.sparse.csr_array, k: int, tolerance: float) -> tuple[np.ndarray, np.ndarray]:
    """The k largest eigenvalues of one component, descending, and their vectors."""
    n = N.shape[0]
    pairs = None
    if n > max(
        EIGEN_LIMITS.full_below, k + 1
    ):  # ARPACK needs k well below n; with a tolerance a stall must not take an hour
        pairs = arpack(N, k, "LA", tol=tolerance, maxiter=100 if tolerance else None)
    if pairs is None:
        values, vectors = largest_eigenvectors(torch.from_numpy(N.toarray()), k)
        return values.numpy(), vectors.numpy()
    return pairs[0][::-1], pairs[1][:, ::-1]
