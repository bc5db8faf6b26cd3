"""Labels: spectral clustering of what a network has learned, the extension to any row, confidence and outliers."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from prodsc import ranks
from prodsc.core.graph import (
    CoefficientKernel,
    GramKernel,
    HeadPartition,
    Kernel,
    LandmarkConstraints,
    NeighbourKernel,
    OutlierModel,
    Partition,
    PowerKernel,
    calibrate,
    calibrated_temperature,
    eigengap,
    fit_outlier_model,
    nearest_neighbours,
    noise_threshold,
    replicated_share,
    sample_references,
    spectral_partition,
    strangeness_quantiles,
)
from prodsc.core.graph.outliers import N_REFERENCES
from prodsc.estimators.base import ROWS_AT_ONCE
from prodsc.nn import Network
from prodsc.pro_dsc.config import Config
from prodsc.pro_dsc.constraints import Constraints
from prodsc.pro_dsc.defaults import choose_power, nystroem_landmarks_for
from prodsc.random import Stream, evenly_spaced, generator
from prodsc.sources.rows import RowReader

Output = TypeVar("Output")
REPLICATED_ROWS = 4000  # of which halves are clustered to calibrate the confidence
INPUT_NUMBERS = 2**21  # of the input, 8 MB: bounds the rows that are compared, where they are wide


@dataclass(frozen=True)
class RowLabels:
    """What a fit gives for each training row."""

    clusters: np.ndarray  # cluster 0 is the largest
    labels: np.ndarray  # the clusters, -1 for noise
    strays: list[int]  # clusters of which more than half would be noise
    confidence: np.ndarray
    outlier_score: np.ndarray


@dataclass(frozen=True)
class Labeller:
    """Gives any row a label, its confidence and an outlier score, each row on its own."""

    network: Network
    config: Config
    device: torch.device
    partition: Partition | HeadPartition
    outliers: OutlierModel | None  # None in a model saved before there were such scores
    threshold: float = np.inf  # strangeness beyond which a row is noise

    def label(self, rows: RowReader, with_outliers: bool = False) -> Iterator[tuple[np.ndarray, ...]]:
        """Clusters, confidence and, if asked for, strangeness, a part of the rows at a time.

        On several ranks each labels a share of rows that are in files, and all get all of them.
        """
        none = (torch.zeros(0, dtype=torch.long), *[torch.zeros(0, dtype=torch.float64)] * (1 + with_outliers))
        for n, mine in rows.rounds(ROWS_AT_ONCE):  # a rank may have no rows
            found = self._label_with_outliers(rows, mine) if with_outliers else self._label(rows, mine)
            joined = map(torch.cat, zip(none, *found, strict=True))
            yield tuple((ranks.gather(part, n) if rows.shared else part).numpy() for part in joined)

    def _label(self, rows: RowReader, mine: slice) -> Iterator[tuple[Tensor, ...]]:
        return map(self.partition.labels_and_confidence, self.outputs(self.label_head, rows.chunks(mine)))

    def _label_with_outliers(self, rows: RowReader, mine: slice) -> Iterator[tuple[Tensor, ...]]:
        assert self.outliers is not None
        for X, full in rows.chunks_with_length(mine):
            [(outputs, points)] = self.outputs(lambda H: (self.label_head(H), H), [X])
            points = point_view(self.network, self.config, X.to(self.device), points)
            strangeness = self.outliers.strangeness(full.to(self.device), points).cpu()
            yield (*self.partition.labels_and_confidence(outputs), strangeness)

    def probabilities(self, rows: RowReader) -> np.ndarray:
        """n x k probabilities, largest where `label` puts the row."""
        return np.concatenate([*map(self.partition.probabilities, self.outputs(self.label_head, rows.chunks()))])

    def Y(self, rows: RowReader) -> Tensor:
        return torch.cat([*self.outputs(self.network.y, rows.chunks())])

    def Z(self, rows: RowReader) -> Tensor:
        return torch.cat([*self.outputs(self.network.z, rows.chunks())])

    def outputs(self, head: Callable[[Tensor], Output], batches: Iterable[Tensor]) -> Iterator[Output]:
        """What a head of the network gives for each batch."""
        return network_outputs(self.network, head, batches, self.device)

    def label_head(self, H: Tensor) -> Tensor:
        """What labels are made from: Y, or the outputs of the label head."""
        return self.network.outputs(H) if self.config.from_walk else self.network.y(H)


def point_view(network: Network, config: Config, X: Tensor, H: Tensor) -> Tensor:
    """Rows as points whose neighbours mean something, before the two heads.

    Parameters
    ----------
    network : Network
    config : Config
    X : Tensor
        Rows as the network sees them.
    H : Tensor
        The encoder's output for them.

    Returns
    -------
    Tensor of shape (n, c)
        Coordinates of a walk, the whitened features of images, or else Y.
    """
    with torch.inference_mode():
        if config.from_walk:
            return network.encoder[0](X)  # type: ignore[index]
        return H.flatten(1) if config.whitened else network.y(H)


def fit_labeller(
    network: Network,
    config: Config,
    rows: RowReader,
    *,
    seed: int,
    device: torch.device,
    constraints: Constraints | None = None,
) -> tuple[Labeller, RowLabels]:
    """Cluster the rows spectrally by the Y of a trained network.

    Up to `config.max_landmarks` rows are clustered exactly. Of more rows, a dense affinity is approximated from
    landmarks (Nystroem), and for a sparse one only the landmarks are clustered. Every row, also a training row, gets
    the label that the extension of the eigenvectors gives it, so `labels_` equals `predict` of the training rows.

    Parameters
    ----------
    network : Network
        Trained.
    config : Config
        eta must be known. `power` and `max_landmarks` may change if they were "auto".
    rows : RowReader
        The training rows.
    seed : int
        Seed of the sample of rows and of k-means.
    device : torch.device
    constraints : Constraints or None
        Known labels and pairs.

    Returns
    -------
    labeller : Labeller
        Labels any row. Its `config` has the final `power` and `max_landmarks`.
    row_labels : RowLabels
        Labels, confidence and outlier scores of the training rows.
    """
    if config.from_walk:
        return _fit_head_labeller(network, config, rows, seed, device)
    config = _choose_max_landmarks(config, constraints)
    chosen = _choose_rows(config, len(rows), seed, constraints)
    Y = torch.cat([*network_outputs(network, network.y, rows.chunks(chosen), device)])
    ranks.broadcast(Y)
    config = _choose_power(config, Y, rows, chosen, seed)
    config = _choose_max_landmarks(config, constraints)  # which depends on power
    if len(chosen) > config.max_landmarks and not _is_dense(config, constraints):
        fewer = evenly_spaced(len(chosen), config.max_landmarks)
        Y, chosen = Y[torch.from_numpy(fewer)], chosen[fewer]
    partition = _fit_partition(config, Y, chosen, seed, constraints, device)
    ranks.broadcast(partition.degrees, partition.directions, partition.centres)
    agreement = _replicated(network, config, rows, chosen, partition.labels(Y), device)
    partition = calibrate(partition, Y, agreement)
    return _finish(network, config, rows, device, partition, seed)


def _fit_head_labeller(
    network: Network, config: Config, rows: RowReader, seed: int, device: torch.device
) -> tuple[Labeller, RowLabels]:
    """Labels by the label head of a network, which only their confidence and the outlier scores are fitted to."""
    some = evenly_spaced(len(rows), config.max_landmarks)
    heads = network_outputs(network, lambda H: (network.outputs(H), network.y(H)), rows.chunks(some), device)
    outputs, Y = map(torch.cat, zip(*heads, strict=True))
    agreement = _replicated(network, config, rows, some, outputs.argmax(1).cpu().numpy(), device)
    ranks.broadcast(Y)
    kernel = make_kernel(config, Y[torch.from_numpy(evenly_spaced(len(Y), 1024))])
    order = torch.arange(config.n_clusters, device=device)
    partition = HeadPartition(kernel, order, calibrated_temperature(outputs, agreement))
    return _finish(network, config, rows, device, partition, seed)


def _replicated(
    network: Network, config: Config, rows: RowReader, chosen: np.ndarray, labels: np.ndarray, device: torch.device
) -> float:
    """The share of rows whose cluster is found again from half of the rows (`replicated_share`)."""
    width = 1 if config.from_walk else int(np.prod(rows.array.shape[1:]))  # the coordinates of a walk are few
    some = evenly_spaced(len(chosen), min(REPLICATED_ROWS, max(INPUT_NUMBERS // width, 2)))
    points = torch.cat([start_view(network, config, X.to(device)) for X in rows.chunks(chosen[some])])
    share = torch.tensor(replicated_share(points, labels[some], config.n_clusters), dtype=torch.float64)
    ranks.broadcast(share)
    return float(share)


def _finish(
    network: Network,
    config: Config,
    rows: RowReader,
    device: torch.device,
    partition: Partition | HeadPartition,
    seed: int,
) -> tuple[Labeller, RowLabels]:
    """Label all rows, and number the clusters by size."""
    outliers = _fit_outliers(network, config, rows, device, seed)
    labeller = Labeller(network, config, device, partition, outliers)
    labels, confidence, strangeness = (np.concatenate(p) for p in zip(*labeller.label(rows, True), strict=True))
    partition, labels = partition.ordered(labels)
    outliers = replace(outliers, quantiles=strangeness_quantiles(strangeness))
    threshold = noise_threshold(strangeness, config.noise)
    marked = mark_noise(labels, strangeness, threshold)
    strays = find_strays(labels, strangeness > noise_threshold(strangeness, "auto"))
    row_labels = RowLabels(labels, marked, strays, confidence, outliers.scores(strangeness))
    return replace(labeller, partition=partition, outliers=outliers, threshold=threshold), row_labels


def find_strays(clusters: np.ndarray, is_noise: np.ndarray) -> list[int]:
    """Clusters of which more than half of the rows are noise."""
    sizes = np.bincount(clusters)
    return np.flatnonzero(2 * np.bincount(clusters[is_noise], minlength=len(sizes)) > sizes).tolist()


def mark_noise(clusters: np.ndarray, strangeness: np.ndarray, threshold: float) -> np.ndarray:
    """Labels: the clusters, -1 for rows that are stranger than the threshold."""
    return np.where(strangeness > threshold, -1, clusters)


def _fit_outliers(network: Network, config: Config, rows: RowReader, device: torch.device, seed: int) -> OutlierModel:
    width = int(np.prod(rows.array.shape[1:]))
    some = sample_references(len(rows), seed, min(N_REFERENCES, max(INPUT_NUMBERS // width, 2)))
    parts = []
    for X, full in rows.chunks_with_length(some):
        [H] = network_outputs(network, lambda H: H, [X], device)
        parts.append((full.to(device), point_view(network, config, X.to(device), H)))
    chosen, points = map(torch.cat, zip(*parts, strict=True))
    ranks.broadcast(chosen, points)
    return fit_outlier_model(chosen, points)


# ---- which affinity, of which rows ---------------------------------------------------------------------------------


def make_kernel(config: Config, landmarks: Tensor, *, eta: float | None = None, power: float | None = None) -> Kernel:
    """The affinity of any row with the landmarks; `eta` and `power` replace those of the configuration."""
    eta = config.eta if eta is None else eta
    power = config.power if power is None else power
    kernels: dict[str, Callable[[Tensor], Kernel]] = {
        "gram": GramKernel,
        "coefficients": lambda Y: _coefficient_kernel(config, Y, eta),
        "neighbours": NeighbourKernel,
    }
    kernel = kernels[config.label_affinity](landmarks)
    return kernel if power == 1 else PowerKernel(kernel, power)


def _coefficient_kernel(config: Config, landmarks: Tensor, eta: float | None) -> CoefficientKernel:
    assert eta is not None
    return CoefficientKernel(landmarks, eta, 1 if config.normaliser == "softmax" else config.half_steps)


def _is_dense(config: Config, constraints: Constraints | None) -> bool:
    """Whether landmarks can approximate the affinity of all rows; constraints make entries that they cannot."""
    return config.label_affinity == "gram" and config.power <= config.rules.dense and constraints is None


def _choose_max_landmarks(config: Config, constraints: Constraints | None) -> Config:
    """More landmarks where each describes only the rows close to it."""
    automatic = "max_landmarks" in config.automatic and config.label_affinity == "gram"
    if automatic and not _is_dense(config, constraints):
        return replace(config, max_landmarks=config.rules.max_landmarks)
    return config


def _choose_rows(config: Config, n_rows: int, seed: int, constraints: Constraints | None) -> np.ndarray:
    """The rows that are clustered, ascending: all, or a sample in which rows with constraints come first."""
    size = config.max_landmarks
    if n_rows > size and _is_dense(config, constraints):
        size = max(size, config.rules.clustered_rows)
    if n_rows <= size:
        return np.arange(n_rows)
    chosen = generator(seed, Stream.LANDMARKS).choice(n_rows, size, replace=False)
    if constraints is not None:
        known = constraints.draw_rows(size, (seed, Stream.KNOWN_ROWS))
        chosen = np.concatenate([known, chosen[~np.isin(chosen, known)]])[:size]
    return np.sort(chosen)


def _choose_power(config: Config, Y: Tensor, rows: RowReader, chosen: np.ndarray, seed: int) -> Config:
    """The exponent of the affinity, from what was learned, if the shape of the data did not decide it."""
    k = config.n_clusters
    if "power" not in config.automatic or config.power != 1 or k == 1:
        return config
    step = -(-len(Y) // min(config.rules.rows_to_judge_sizes, config.max_landmarks))
    some = Y[::step]

    def labels(power: float) -> np.ndarray:
        return spectral_partition(PowerKernel(GramKernel(some), power), k, config.n_init, seed).labels(some)

    if config.label_affinity == "neighbours" and 2 * k <= len(Y):
        kernel = make_kernel(config, Y, power=1.0)
        gaps = {power: eigengap(PowerKernel(kernel, power), k) for power in (1.0, config.rules.squared)}
        power = max(gaps, key=gaps.__getitem__)
    elif config.label_affinity == "gram" and len(some) >= config.rules.min_rows_per_cluster * k:
        X = torch.cat([X.flatten(1) for X in rows.chunks(chosen[::step])])
        near = nearest_neighbours(X, config.rules.max_neighbors).cpu().numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the final labels give the warnings that matter
            power = choose_power(labels, near, config.rules)
    else:
        return config
    shared = torch.tensor(power, dtype=torch.float64)
    ranks.broadcast(shared)
    return replace(config, power=float(shared))


def _fit_partition(
    config: Config,
    Y: Tensor,
    chosen: np.ndarray,
    seed: int,
    constraints: Constraints | None,
    device: torch.device,
) -> Partition:
    """Clusters of the chosen rows: exactly, each row a landmark, or approximated from fewer landmarks."""
    k = config.n_clusters
    if len(Y) <= config.max_landmarks:
        known = None
        if constraints is not None:
            codes = constraints.restrict(chosen).codes(len(chosen))
            known = LandmarkConstraints(constraints.relation_of(chosen).to(device), codes)
        return spectral_partition(make_kernel(config, Y), k, config.n_init, seed, known)
    step = -(-len(Y) // min(config.max_landmarks, nystroem_landmarks_for(k, config.rules)))
    return spectral_partition(make_kernel(config, Y[::step]), k, config.n_init, seed, rows=Y)


def start_view(network: Network, config: Config, X: Tensor) -> Tensor:
    """Rows as a fit sees them before training: what labels are held against.

    Parameters
    ----------
    network : Network
    config : Config
    X : Tensor
        Rows as the network sees them.

    Returns
    -------
    Tensor of shape (n, c)
        Coordinates of a walk, the whitened features of images (nearest images in pixels mislead), or else the rows.
    """
    with torch.inference_mode():
        if config.from_walk:
            return network.encoder[0](X)  # type: ignore[index]
        return network.eval().encode(X).flatten(1) if config.whitened else X.flatten(1)


def network_outputs(
    network: Network,
    head: Callable[[Tensor], Output],
    batches: Iterable[Tensor],
    device: torch.device,
    encoded: bool = False,
) -> Iterator[Output]:
    """What a head gives for each batch, in evaluation mode, in which batch normalisation treats each row alone.

    Parameters
    ----------
    network : Network
    head : function of the encoder's output
    batches : iterable of tensors
        Rows, or the encoder's output if `encoded`.
    device : torch.device
    encoded : bool
    """
    network.eval()
    for X in batches:
        with torch.inference_mode():
            output = head(X if encoded else network.encode(X.to(device)))
        yield output
