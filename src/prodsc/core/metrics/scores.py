"""How well labels or coefficients agree with known classes. Labels may be any integers; only the grouping counts."""

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score
from sklearn.metrics.cluster import contingency_matrix

from prodsc.core.linalg import smallest_eigenvectors
from prodsc.errors import InputError
from prodsc.types import Affinity, Square


def accuracy(true: np.ndarray, predicted: np.ndarray) -> float:
    """ACC: the share of points whose cluster is matched to their class, under the best one-to-one matching.

    Parameters
    ----------
    true : ndarray of shape (n,)
        Class of each row.
    predicted : ndarray of shape (n,)
        Cluster of each row.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If the shapes differ.
    """
    counts = contingency_matrix(*_pair(true, predicted))
    rows, columns = linear_sum_assignment(counts, maximize=True)
    return float(counts[rows, columns].sum() / counts.sum())


def matched(true: np.ndarray, predicted: np.ndarray) -> np.ndarray:
    """Which points have their class under the matching of `accuracy`.

    Parameters
    ----------
    true : ndarray of shape (n,)
        Class of each row.
    predicted : ndarray of shape (n,)
        Cluster of each row.

    Returns
    -------
    ndarray of bool, of shape (n,)
    """
    _, codes = np.unique(true, return_inverse=True)
    clusters, cluster_codes = np.unique(predicted, return_inverse=True)
    rows, columns = linear_sum_assignment(contingency_matrix(*_pair(codes, cluster_codes)), maximize=True)
    partner = np.full(len(clusters), -1)
    partner[columns] = rows
    return partner[cluster_codes] == codes


def calibration_error(confidence: np.ndarray, right: np.ndarray, bins: int = 15) -> float:
    """ECE: the mean distance, over bins of equal width weighted by their rows, of mean confidence and share right.

    Parameters
    ----------
    confidence : ndarray of shape (n,)
        Probability of each label.
    right : ndarray of bool, of shape (n,)
        See `matched`.
    bins : int
        Number of bins.

    Returns
    -------
    float
    """
    confidence, right = np.asarray(confidence, dtype=np.float64), np.asarray(right, dtype=np.float64)
    place = np.minimum((confidence * bins).astype(int), bins - 1)
    gaps = [abs((confidence - right)[place == i].sum()) for i in range(bins)]
    return float(sum(gaps) / len(confidence))


def nmi(true: np.ndarray, predicted: np.ndarray) -> float:
    """NMI, normalised by the arithmetic mean of the two entropies.

    Parameters
    ----------
    true : ndarray of shape (n,)
        Class of each row.
    predicted : ndarray of shape (n,)
        Cluster of each row.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If the shapes differ.
    """
    return float(normalized_mutual_info_score(*_pair(true, predicted), average_method="arithmetic"))


def ari(true: np.ndarray, predicted: np.ndarray) -> float:
    """ARI: pair agreement, corrected for chance.

    Parameters
    ----------
    true : ndarray of shape (n,)
        Class of each row.
    predicted : ndarray of shape (n,)
        Cluster of each row.

    Returns
    -------
    float

    Raises
    ------
    InputError
        If the shapes differ.
    """
    return float(adjusted_rand_score(*_pair(true, predicted)))


def scores(true: np.ndarray, predicted: np.ndarray) -> dict[str, float]:
    """ACC, NMI and ARI by name.

    Parameters
    ----------
    true : ndarray of shape (n,)
        Class of each row.
    predicted : ndarray of shape (n,)
        Cluster of each row.

    Returns
    -------
    dict of float
    """
    return {"ACC": accuracy(true, predicted), "NMI": nmi(true, predicted), "ARI": ari(true, predicted)}


def subspace_preserving_error(C: Square, classes: np.ndarray) -> float:
    """SRE = 100/N sum_j (1 - sum_i w_ij |c_ij| / ||c_j||_1), w_ij = 1 when i and j share a class.

    A column of zeros counts as all wrong (100).

    Parameters
    ----------
    C : Tensor of shape (n, n)
        Coefficients; column j expresses point j.
    classes : ndarray of shape (n,)
        Class of each row.

    Returns
    -------
    float
    """
    same = _same_class(classes, len(C))
    absolute = C.abs()
    mass = absolute.sum(0)
    inside = (absolute * same).sum(0) / torch.where(mass > 0, mass, 1.0)
    return float(100 * (1 - inside).mean())


def connectivity(A: Affinity, classes: np.ndarray) -> np.ndarray:
    """Second smallest eigenvalue of the normalised Laplacian within each class: 0 where a class is not connected.

    A class of one point is connected by definition (1).

    Parameters
    ----------
    A : Tensor of shape (n, n)
        Affinity: symmetric, not negative.
    classes : ndarray of shape (n,)
        Class of each row.

    Returns
    -------
    ndarray of shape (k,)
        One value per class, classes ascending.
    """
    _same_class(classes, len(A))
    connected = []
    for c in np.unique(classes):
        inside = torch.from_numpy(np.flatnonzero(np.asarray(classes) == c))
        if len(inside) == 1:
            connected.append(1.0)
            continue
        part = A[inside][:, inside].double()
        scale = part.sum(1).clamp_min(torch.finfo(part.dtype).tiny).rsqrt()
        identity = torch.eye(len(part), dtype=part.dtype)
        values, _ = smallest_eigenvectors(identity - scale[:, None] * part * scale, 2)
        connected.append(max(0.0, float(values[1])))
    return np.array(connected)


def _pair(true: np.ndarray, predicted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    true, predicted = np.asarray(true), np.asarray(predicted)
    if true.shape != predicted.shape or true.ndim != 1 or len(true) == 0:
        raise InputError(
            f"true and predicted labels must be two 1-D arrays of the same length, got shapes {true.shape} and "
            f"{predicted.shape}. Give one label per row."
        )
    return true, predicted


def _same_class(classes: np.ndarray, n: int) -> torch.Tensor:
    classes = np.asarray(classes)
    if classes.shape != (n,):
        raise InputError(f"classes must have one entry per row: {n} rows, classes of shape {classes.shape}.")
    codes = torch.from_numpy(np.unique(classes, return_inverse=True)[1].reshape(-1))
    return codes[:, None] == codes[None, :]
