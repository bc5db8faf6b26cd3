"""Do new rows still fit a model? Numbers of a batch against the band that the training rows give, cluster by cluster.

A model keeps the encoded form of some training rows, its reference. A batch of new rows is compared with the reference
rows that have the same label, so that other sizes of clusters alone are no alarm. No more rows of a cluster are
compared than the reference has: the reference could not tell a smaller difference from its own error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy.stats import hypergeom, norm
from scipy.stats import t as student
from torch import Tensor
from torch.nn.functional import normalize

from prodsc.core.graph import CoefficientKernel
from prodsc.core.graph.two_samples import N_NEIGHBORS, compare_samples, groups_of
from prodsc.core.losses.coding_rate import coding_rate, scale
from prodsc.errors import ModelFileError, ParameterError
from prodsc.estimators.model_file import under
from prodsc.memory import affordable
from prodsc.pro_dsc.labeller import make_kernel
from prodsc.random import Stream, generator, sorted_subset
from prodsc.sources.rows import RowReader, as_array
from prodsc.sources.source import RowsInput, Source

if TYPE_CHECKING:
    from prodsc.pro_dsc.estimator import PRODSC

REFERENCE_ROWS = 4096  # 4 MB of a model with 256 units; tests of a batch take seconds
REFERENCE_NUMBERS = 2**26  # of the input, 256 MB: bounds the rows of wide data
DICTIONARY_ROWS = 1024  # that express others, as many as a batch of the published runs
OUTLIER_LEVEL = 0.95  # an outlier is stranger than this share of the training rows
NUMBERS = ("strangeness", "residuals")
SUBSETS = 32  # of the reference, whose coding rates give the band


@dataclass(frozen=True)
class Reference:
    """Rows that new ones are compared with.

    Parameters
    ----------
    H : Tensor of shape (m, width)
        The rows as the encoder gives them.
    strangeness : ndarray of shape (m,)
        Their outlier scores (`outlier_score(raw=True)`).
    residuals : ndarray of shape (m,)
        What other training rows leave unexpressed of them: ||z - sum_j c_j z_j||.
    """

    H: Tensor
    strangeness: np.ndarray
    residuals: np.ndarray

    def __getitem__(self, rows: np.ndarray) -> Reference:
        return Reference(self.H[torch.from_numpy(rows)], self.strangeness[rows], self.residuals[rows])


@dataclass(frozen=True)
class Reading:
    """One number of a batch, and the band it should be in."""

    name: str
    cluster: int | None  # None for all rows
    value: float
    expected: float
    low: float
    high: float

    @property
    def alarm(self) -> bool:
        """Whether the value is outside of its band."""
        return not self.low <= self.value <= self.high


@dataclass(frozen=True)
class Monitoring:
    """What `monitor` found in a batch of rows.

    Parameters
    ----------
    n_rows : int
        Rows of the batch.
    sizes : list of int
        Rows of each cluster.
    expected_shares : list of float
        Shares of the clusters among the rows of the reference.
    readings : list of Reading
        Numbers and bands, those of all rows first.
    vanished : list of int
        Clusters that have no row here, although chance would leave them some.
    groups : list of ndarray
        Rows of this batch that lie together where the model has seen none: candidates for new clusters.
    drifted : bool
        Whether most rows lie where the model has seen none, so that there is another cause than a new cluster.
    false_alarms : float
        How often a batch of rows like those of the training is an alarm.
    names : list of str
        Of the clusters.
    new_clusters : list of int
        Clusters that `update` has added.
    """

    n_rows: int
    sizes: list[int]
    expected_shares: list[float]
    readings: list[Reading]
    vanished: list[int]
    groups: list[np.ndarray]
    drifted: bool
    false_alarms: float
    names: list[str]
    new_clusters: list[int]

    @property
    def alarms(self) -> list[Reading]:
        """Readings outside of their bands."""
        return [reading for reading in self.readings if reading.alarm]

    @property
    def alarm(self) -> bool:
        """Whether the rows do not fit the model."""
        return bool(self.alarms or self.groups or self.drifted)

    def summary(self) -> str:
        """A few sentences."""
        lines = [f"{self.n_rows} rows: {'ALARM, they do not fit the model' if self.alarm else 'they fit the model'}."]
        if self.drifted:
            lines.append("Most rows lie where the training rows do not. Look at how they were made, or fit again.")
        lines += [f"{len(rows)} rows lie together where the model has seen none." for rows in self.groups]
        lines += [f"Cluster {c} was added." for c in self.new_clusters]
        for reading in self.alarms:
            where = "all rows" if reading.cluster is None else f"cluster {reading.cluster}"
            lines.append(f"{where}: {reading.name} {reading.value:.4g}, band {reading.low:.4g} to {reading.high:.4g}.")
        lines += [f"Cluster {c} ({self.names[c]}) has no rows." for c in self.vanished]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """The same for programs."""
        content = {name: value for name, value in vars(self).items() if name not in ("readings", "groups")}
        readings = [asdict(reading) | {"alarm": reading.alarm} for reading in self.readings]
        groups = [rows.tolist() for rows in self.groups]
        return content | {"alarm": self.alarm, "readings": readings, "groups": groups}


def make_reference(model: PRODSC, rows: RowReader) -> Reference:
    """The reference of a fit, from some of its rows.

    Parameters
    ----------
    model : PRODSC
        Its labels are fitted.
    rows : RowReader
        The training rows.

    Returns
    -------
    Reference
    """
    width = int(np.prod(rows.array.shape[1:]))
    some = sorted_subset(len(rows), min(REFERENCE_ROWS, max(affordable(REFERENCE_NUMBERS) // width, 2)), model.seed_)
    return encode(model, np.asarray(rows.array[some]))


def reference_state(references: Sequence[Reference]) -> dict[str, Tensor]:
    """References as tensors of a saved model."""
    named = [(f"reference/{i}", each) for i, each in enumerate(references)]
    numbers = {f"{name}/{part}": torch.tensor(getattr(each, part)) for name, each in named for part in NUMBERS}
    return numbers | {f"{name}/H": each.H for name, each in named}


def restore_references(tensors: dict[str, Tensor], device: torch.device) -> list[Reference]:
    """References from the tensors of a saved model; none if it was saved before there were any."""
    count = sum(name.startswith("reference/") and name.endswith("/H") for name in tensors)
    parts = [under(f"reference/{i}", tensors) for i in range(count)]
    return [Reference(part["H"].to(device), *(part[name].numpy() for name in NUMBERS)) for part in parts]


def encode(model: PRODSC, X: Any) -> Reference:
    """Rows in the form in which they are compared."""
    rows = Source("X", X, columns=model._column_names())
    H = torch.cat([*model.labeller_.outputs(lambda H: H, model._new_rows(rows).chunks())]).clone()
    known = model.references_[0].H if getattr(model, "references_", None) else H
    return Reference(H, model.outlier_score(rows, raw=True), _residuals(model, H, known))


def _residuals(model: PRODSC, H: Tensor, known: Tensor) -> np.ndarray:
    """||z - sum_j c_j z_j|| of encoded rows, expressed by some of the known ones; no row expresses itself."""
    some = known[:: -(-len(known) // DICTIONARY_ROWS)]
    with torch.inference_mode():
        kernel = make_kernel(replace(model.config_, label_affinity="coefficients", power=1.0), model.network_.y(some))
        assert isinstance(kernel, CoefficientKernel)
        parts = [
            model.network_.z(part)
            - kernel.coefficients(model.network_.y(part), model.config_.coefficient_form) @ model.network_.z(some)
            for part in H.split(len(some))
        ]
    return torch.cat(parts).norm(dim=1).double().cpu().numpy()


def monitor(
    model: PRODSC, X: RowsInput, *, false_alarms: float = 0.01, reference: RowsInput | None = None
) -> Monitoring:
    """Compare new rows with the training rows of a model.

    For all rows, and for each cluster with enough rows: the share of outliers, the mean residual, the coding rate of
    the representation, and the share of new rows among the neighbours of new rows. The bands are those in which the
    numbers of training rows would be. Of many rows, some that are chosen by chance are compared.

    Parameters
    ----------
    model : PRODSC
        A fitted model.
    X : array, tensor, frame, memory map or path
        New rows.
    false_alarms : float
        How often a batch of rows that fit may be an alarm, over all numbers together.
    reference : array, tensor, frame, memory map or path, optional
        Rows that are known to fit and were not part of the fit, to compare with instead of training rows. A network
        expresses the rows it was trained on a little better than others, so that batches of thousands of rows can be
        false alarms without them.

    Returns
    -------
    Monitoring
        `alarm` says whether the rows do not fit.
    """
    if not 0 < false_alarms < 1:
        raise ParameterError(f"false_alarms must be between 0 and 1, got {false_alarms}.")
    array = as_array(X, columns=model._column_names())
    labels = np.concatenate([part[0] for part in model.labelled(X, with_outliers=False)])
    references = references_of(model)
    if reference is not None:
        held_out = as_array(reference, columns=model._column_names())
        some = sorted_subset(len(held_out), REFERENCE_ROWS, model.seed_)
        references = [encode(model, np.asarray(held_out[some])), *references[1:]]
    batch = _compared_rows(model, labels, references)
    new = encode(model, np.asarray(array[batch.rows]))
    return batch.monitoring(new, labels, false_alarms)


def references_of(model: PRODSC) -> list[Reference]:
    """The references of a model: of its fit, and of updates that added clusters."""
    if not getattr(model, "references_", None):
        raise ModelFileError("this model was saved before models could be monitored. Fit it again.")
    return model.references_


def head_labels(model: PRODSC, H: Tensor) -> np.ndarray:
    """Labels of encoded rows."""
    with torch.inference_mode():
        return model.partition_.labels(model.labeller_.label_head(H))


def _compared_rows(model: PRODSC, labels: np.ndarray, references: Sequence[Reference]) -> _Batch:
    """Of each cluster at most as many new rows as the reference has that knows it best."""
    known = [head_labels(model, reference.H) for reference in references]
    counts = np.array([np.bincount(each, minlength=model.n_clusters_) for each in known])
    random = generator(model.seed_, Stream.MONITORED_ROWS)
    rows = []
    for cluster in range(model.n_clusters_):
        mine = np.flatnonzero(labels == cluster)
        most = max(int(counts[:, cluster].max()), N_NEIGHBORS)
        rows.append(mine if len(mine) <= most else random.choice(mine, most, replace=False))
    return _Batch(model, np.sort(np.concatenate(rows)), references, known, counts)


@dataclass(frozen=True)
class _Batch:
    """The rows of a batch that are compared, and what they are compared with."""

    model: PRODSC
    rows: np.ndarray
    references: Sequence[Reference]
    known: Sequence[np.ndarray]  # labels of the rows of each reference
    counts: np.ndarray  # rows of each reference in each cluster

    def monitoring(self, new: Reference, labels: np.ndarray, false_alarms: float) -> Monitoring:
        k, mine = self.model.n_clusters_, labels[self.rows]
        testable = [c for c in range(k) if self._enough(mine == c, c)]
        readings, novelty = self._readings(new, mine, testable, false_alarms / (4 * (len(testable) + 1)))
        p_values = norm.sf(novelty)
        novel = _discoveries(p_values, false_alarms)
        drifted = 2 * len(novel) > len(mine)
        around = groups_of(np.flatnonzero(p_values < 1 - OUTLIER_LEVEL), new.H)  # a group has weaker rows at its rim
        certain = [each for each in around if np.isin(novel, each).sum() >= N_NEIGHBORS]
        groups = [] if drifted else [self.rows[each] for each in certain]
        sizes, shares = np.bincount(labels, minlength=k), self.counts[0] / self.counts[0].sum()
        unlikely = (1 - shares) ** len(labels) < false_alarms / k
        return Monitoring(
            len(labels),
            sizes.tolist(),
            shares.tolist(),
            readings,
            np.flatnonzero((sizes == 0) & unlikely).tolist(),
            groups,
            drifted,
            false_alarms,
            list(self.model.cluster_names_),
            [],
        )

    def _enough(self, mine: np.ndarray, cluster: int) -> bool:
        return bool(min(mine.sum(), self.counts[:, cluster].max()) > N_NEIGHBORS)

    def _readings(
        self, new: Reference, mine: np.ndarray, testable: list[int], level: float
    ) -> tuple[list[Reading], np.ndarray]:
        """The readings of all rows and of each cluster; and for each row how far it is from what was seen before."""
        novelty = np.full(len(mine), -np.inf)
        by_cluster, compared = [], []
        for cluster in testable:
            at = np.flatnonzero(mine == cluster)
            best = int(self.counts[:, cluster].argmax())
            old = self.references[best][np.flatnonzero(self.known[best] == cluster)]
            by_cluster += self._numbers(new[at], old, cluster, level)
            samples = {
                i: compare_samples(new.H[at], reference.H[self.known[i] == cluster])
                for i, reference in enumerate(self.references)
                if self.counts[i, cluster] > N_NEIGHBORS
            }
            novelty[at] = np.min([each.z for each in samples.values()], axis=0)
            one = samples[best]
            by_cluster.append(_above(NEIGHBOURS, cluster, one.share, one.expected, one.deviation * norm.isf(level)))
            compared.append((len(at), one))
        return [*self._overall(new, mine, compared, level), *by_cluster], novelty

    def _overall(self, new: Reference, mine: np.ndarray, compared: list[Any], level: float) -> list[Reading]:
        """All rows; the reference has as many of each cluster, so that sizes do not matter."""
        random = generator(self.model.seed_, Stream.MONITORED_ROWS)
        parts = []
        for cluster in np.unique(mine):
            best = int(self.counts[:, cluster].argmax())
            at = np.flatnonzero(self.known[best] == cluster)
            chosen = random.choice(at, min(len(at), int((mine == cluster).sum())), replace=False)
            parts.append(self.references[best][chosen])
        numbers = (np.concatenate([getattr(part, name) for part in parts]) for name in NUMBERS)
        old = Reference(torch.cat([part.H for part in parts]), *numbers)
        readings = self._numbers(new, old, None, level)
        if compared:
            n = sum(count for count, _ in compared)
            share, expected = (
                sum(c * getattr(each, name) for c, each in compared) / n for name in ("share", "expected")
            )
            deviation = np.sqrt(sum((c * each.deviation) ** 2 for c, each in compared)) / n
            readings.append(_above(NEIGHBOURS, None, share, expected, deviation * norm.isf(level)))
        return readings

    def _numbers(self, new: Reference, old: Reference, cluster: int | None, level: float) -> list[Reading]:
        quantile = float(np.quantile(self.references[0].strangeness, OUTLIER_LEVEL))
        outside, usual = (part.strangeness > quantile for part in (new, old))
        n, m = len(outside), len(usual)
        most = hypergeom.isf(level, n + m, int(outside.sum() + usual.sum()), n)  # exact, as chance would spread them
        spread = np.concatenate([new.residuals, old.residuals]).std() * np.sqrt(1 / n + 1 / m)
        means = float(new.residuals.mean()), float(old.residuals.mean())
        rate, expected, deviation = self._coding_rates(new.H, old.H)
        return [
            Reading(OUTLIERS, cluster, outside.sum() / n, usual.sum() / m, 0.0, most / n),
            _around(RESIDUAL, cluster, *means, norm.isf(level / 2) * spread),
            _around(CODING_RATE, cluster, rate, expected, student.isf(level / 2, SUBSETS - 1) * deviation),
        ]

    def _coding_rates(self, new: Tensor, old: Tensor) -> tuple[float, float, float]:
        """The coding rate of new rows, the one of as many old rows, and the deviation of their difference.

        It is that of the encoded rows at unit length: training raises the one of Z for its own rows.
        """
        size = min(len(new), len(old) // 2)
        random = generator(self.model.seed_, Stream.MONITORED_ROWS)
        alpha = scale(size, new.shape[1], self.model.config_.eps)

        def rates(H: Tensor) -> np.ndarray:
            unit = normalize(H.double())
            chosen = [torch.from_numpy(random.choice(len(H), size, replace=False)) for _ in range(SUBSETS)]
            return np.array([-float(coding_rate(unit[each], alpha)) for each in chosen])

        usual = rates(old)
        share = size / len(old)  # subsets of one sample are more alike than samples
        deviation = usual.std(ddof=1) * np.sqrt((1 + share) / (1 - share))
        return float(rates(new).mean()), float(usual.mean()), float(deviation)


OUTLIERS, RESIDUAL, CODING_RATE = "share of outliers", "mean residual", "coding rate"
NEIGHBOURS = "share of new neighbours"


def _discoveries(p_values: np.ndarray, level: float) -> np.ndarray:
    """The rows whose p-values are too small for chance, at most a share `level` of them wrongly (Benjamini-Hochberg).

    If no row is new in kind, some row is found in a share `level` of the batches at most.
    """
    order = np.argsort(p_values, kind="stable")
    below = p_values[order] <= level * np.arange(1, len(order) + 1) / max(1, len(order))
    return np.sort(order[: np.flatnonzero(below)[-1] + 1]) if below.any() else np.zeros(0, dtype=int)


def _around(name: str, cluster: int | None, value: float, expected: float, half: float) -> Reading:
    return Reading(name, cluster, value, expected, float(expected - half), float(expected + half))


def _above(name: str, cluster: int | None, value: float, expected: float, half: float) -> Reading:
    """A share, of which less than expected is no alarm."""
    return Reading(name, cluster, float(value), float(expected), 0.0, float(expected + half))
