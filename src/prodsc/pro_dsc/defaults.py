"""What "auto" stands for: every value that a fit chooses from the data. docs/defaults.md gives the reasons.

There are three ways to start. Feature matrices start from a walk between nearest rows (`walk_start`), or as published
from a network that the warm-up trains. Images with few of them per
cluster start from a whitened autoencoder: their clusters are close to subspaces already (one face in many lights, one
object from many sides), and the nearest images in pixels are often of another class.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from prodsc.core import metrics
from prodsc.core.self_expression import perplexity
from prodsc.core.theory import gamma_safe
from prodsc.pro_dsc.walk_start import WALK_START_RULES
from prodsc.types import Rows

AUTO = "auto"


@dataclass(frozen=True)
class AutoRules:
    """The numbers behind "auto". Most were chosen on real data sets with ACC in sight (docs/notes/defaults.md)."""

    max_batch_size: int = 2048  # the affinity of a batch is n x n
    # training from a walk
    walk_steps: int = 60  # of the warm-up and of the joint phase, at least
    walk_epochs: int = 8  # of the warm-up: many rows need more steps to be learned
    walk_hidden_size: int = 256
    walk_batch_size: int = 512
    walk_batch_per_cluster: int = 5
    walk_directions: int = 128  # principal directions that the network sees
    # training from a warm-up
    warmup_steps: int = 50
    steps: int = 200  # of the joint phase
    steps_per_cluster: int = 2  # more clusters take longer to separate
    hidden_size: int = 512
    n_components: int = 128  # at least one direction per cluster, up to the next number
    max_components: int = 1024
    eta: float = 0.15
    safe_share: float = 0.8  # of the gamma that is safe for any data
    max_neighbors: int = 10
    neighbors_per_cluster: float = 0.25  # at most this share of a cluster of average size are neighbours
    # training from a whitened start
    rows_per_cluster_whitened: int = 100  # images start whitened up to so many per cluster
    whitened_steps: int = 300
    whitened_cluster_steps: int = 15_000  # at most this over k steps, as a step slows down with k
    pretrain_steps: int = 300
    rows_per_dimension: int = 5  # with fewer rows, whitening amplifies noise
    expressing_share: float = 0.25  # of a cluster expresses a row at first; with all of it, P becomes uniform
    # labels
    small_cluster: int = 20  # rows per cluster up to which a graph of 8 neighbours leaves the cluster
    squared: float = 2.0
    sharp: float = 8.0  # exponent that allows clusters of any size
    dense: float = 2.0  # largest exponent at which landmarks describe the affinities of all rows
    landmarks: int = 4096  # of a sparse or sharp affinity
    landmarks_per_cluster: int = 128
    max_landmarks: int = 8192
    dense_landmarks: int = 2048  # of a dense affinity
    dense_landmarks_per_cluster: int = 40
    nystroem_landmarks: int = 1024  # from which the affinities of more rows are approximated
    nystroem_landmarks_per_cluster: int = 20
    max_nystroem_landmarks: int = 4096
    clustered_rows: int = 2**15  # rows that are clustered together by a dense affinity
    rows_to_judge_sizes: int = 2048  # landmarks by which the sizes of clusters are judged
    min_rows_per_cluster: int = 32  # with fewer, a sharp affinity falls into pieces
    # when clusters differ in size: evenness of sizes, NMI of two affinities, agreement of neighbours
    even: float = 0.9
    alike: float = 0.8
    torn: float = 0.87
    gain: float = 0.03
    cut_off: float = 0.4  # evenness below which only outliers were cut off


AUTO_RULES = AutoRules()


def resolve_auto(
    given: Mapping[str, Any],
    shape: tuple[int, ...],
    k: int,
    rules: AutoRules = AUTO_RULES,
    *,
    constrained: bool = False,
) -> dict[str, Any]:
    """A value for every parameter that is "auto", from the shape of the data and the number of clusters.

    eta of a whitened start stays "auto": it depends on the features (`find_eta`). power and max_landmarks may change
    after training, by what the representation looks like.

    Parameters
    ----------
    given : mapping
        Parameters by their flat names.
    shape : tuple of int
        Shape of the data.
    k : int
        Number of clusters.
    rules : AutoRules
        The numbers behind "auto".
    constrained : bool
        Whether labels or pairs are known.

    Returns
    -------
    dict
        The parameters that were "auto", with their values.
    """
    n = shape[0]
    encoder = given["encoder"]
    if _is_auto(encoder):
        encoder = "conv" if len(shape) > 2 and n <= rules.rows_per_cluster_whitened * k else "mlp"
    is_mlp = isinstance(encoder, str) and encoder == "mlp"
    start = given["start"]
    if start == AUTO:
        start = _choose_start(given, encoder, constrained)
    whitened, from_walk = start == "whitened", start == "walk"
    of_pixels = whitened or (len(shape) > 2 and not is_mlp)
    batch_size = given["batch_size"]
    if batch_size == AUTO:
        batch_size = rules.max_batch_size if whitened or k > rules.n_components else 1024
        if from_walk:  # at least two batches: walks of a batch should leave it
            wanted = min(max(rules.walk_batch_size, rules.walk_batch_per_cluster * k), rules.max_batch_size)
            batch_size = min(wanted, max(n // 2, 2))
    components = given["n_components"]
    if components == AUTO:
        components = max(2, min(256, n // rules.rows_per_dimension)) if whitened else components_for(k, rules)
    affinity = given["label_affinity"]
    if affinity == AUTO:
        affinity = "neighbours" if whitened and n > rules.small_cluster * k else "gram"
    if whitened:
        steps = min(rules.whitened_steps, -(-rules.whitened_cluster_steps // k))
    else:
        steps = rules.walk_steps if from_walk else rules.steps + rules.steps_per_cluster * k
    trained = min(n, WALK_START_RULES.graph_rows) if from_walk else n  # rows that batches are drawn from
    per_epoch = max(trained // batch_size, 1)
    values = {
        "encoder": encoder,
        "start": start,
        "batch_size": batch_size,
        "n_components": components,
        "hidden_size": max(rules.walk_hidden_size if from_walk else rules.hidden_size, components),
        "warmup_steps": max(rules.walk_steps, rules.walk_epochs * per_epoch) if from_walk else rules.warmup_steps,
        "gamma": rules.safe_share * gamma_safe(min(n, batch_size), components, given["eps"]),
        "eta": AUTO if whitened else rules.eta,
        "learning_rate": 1e-2 if whitened else 1e-3,
        "eigensolver": "remembered" if whitened else "exact",
        "label_affinity": affinity,
        "max_landmarks": landmarks_for(k, affinity, rules),
        "power": rules.squared if whitened and affinity == "gram" else 1.0,
        "n_neighbors": 0 if of_pixels or from_walk else neighbors_for(n, k, rules),
        "keep_weights": "converged" if whitened else "last" if of_pixels or from_walk else "best",
        "epochs": _epochs(steps, trained, batch_size),
        "pretrain_epochs": _epochs(rules.pretrain_steps, n, given["pretrain_batch_size"]),
    }
    return {name: value for name, value in values.items() if _is_auto(given[name])}


WARM_UP_PARAMETERS = ("warmup_steps", "n_neighbors", "keep_weights", "label_affinity", "power", "max_landmarks")


def _choose_start(given: Mapping[str, Any], encoder: Any, constrained: bool) -> str:
    """The start of a fit; a parameter that only the published start has asks for it."""
    if isinstance(encoder, str) and encoder == "conv":
        return "whitened"
    features = isinstance(encoder, str) and encoder == "mlp" and given["head_hidden_size"] is None
    plain = features and given["anti_collapse"] == "coding-rate" and given["normaliser"] == "softmax"
    return "walk" if plain and not is_published(given) and not constrained else "warm-up"


def is_published(given: Mapping[str, Any]) -> bool:
    """Whether a parameter that only the published start has was given, or that start itself."""
    return given["start"] == "warm-up" or any(not _is_auto(given[name]) for name in WARM_UP_PARAMETERS)


def components_for(k: int, rules: AutoRules = AUTO_RULES) -> int:
    """Dimension of the representation of features: a power of two with room for k orthogonal subspaces."""
    return min(max(rules.n_components, 1 << (k - 1).bit_length()), rules.max_components)


def neighbors_for(n_rows: int, k: int, rules: AutoRules = AUTO_RULES) -> int:
    """How many nearest rows are likely to be of the same cluster, for clusters of equal size."""
    return max(1, min(rules.max_neighbors, int(rules.neighbors_per_cluster * n_rows / k)))


def landmarks_for(k: int, affinity: str, rules: AutoRules = AUTO_RULES) -> int:
    """Number of rows up to which spectral clustering is exact."""
    if affinity == "gram":
        return min(max(rules.dense_landmarks, rules.dense_landmarks_per_cluster * k), rules.max_landmarks)
    return min(max(rules.landmarks, rules.landmarks_per_cluster * k), rules.max_landmarks)


def nystroem_landmarks_for(k: int, rules: AutoRules = AUTO_RULES) -> int:
    """Number of landmarks from which the affinities of more rows are approximated."""
    return min(max(rules.nystroem_landmarks, rules.nystroem_landmarks_per_cluster * k), rules.max_nystroem_landmarks)


def find_eta(Y: Rows, share: float) -> float:
    """The eta at which this share of all rows expresses a row, by bisection of its logarithm.

    Parameters
    ----------
    Y : tensor, n x d
        Unit rows.
    share : float
        Perplexity of the coefficients, as a share of n.
    """
    # Not `brentq`: its result differs in the sixth digit, which is enough to change the labels of small image sets.
    low, high = 1e-3, 1.0  # the range in which the row softmax goes from one row to all of them
    step = -(-len(Y) // 1024)  # perplexity is estimated from about a thousand rows
    for _ in range(20):
        eta = (low * high) ** 0.5
        low, high = (low, eta) if perplexity(Y, eta, step) > share else (eta, high)
    return (low * high) ** 0.5


def choose_power(labels: Callable[[float], np.ndarray], near: np.ndarray, rules: AutoRules = AUTO_RULES) -> float:
    """The exponent of the affinity: 1, or `rules.sharp` where clusters differ in size.

    A dense affinity prefers clusters of equal size and cuts large ones in two; a sharp one does not, but follows noise.
    The sharp one is used where the two give different labels, where its clusters differ in size, and where nearest
    rows agree clearly better on its labels.

    Parameters
    ----------
    labels : function
        Labels of some rows, for an exponent.
    near : array, n x m
        The nearest rows of each of these rows.
    """
    dense, sharp = labels(1.0), labels(rules.sharp)
    uneven = rules.cut_off < metrics.evenness(sharp) < rules.even and metrics.nmi(dense, sharp) < rules.alike
    before, after = (metrics.agreement_beyond_chance(found, near) for found in (dense, sharp))
    return rules.sharp if uneven and before < rules.torn and after > before + rules.gain else 1.0


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == AUTO


def _epochs(steps: int, n: int, batch_size: int) -> int:
    return -(-steps // (n // min(n, batch_size)))
