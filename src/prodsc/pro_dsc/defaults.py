"""What "auto" stands for: the defaults that depend on the data, in one place, with their reasons in docs/defaults.md.

There are two ways to begin. Features start from a network that warm-up trains. Images of which a cluster has only a
few start from a whitened autoencoder: their clusters are near subspaces already (one face in many lights, one object
from many sides), while their nearest pixels say little of what they show.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from prodsc.core import metrics
from prodsc.core.self_expression import perplexity
from prodsc.pro_dsc.neighbour_sampler import auto_neighbours
from prodsc.types import Rows

AUTO = "auto"
STEPS, STEPS_PER_CLUSTER = 200, 2  # of the joint phase from a warm-up: more clusters take longer to part
WHITENED_STEPS, CLUSTER_STEPS = 300, 15_000  # from a whitened start; at most so many times k, as steps slow down with k
PRETRAIN_STEPS = 300  # of a conv encoder's reconstruction
FEW = 100  # rows to a cluster, up to which images begin whitened
COMPONENTS, MOST_COMPONENTS = 128, 1024  # of features; as many as clusters at least, as each has a direction of its own
WIDTH = 512
ROWS_PER_DIMENSION = 5  # whitening makes more dimensions than that out of noise
ETA = 0.15  # from a warm-up
ETAS = (1e-3, 1.0)  # between which eta is looked for
HALVINGS = 20
LOOKED_AT = 1024  # rows by whose perplexity eta is found
SHARP = 0.25  # of the rows of a cluster express a row at first; with all of them P soon becomes uniform and stays so
SMALL = 20  # rows to a cluster, up to which a graph of eight neighbours leaves it: then cosines, squared
SQUARED = 2.0
SHARPER = 8.0  # power of an affinity that lets clusters be of any size
LANDMARKS, LANDMARKS_OF_CLUSTER, MOST_LANDMARKS = 4096, 128, 8192  # where they speak for rows near to them only
FEW_LANDMARKS, FEW_OF_CLUSTER = 2048, 40  # where each speaks for all rows, and half of them would do
TELLING, TELLING_OF_CLUSTER, MOST_TELLING = 1024, 20, 4096  # such landmarks that tell the affinities of more rows
ROWS_TO_TELL = 32  # in a cluster, without which a sharp affinity falls into pieces that tell nothing
EVEN, ALIKE = 0.9, 0.8  # sizes, and labels by two affinities: below both, sizes differ so much that it matters
TORN, GAIN = 0.87, 0.03  # agreement of neighbours below which clusters are torn, and a gain that is no noise
OUTLIERS = 0.4  # evenness below which a few rows were only cut off


def settled(given: Mapping[str, Any], shape: tuple[int, ...], k: int) -> dict[str, Any]:
    """A value for each of the given parameters that is "auto" and that the shape of the data settles.

    gamma is not among them, since it depends on theory (`used_gamma`), nor eta of a whitened start, since it depends
    on what the features are (`eta_for`). power may be another after training.
    """
    n = shape[0]
    encoder = given["encoder"]
    if encoder == AUTO:
        encoder = "conv" if len(shape) > 2 and n <= FEW * k else "mlp"
    start = given["start"]
    if start == AUTO:
        start = "whitened" if encoder == "conv" else "warm-up"
    whitened = start == "whitened"
    of_pixels = whitened or (len(shape) > 2 and encoder != "mlp")
    many = k > COMPONENTS
    batch = given["batch_size"] if given["batch_size"] != AUTO else 2048 if whitened or many else 1024
    components = given["n_components"]
    if components == AUTO:
        components = max(2, min(256, n // ROWS_PER_DIMENSION)) if whitened else components_for(k)
    small = n <= SMALL * k
    affinity = given["label_affinity"]
    if affinity == AUTO:
        affinity = "neighbours" if whitened and not small else "gram"
    steps = min(WHITENED_STEPS, -(-CLUSTER_STEPS // k)) if whitened else STEPS + STEPS_PER_CLUSTER * k
    values = {
        "encoder": encoder,
        "start": start,
        "batch_size": batch,
        "n_components": components,
        "hidden_size": max(WIDTH, components),
        "eta": AUTO if whitened else ETA,
        "learning_rate": 1e-2 if whitened else 1e-3,
        "eigensolver": "remembered" if whitened else "exact",
        "label_affinity": affinity,
        "max_landmarks": landmarks_for(k, affinity),
        "power": SQUARED if whitened and affinity == "gram" else 1.0,
        "neighbour_views": 0 if of_pixels else auto_neighbours(n, k),
        "keep": "settled" if whitened else "last" if of_pixels else "best",
        "epochs": _epochs(steps, n, batch),
        "pretrain_epochs": _epochs(PRETRAIN_STEPS, n, given["pretrain_batch_size"]),
    }
    return {name: value for name, value in values.items() if given[name] == AUTO}


def components_for(k: int) -> int:
    """Dimensions of the representation of features: a power of two, room for k orthogonal subspaces."""
    return min(max(COMPONENTS, 1 << (k - 1).bit_length()), MOST_COMPONENTS)


def landmarks_for(k: int, affinity: str) -> int:
    """Rows that are clustered exactly."""
    fewest, of_cluster = (FEW_LANDMARKS, FEW_OF_CLUSTER) if affinity == "gram" else (LANDMARKS, LANDMARKS_OF_CLUSTER)
    return min(max(fewest, of_cluster * k), MOST_LANDMARKS)


def telling_for(k: int) -> int:
    """Landmarks that tell the affinities of more rows than are clustered exactly."""
    return min(max(TELLING, TELLING_OF_CLUSTER * k), MOST_TELLING)


def eta_for(Y: Rows, share: float) -> float:
    """The eta at which so many of all rows express a row."""
    low, high = ETAS
    every = -(-len(Y) // LOOKED_AT)
    for _ in range(HALVINGS):
        eta = (low * high) ** 0.5
        low, high = (low, eta) if perplexity(Y, eta, every) > share else (eta, high)
    return (low * high) ** 0.5


def power_of_sizes(labels: Callable[[float], np.ndarray], near: np.ndarray) -> float:
    """The power of an affinity, from the `labels` that two powers give, and the nearest rows of each row.

    A dense affinity prefers clusters of like size and is blind to others; a sharp one is not, but follows noise. Where
    they tell of different clusters, and those of the sharp one differ in size, the dense one may have cut large ones
    up: through their midst, so that neighbours disagree on its labels, and clearly less on those of the sharp one.
    """
    dense, sharp = labels(1.0), labels(SHARPER)
    uneven = OUTLIERS < metrics.evenness(sharp) < EVEN and metrics.nmi(dense, sharp) < ALIKE
    before, after = (metrics.agreement_beyond_chance(labels, near) for labels in (dense, sharp))
    return SHARPER if uneven and before < TORN and after > before + GAIN else 1.0


def _epochs(steps: int, n: int, batch: int) -> int:
    return -(-steps // (n // min(n, batch)))
