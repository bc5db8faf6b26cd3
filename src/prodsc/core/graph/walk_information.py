"""Information of labels about a step of a random walk.

For labels c, the joint distribution J of the clusters at the two ends of a step is k x k, and the information is
I = sum_ab J_ab log(J_ab / (p_a p_b)) with p its marginal.
"""

import numpy as np
import scipy.sparse

from prodsc.core.graph.walk import Walk


def joint_distribution(walk: Walk, labels: np.ndarray, k: int, n_steps: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """How likely each pair of clusters is at the two ends of a walk.

    Parameters
    ----------
    walk : Walk
    labels : ndarray of int, shape (n,)
    k : int
        Number of clusters.
    n_steps : int
        Length of the walk.

    Returns
    -------
    joint : ndarray of shape (k, k)
        Symmetric, with the sum 1.
    ends : ndarray of shape (n, k)
        Probability of the last cluster, for each first row.
    """
    n = len(labels)
    ends = np.zeros((n, k), dtype=np.float32)
    ends[np.arange(n), labels] = 1
    for _ in range(n_steps):
        ends = walk.step @ ends
    joint = scipy.sparse.csr_array((walk.degrees, (labels, np.arange(n))), (k, n)) @ ends.astype(np.float64)
    joint = (joint + joint.T) / 2
    return joint / joint.sum(), ends


def information(joint: np.ndarray) -> float:
    """Mutual information of the two sides of a joint distribution, in nats.

    Parameters
    ----------
    joint : ndarray of shape (k, m)

    Returns
    -------
    float
    """
    return float(x_log_x(joint).sum() - x_log_x(joint.sum(0)).sum() - x_log_x(joint.sum(1)).sum())


def x_log_x(a: np.ndarray | np.floating) -> np.ndarray:
    """x log x of each entry, 0 at 0."""
    return np.asarray(a * np.log(np.maximum(a, 1e-300)))
