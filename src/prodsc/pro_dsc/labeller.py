"""What follows training: labels of the landmarks, of every row of a fit, and of new ones; how sure they are."""

import warnings
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import starmap
from typing import Any, TypeVar

import numpy as np
import torch
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import Tags
from torch import Tensor

from prodsc import ranks
from prodsc.core.graph import (
    CoefficientKernel,
    GramKernel,
    Kernel,
    LandmarkConstraints,
    NeighbourKernel,
    OutlierModel,
    Partition,
    PowerKernel,
    calibrate,
    eigengap,
    nearest_neighbours,
    neighbour_agreement,
    residual_quantiles,
    sample_dictionary,
    spectral_partition,
)
from prodsc.core.graph.number import KCurve
from prodsc.errors import ModelFileError
from prodsc.estimators import model_file
from prodsc.estimators.base import LABELLED
from prodsc.estimators.deep import DeepClusterer
from prodsc.pro_dsc.building import Settings, expressed
from prodsc.pro_dsc.constraints import Links
from prodsc.pro_dsc.defaults import AUTO, MOST_LANDMARKS, ROWS_TO_TELL, SQUARED, power_of_sizes, telling_for
from prodsc.pro_dsc.neighbour_sampler import MOST
from prodsc.random import Stream, evenly_spaced, generator
from prodsc.sources.rows import RowReader

Found = TypeVar("Found")
CALIBRATING = 2**26  # numbers of the input, 256 MB, that rows are compared by
DENSE = 2.0  # largest power of |YY'| that a few landmarks can tell; of a sharper one only the nearest say something
SAMPLE = 2**15  # rows that are clustered together by a dense affinity, where there are more
SIZED = 2048  # landmarks that tell whether clusters are of like size


