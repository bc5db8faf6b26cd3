"""k-means as spectral clustering needs it: plain, improved by swaps, started from known labels, or a quick one."""

import warnings

import numpy as np
import scipy.sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from prodsc.random import generator


def kmeans(
    points: np.ndarray, n_clusters: int, n_init: int, seed: int, max_failed_swaps: int = 0
) -> tuple[np.ndarray, float]:
    """k-means, the best of several starts, improved by swaps of centres.

    Parameters
    ----------
    points : ndarray of shape (n, d)
    n_clusters : int
    n_init : int
        Number of starts.
    seed : int
    max_failed_swaps : int
        Number of swaps without success, one after the other, after which the result stays. 0: no swaps.

    Returns
    -------
    centres : ndarray of shape (n_clusters, d)
    inertia : float
        Sum of squared distances to the nearest centre.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct points than clusters: warned of below
        fitted = KMeans(n_clusters, n_init=n_init, random_state=seed).fit(points)
        if max_failed_swaps and n_clusters > 2:
            fitted = _improve_by_swaps(fitted, points, max_failed_swaps, seed)
    distinct = len(np.unique(fitted.labels_))
    if distinct < n_clusters:
        warnings.warn(
            f"only {distinct} of n_clusters={n_clusters} clusters have rows: the data have fewer distinct points. "
            f"Lower n_clusters.",
            UserWarning,
            stacklevel=2,
        )
    return fitted.cluster_centers_, float(fitted.inertia_)


def seeded_kmeans(
    points: np.ndarray, n_clusters: int, n_init: int, seed: int, labels: np.ndarray
) -> tuple[np.ndarray, float]:
    """k-means that starts from the means of known labels; the other centres are drawn as in k-means++.

    Parameters
    ----------
    points : ndarray of shape (n, d)
    n_clusters : int
    n_init : int
        Number of starts.
    seed : int
    labels : ndarray of shape (n,)
        Codes from 0, -1 where the label is not known.

    Returns
    -------
    centres : ndarray of shape (n_clusters, d)
        Those of the known labels first.
    inertia : float
    """
    means = np.stack([points[labels == code].mean(0) for code in np.unique(labels[labels >= 0])])
    runs = []
    for i in range(n_init if len(means) < n_clusters else 1):  # with nothing to draw, all starts are the same
        random, start = generator(seed, i), means
        while len(start) < n_clusters:
            distances = ((points[:, None] - start) ** 2).sum(2).min(1)
            start = np.vstack([start, points[random.choice(len(points), p=distances / distances.sum())]])
        runs.append(KMeans(n_clusters, init=start, n_init=1).fit(points))
    best = min(runs, key=lambda run: run.inertia_)
    return best.cluster_centers_, float(best.inertia_)


def quick_kmeans(points: np.ndarray, n_clusters: int, seed: int, n_rounds: int = 10) -> np.ndarray:
    """Labels of unit rows after a few rounds of k-means, where another part of the method mends what is not optimal.

    Parameters
    ----------
    points : ndarray of float32, shape (n, d)
        Rows of length 1 (or 0).
    n_clusters : int
        At most n.
    seed : int
    n_rounds : int
        At most so many; it ends when fewer than one row in a thousand changes.

    Returns
    -------
    ndarray of int, shape (n,)
        Some clusters may have no rows.
    """
    n = len(points)
    centres, labels = points[_spread_rows(points, n_clusters, seed)], np.full(n, -1)
    for _ in range(n_rounds):
        before, labels = labels, (points @ centres.T - np.square(centres).sum(1) / 2).argmax(1)
        if (labels != before).sum() < 1e-3 * n:
            break
        counts = np.bincount(labels, minlength=n_clusters).astype(np.float32)[:, None]
        members = scipy.sparse.csr_array((np.ones(n, np.float32), (labels, np.arange(n))), (n_clusters, n))
        centres = np.where(counts > 0, (members @ points) / np.maximum(counts, 1), centres)
    return labels


def _spread_rows(points: np.ndarray, n_rows: int, seed: int) -> list[int]:
    """Numbers of rows far from each other: drawn as in k-means++, the best of four draws each time."""
    random, n = generator(seed), len(points)
    rows = [int(random.integers(n))]
    far = np.maximum(1 - points @ points[rows[0]], 0)
    for _ in range(n_rows - 1):
        upto = np.cumsum(far, dtype=np.float64)
        drawn = np.minimum(np.searchsorted(upto, random.random(4) * upto[-1]), n - 1)
        left = np.minimum(far, 1 - points[drawn] @ points.T)
        best = int(left.sum(1).argmin())
        rows.append(int(drawn[best]))
        far = np.maximum(left[best], 0)
    return rows


def _improve_by_swaps(
    fitted: KMeans, points: np.ndarray, max_failed: int, seed: int, steps: int = 10, min_gain: float = 1e-4
) -> KMeans:
    """Move centres that cost little to remove to points far from all centres, while that lowers the inertia.

    With a hundred clusters, any ten starts leave a few clusters split and as many merged. A swap is tried with `steps`
    steps of k-means, and kept if it lowers the inertia by a share of `min_gain`.
    """
    random = generator(seed, len(points))
    failed, best, n_candidates = 0, fitted, max(3, fitted.n_clusters // 20)
    while failed < max_failed:
        distances = np.square(best.transform(points))
        nearest = np.partition(distances, 1, axis=1)[:, :2]
        removal_cost = np.bincount(best.labels_, nearest[:, 1] - nearest[:, 0], best.n_clusters)
        centres = best.cluster_centers_.copy()
        far = nearest[:, 0].astype(np.float64)
        if not far.any():
            break
        target = points[random.choice(len(points), p=far / far.sum())]
        centres[random.choice(np.argsort(removal_cost)[:n_candidates])] = target
        tried = KMeans(best.n_clusters, init=centres, n_init=1, max_iter=steps).fit(points)
        better = tried.inertia_ < (1 - min_gain) * best.inertia_
        best, failed = (tried, 0) if better else (best, failed + 1)
    return best if best is fitted else KMeans(best.n_clusters, init=best.cluster_centers_, n_init=1).fit(points)