class Labelling(ClassNamePrefixFeaturesOutMixin, TransformerMixin, DeepClusterer):
    """A trained network, settings that are settled, and the graph over its Y."""

    power: float | str
    max_landmarks: int | str
    n_init: int
    settled_: dict[str, Any]
    settings_: Settings
    gamma_: float
    k_curve_: KCurve | None
    known_clusters_: dict[int, Any]
    expression_: Any  # what `outlier_score` needs; None in a model saved before there was one
    _links: Links | None = None  # what is known of a few rows, during `fit`

    # ---- settings ------------------------------------------------------------------------------------------

    def _use(self, settled: dict[str, Any]) -> None:
        self.settled_ = settled
        given = {name: value for name, value in vars(self).items() if not name.endswith("_") and name[0] != "_"}
        self.settings_ = Settings(**given | {"n_clusters": self.n_clusters_} | settled)

    def _agreed(self, name: str, value: float) -> None:
        """Use a value that depends on the data, the same on every rank."""
        shared = torch.tensor(value, dtype=torch.float64)
        ranks.broadcast(shared)
        self._use(self.settled_ | {name: float(shared)})

    def _settle_power(self, landmarks: Tensor, rows: RowReader, chosen: np.ndarray) -> None:
        """From what was learned, if the shape of the data did not settle it."""
        p, k = self.settings_, self.n_clusters_
        if self.power != AUTO or p.power != 1 or k == 1:
            return
        every = -(-len(landmarks) // min(SIZED, p.max_landmarks))
        some = landmarks[::every]

        def labels(power: float) -> np.ndarray:
            return spectral_partition(PowerKernel(GramKernel(some), power), k, self.n_init, self.seed_).labels(some)

        if p.label_affinity == "neighbours" and 2 * k <= len(landmarks):
            kernel = self._plain_kernel(landmarks)
            gaps = {power: eigengap(PowerKernel(kernel, power), k) for power in (1.0, SQUARED)}
            self._agreed("power", max(gaps, key=gaps.__getitem__))
        elif p.label_affinity == "gram" and len(some) >= ROWS_TO_TELL * k:
            X = torch.cat([X.flatten(1) for X in rows.chunks(chosen[::every])])
            near = nearest_neighbours(X, MOST).cpu().numpy()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # what is wrong with labels is said of those that stay
                self._agreed("power", power_of_sizes(labels, near))

    def _settle_landmarks(self) -> None:
        """More of them where each speaks for the rows near to it only, or something is known of some."""
        if self.max_landmarks == AUTO and self.settings_.label_affinity == "gram" and not self._dense:
            self._use(self.settled_ | {"max_landmarks": MOST_LANDMARKS})

    # ---- labels of a fit ----------------------------------------------------------------------------------------

    def _label(self, rows: RowReader) -> None:
        """Cluster the landmarks or a sample, then give every row the label that `predict` would give it."""
        self._settle_landmarks()
        chosen = self._chosen(len(rows))
        both = zip(*self._outputs(self._y_and_z, rows.chunks(chosen)), strict=True)
        Y, Z = map(torch.cat, both)
        ranks.broadcast(Y, Z)
        self._settle_power(Y, rows, chosen)
        self._settle_landmarks()  # power may be another now
        if len(chosen) > self.settings_.max_landmarks and not self._dense:
            fewer = evenly_spaced(len(chosen), self.settings_.max_landmarks)
            Y, Z, chosen = Y[torch.from_numpy(fewer)], Z[torch.from_numpy(fewer)], chosen[fewer]
        partition = self._partition(Y, chosen)
        ranks.broadcast(partition.degrees, partition.directions, partition.centres)
        self.partition_ = partition = self._calibrated(partition, rows, chosen, Y)
        some = sample_dictionary(len(Y), self.seed_)
        self.expression_ = self._expression(Y[some], Z[some], np.zeros(0))
        labels, confidence, residuals = (np.concatenate(p) for p in zip(*self._labelled(rows, True), strict=True))
        self.partition_, self.labels_ = partition.ordered(labels)
        self.confidence_ = confidence
        self.expression_ = replace(self.expression_, quantiles=residual_quantiles(residuals))
        self.outlier_score_ = self.expression_.scores(residuals)

    def _partition(self, Y: Tensor, chosen: np.ndarray) -> Partition:
        """Clusters of the chosen rows: exactly, each a landmark, or by fewer landmarks."""
        k, p = self.n_clusters_, self.settings_
        if len(Y) <= p.max_landmarks:
            return spectral_partition(self._kernel(Y), k, self.n_init, self.seed_, self._known(chosen))
        every = -(-len(Y) // min(p.max_landmarks, telling_for(k)))
        return spectral_partition(self._kernel(Y[::every]), k, self.n_init, self.seed_, rows=Y)

    @property
    def _dense(self) -> bool:
        """Can fewer landmarks tell the affinity of rows? What is known of some makes entries that they cannot."""
        p = self.settings_
        return p.label_affinity == "gram" and p.power <= DENSE and self._links is None

    def _calibrated(self, partition: Partition, rows: RowReader, chosen: np.ndarray, landmarks: Tensor) -> Partition:
        """No surer of the landmarks' labels than their neighbours in the input agree on them."""
        n = min(len(chosen), self.settings_.max_landmarks, max(CALIBRATING // self.n_features_in_, 2))
        some = evenly_spaced(len(chosen), n)
        X = torch.cat([X.flatten(1) for X in rows.chunks(chosen[some])])
        Y = landmarks[torch.from_numpy(some)]
        agreement = torch.tensor(neighbour_agreement(X, partition.labels(Y)), dtype=torch.float64)
        ranks.broadcast(agreement)
        return calibrate(partition, Y, float(agreement))

    def _chosen(self, n_rows: int) -> np.ndarray:
        """The rows that are clustered, ascending: all, or as many as may be, known ones first."""
        most = self.settings_.max_landmarks
        if n_rows > most and self._dense:
            most = max(most, SAMPLE)
        if n_rows <= most:
            return np.arange(n_rows)
        chosen = generator(self.seed_, Stream.LANDMARKS).choice(n_rows, most, replace=False)
        if self._links is not None:
            known = self._links.drawn(most, (self.seed_, Stream.KNOWN_ROWS))
            chosen = np.concatenate([known, chosen[~np.isin(chosen, known)]])[:most]
        return np.sort(chosen)

    def _known(self, chosen: np.ndarray) -> LandmarkConstraints | None:
        if self._links is None:
            return None
        return LandmarkConstraints(self._relation(chosen), self._links.among(chosen).codes(len(chosen)))

    def _relation(self, rows: np.ndarray) -> Tensor:
        """What is known of the pairs of these rows."""
        assert self._links is not None
        return torch.from_numpy(self._links.among(rows).matrix(len(rows))).to(self.device_)

    def _kernel(self, landmarks: Tensor) -> Kernel:
        kernel, power = self._plain_kernel(landmarks), self.settings_.power
        return kernel if power == 1 else PowerKernel(kernel, power)

    def _plain_kernel(self, landmarks: Tensor) -> Kernel:
        """Not sharpened: looks during training see too few rows for that."""
        kernels: dict[str, Callable[[Tensor], Kernel]] = {
            "gram": GramKernel,
            "coefficients": self._coefficient_kernel,
            "neighbours": NeighbourKernel,
        }
        return kernels[self.settings_.label_affinity](landmarks)

    def _coefficient_kernel(self, landmarks: Tensor) -> CoefficientKernel:
        return CoefficientKernel(
            landmarks, self.settings_.eta, 1 if self.settings_.normaliser == "softmax" else self.settings_.half_steps
        )

    def _expression(self, Y: Tensor, Z: Tensor, quantiles: np.ndarray) -> OutlierModel:
        return OutlierModel(self._coefficient_kernel(Y), Z, self.settings_.coefficient_form, quantiles)

    # ---- use ----------------------------------------------------------------------------------------------------

    def predict(self, X: Any) -> np.ndarray:
        """The cluster of each row, whatever the other rows of the call are."""
        return np.concatenate([found[0] for found in self._labelled(self._new_rows(X))])

    def predict_proba(self, X: Any) -> np.ndarray:
        """n x k: how sure each label is, largest where `predict` puts the row."""
        rows = self._new_rows(X)
        return np.concatenate([*map(self.partition_.probabilities, self._outputs(self.network_.y, rows.chunks()))])

    def outlier_score(self, X: Any, *, raw: bool = False) -> np.ndarray:
        """How badly each row is expressed by the training data: the share of training rows that are better expressed.

        `raw` gives the residual ||z - sum_j c_j z_j|| itself, which also tells apart rows worse than all of training.
        """
        if self.expression_ is None:
            raise ModelFileError("this model was saved before rows had outlier scores. Fit it again.")
        residuals = np.concatenate([found[2] for found in self._labelled(self._new_rows(X), True)])
        return residuals if raw else self.expression_.scores(residuals)

    def labelled(self, X: Any) -> Iterator[tuple[np.ndarray, ...]]:
        """Labels, how sure they are, and outlier scores, some rows after the other."""
        for labels, sure, *residuals in self._labelled(self._new_rows(X), self.expression_ is not None):
            yield labels, sure, *(self.expression_.scores(some) for some in residuals)

    def _labelled(self, rows: RowReader, residuals: bool = False) -> Iterator[tuple[np.ndarray, ...]]:
        """Labels, confidence and, if asked for, residuals. On several ranks each labels a share of what is in files,
        and all get all."""

        def found(Y: Tensor, Z: Tensor) -> tuple[Tensor, ...]:
            both = self.partition_.labels_and_confidence(Y)
            return (*both, self.expression_.residuals(Y, Z).double().cpu()) if residuals else both

        heads = self._y_and_z if residuals else lambda H: (self.network_.y(H), H)
        none = (torch.zeros(0, dtype=torch.long), *[torch.zeros(0, dtype=torch.float64)] * (1 + residuals))
        for n, mine in rows.rounds(LABELLED):  # a rank may have no rows
            parts = zip(none, *starmap(found, self._outputs(heads, rows.chunks(mine))), strict=True)
            all_parts = map(torch.cat, parts)
            yield tuple((ranks.gather(part, n) if rows.shared else part).numpy() for part in all_parts)

    def transform(self, X: Any) -> np.ndarray:
        """Z: unit rows, each cluster near a subspace of its own."""
        rows = self._new_rows(X)
        return torch.cat([*self._outputs(self.network_.z, rows.chunks())]).cpu().numpy()

    def affinity(self, X: Any) -> np.ndarray:
        """The n x n affinity that spectral clustering would see for these rows (by `label_affinity`)."""
        Y = self._y(X)
        return self._kernel(Y).matrix().cpu().numpy()

    def coefficients(self, X: Any) -> np.ndarray:
        """C, n x n: column j expresses row j by the others."""
        return expressed(self.settings_, self._y(X)).C.cpu().numpy()

    def _y(self, X: Any) -> Tensor:
        rows = self._new_rows(X)
        return torch.cat([*self._outputs(self.network_.y, rows.chunks())])

    def _y_and_z(self, H: Tensor) -> tuple[Tensor, Tensor]:
        return self.network_.y(H), self.network_.z(H)

    def _outputs(
        self, head: Callable[[Tensor], Found], batches: Iterable[Tensor], encoded: bool = False
    ) -> Iterator[Found]:
        """Z, Y or both of each batch, in evaluation mode: batch normalisation then treats each row on its own."""
        self.network_.eval()
        for X in batches:
            with torch.inference_mode():
                found = head(X if encoded else self.network_.encode(X.to(self.device_)))
            yield found

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = super()._state()
        of_partition, about_partition = model_file.partition_state(self.partition_)
        of_expression = model_file.expression_state(self.expression_)
        curve = None if self.k_curve_ is None else self.k_curve_.to_dict()
        more = {
            "gamma": self.gamma_,
            "settled": self.settled_,
            "known_clusters": sorted(self.known_clusters_.items()),
            "k_curve": curve,
        }
        return tensors | of_partition | of_expression, facts | about_partition | more

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        self._use(facts.get("settled", {}))  # older files: all parameters have values
        super()._restore(tensors, facts)
        self.gamma_ = facts["gamma"]
        self.known_clusters_ = dict(facts.get("known_clusters", []))
        curve = facts.get("k_curve")  # older files have none
        self.k_curve_ = None if curve is None else KCurve(**curve)
        self.partition_ = model_file.restore_partition(self._kernel, tensors, facts, self.device_)
        self.expression_ = model_file.restore_expression(self._expression, tensors, self.device_)

    @property
    def _n_features_out(self) -> int:
        return self.settings_.n_components

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]  # the network computes in float32
        return tags
