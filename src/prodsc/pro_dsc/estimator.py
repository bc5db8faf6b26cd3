"""PRO-DSC as a scikit-learn estimator: its parameters, and the pieces of its training."""

import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from prodsc import ranks
from prodsc.core import metrics
from prodsc.core.graph import nearest_neighbours, spectral_partition
from prodsc.core.graph.number import KCurve
from prodsc.core.losses import Objective, RememberedBlockDiagonal
from prodsc.core.self_expression import perplexity
from prodsc.errors import InputError, ParameterError
from prodsc.estimators.capabilities import Capability
from prodsc.nn import Network, used_dtype
from prodsc.pro_dsc.building import build_network, build_objective, build_phases, expressed, used_gamma
from prodsc.pro_dsc.constraints import links
from prodsc.pro_dsc.defaults import SHARP, eta_for, settled
from prodsc.pro_dsc.labeller import Labelling
from prodsc.pro_dsc.neighbour_sampler import MOST, Views
from prodsc.pro_dsc.number import k_of_rows
from prodsc.random import StepStream, Stream, evenly_spaced, generator
from prodsc.sources.rows import RowReader, as_array
from prodsc.sources.stored import StoredRows
from prodsc.training import Callback, Phase, Step, Training
from prodsc.training.guard import CollapseGuard
from prodsc.training.stopping import RULES, BestWeightsCallback, StopWhenConverged


class PRODSC(Labelling):
    """Deep subspace clustering that keeps its representation from collapsing (PRO-DSC, ICLR 2025).

    Learns unit rows Z in a union of orthogonal subspaces, and coefficients C by which the rows express each
    other, by minimising over batches

        -1/2 logdet(I + alpha Z'Z) + gamma/2 ||Z - ZC||^2 / n + beta * r(C)

    then clusters the affinity spectrally. Labels are never needed. The parameters are described by
    `prodsc fit --help` and in docs/parameters.md.

    Attributes
    ----------
    labels_ : array of int, the cluster of each training row; cluster 0 is the largest.
    confidence_ : array of float, how sure each of these labels is (after `fit`; not part of a saved model).
    outlier_score_ : array of float, `outlier_score` of the training rows (likewise).
    known_clusters_ : dict from cluster to the known label it stands for; empty without `known_labels`.
    n_clusters_ : the number of clusters, given or (n_clusters="auto") estimated.
    k_curve_ : how good each number of clusters is, when it was estimated; else None.
    history_ : dict of columns, one row per training step.
    settled_ : dict, what each parameter that was "auto" became (gamma and n_clusters: gamma_ and n_clusters_).
    gamma_ : the weight of self-expression at the end of training (`on_collapse="adjust"` may have lowered it).
    n_features_in_, feature_names_in_ : as in scikit-learn.
    """

    def __init__(
        self,
        n_clusters: int | str = 8,
        *,
        encoder: str | nn.Module = "auto",
        hidden_size: int | str = "auto",
        head_hidden_size: int | None = None,
        n_components: int | str = "auto",
        channels: Sequence[int] = (10, 20, 30),
        kernel_sizes: Sequence[int] = (5, 3, 3),
        pretrain_epochs: int | str = "auto",
        pretrain_batch_size: int = 100,
        pretrain_learning_rate: float = 1e-3,
        scaling: str = "unit",
        eta: float | str = "auto",
        normaliser: str = "softmax",
        half_steps: int = 5,
        coefficient_form: str = "symmetric",
        gamma: float | str = "auto",
        beta: float = 200.0,
        eps: float = 0.1,
        anti_collapse: str = "coding-rate",
        regulariser: str = "block-diagonal",
        regulariser_k: int | None = None,
        batch_size: int | str = "auto",
        epochs: int | str = "auto",
        neighbour_views: int | str = "auto",
        keep: str = "auto",
        warmup_steps: int = 50,
        start: str = "auto",
        eigensolver: str = "auto",
        learning_rate: float | str = "auto",
        learning_rate_encoder: float | None = None,
        learning_rate_h: float | None = None,
        momentum: float = 0.9,
        weight_decay: float = 1e-4,
        weight_decay_h: float = 5e-3,
        on_collapse: str = "warn",
        label_affinity: str = "auto",
        power: float | str = "auto",
        max_landmarks: int | str = "auto",
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        precision: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.encoder = encoder
        self.hidden_size = hidden_size
        self.head_hidden_size = head_hidden_size
        self.n_components = n_components
        self.channels = channels
        self.kernel_sizes = kernel_sizes
        self.pretrain_epochs = pretrain_epochs
        self.pretrain_batch_size = pretrain_batch_size
        self.pretrain_learning_rate = pretrain_learning_rate
        self.scaling = scaling
        self.eta = eta
        self.normaliser = normaliser
        self.half_steps = half_steps
        self.coefficient_form = coefficient_form
        self.gamma = gamma
        self.beta = beta
        self.eps = eps
        self.anti_collapse = anti_collapse
        self.regulariser = regulariser
        self.regulariser_k = regulariser_k
        self.batch_size = batch_size
        self.epochs = epochs
        self.neighbour_views = neighbour_views
        self.keep = keep
        self.warmup_steps = warmup_steps
        self.start = start
        self.eigensolver = eigensolver
        self.learning_rate = learning_rate
        self.learning_rate_encoder = learning_rate_encoder
        self.learning_rate_h = learning_rate_h
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.weight_decay_h = weight_decay_h
        self.on_collapse = on_collapse
        self.label_affinity = label_affinity
        self.power = power
        self.max_landmarks = max_landmarks
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.precision = precision
        self.verbose = verbose

    capabilities = frozenset(Capability)
    _given: tuple[Any, ...] = ()  # what is known of a few rows, during `fit`

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        known_labels: Any = None,
        must_link: Any = None,
        cannot_link: Any = None,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | Path | None = None,
    ) -> Self:
        """Cluster the rows of X; `y` is ignored. What is known of a few rows helps (docs/knowledge.md).

        `known_labels`: one label for each row, -1, None or NaN where it is not known, or a mapping from row to label.
        `must_link`, `cannot_link`: pairs (i, j) of rows that belong to one cluster, and that do not.
        `callbacks`, `checkpoint`: as for every method.
        """
        self._given = (known_labels, must_link, cannot_link)
        if Capability.CONSTRAINTS not in self.capabilities and any(given is not None for given in self._given):
            raise ParameterError(
                f"{type(self).__name__} takes no known labels or pairs. Leave them out, or use PRODSC."
            )
        return super().fit(X, y, callbacks=callbacks, checkpoint=checkpoint)

    def check(self, X: Any, *, known_labels: Any = None, must_link: Any = None, cannot_link: Any = None) -> None:
        """Raise what `fit` would raise or warn of for these parameters and data, without training."""
        array = as_array(X)
        super().check(array)
        most = len(array) if isinstance(self.n_clusters, str) else self.n_clusters
        links(len(array), most, known_labels, must_link, cannot_link)

    # ---- the pieces of a fit -------------------------------------------------------------------------------

    def _number_of_clusters(self, array: Any) -> int:
        self.k_curve_: KCurve | None = None
        if not isinstance(self.n_clusters, str):
            return super()._number_of_clusters(array)
        self.k_curve_ = curve = k_of_rows(self._rows(array))
        if not curve.clear:
            raise InputError(
                f"n_clusters='auto': {curve.summary()} Give a number, for example "
                f"{' or '.join(map(str, curve.near[:3]))}; `prodsc k` or prodsc.estimate_k(X) shows the curve."
            )
        k = torch.tensor(curve.k)
        ranks.broadcast(k)
        return int(k)

    def _settle(self, shape: tuple[int, ...]) -> None:
        self._use(settled(vars(self), shape, self.n_clusters_))

    @property
    def _flat(self) -> bool:
        return hasattr(self, "settings_") and self.settings_.encoder == "mlp"

    def _network(self, sample: Tensor) -> Network:
        network = build_network(self.settings_, sample, self.seed_)
        network.dtype = used_dtype(self.precision, self.device_)
        return network

    def _prepare(self, rows: RowReader) -> None:
        if self.settings_.batch_size <= self.n_clusters_ < len(rows):
            warnings.warn(
                f"batch_size={self.settings_.batch_size} is not larger than n_clusters={self.n_clusters_}, so no batch "
                "can show all clusters. Use a batch_size of several times n_clusters.",
                UserWarning,
                stacklevel=4,
            )
        self._links = links(len(rows), self.n_clusters_, *self._given)
        self.gamma_ = used_gamma(self.settings_, min(len(rows), self.settings_.batch_size))
        self._training_rows = rows  # of this fit; `_finish` lets go of them
        self._frozen: Tensor | None = None
        self._views_: Views | None = None
        self._watched: tuple[np.ndarray, np.ndarray] | None = None

    def _objective(self) -> Objective[Step]:
        """The list of terms that makes the method."""
        memory, n = None, len(self._training_rows)
        if self.settings_.eigensolver == "remembered":
            memory = RememberedBlockDiagonal(n, min(self.settings_.regulariser_k or self.n_clusters_, n))
        return build_objective(self.settings_, self.gamma_, self._links is not None, memory)

    def _phases(self, objective: Objective[Step], n_rows: int) -> list[Phase]:
        return build_phases(self.settings_, objective, n_rows, self.seed_, self._whiten, self._links)

    def _step(self, rows: RowReader, phase: Phase, t: int) -> Step:
        batch = phase.batches[t]
        R = self._relation(batch) if "links" in phase.terms else None
        if self.settings_.start == "whitened" and phase.name == "joint":  # the encoder is frozen: one pass is enough
            if self.settings_.eta == "auto":
                self._settle_eta(rows)
            if isinstance(rows.array, StoredRows):  # unless the result might not fit in memory
                H = self._encoded([self._batch(rows, phase, t)])
            else:
                if self._frozen is None:
                    self._frozen = self._encoded(rows.chunks())
                H = self._frozen[torch.from_numpy(self._share(phase, t))]
            return Step(
                self.network_, H, lambda Y: expressed(self.settings_, Y, R), batch, H, R, self._near(rows, phase, t, H)
            )
        X = self._batch(rows, phase, t)
        return Step(
            self.network_, X, lambda Y: expressed(self.settings_, Y, R), batch, R=R, near=self._near(rows, phase, t, X)
        )

    def _whiten(self, network: Network) -> None:
        """The closed form of warm-up, from all training rows."""
        assert network.whitening is not None
        network.eval()
        with torch.inference_mode():
            network.whitening.fit(
                lambda: (network.encoder(X.to(self.device_)).flatten(1) for X in self._training_rows.chunks())
            )
        ranks.broadcast(network.whitening.W)

    def _settle_eta(self, rows: RowReader) -> None:
        """From the whitened features, which do not change: a resumed fit finds the same eta."""
        some = evenly_spaced(len(rows), self.settings_.batch_size)
        self._agreed("eta", eta_for(normalize(self._encoded(rows.chunks(some))), SHARP / self.n_clusters_))

    def _near(self, rows: RowReader, phase: Phase, t: int, X: Tensor) -> Tensor | None:
        """What Y of a joint step comes from: neighbours of this rank's share; rows of which something is known stay."""
        if phase.name != "joint" or self.settings_.neighbour_views == 0:
            return None
        batch, views = phase.batches[t], self._views(rows)
        mine = ranks.share(len(batch))
        drawn = views.drawn(len(batch), (*phase.batches.seed, t, StepStream.NEIGHBOUR_VIEW))
        if self._links is not None:
            drawn[np.isin(batch, self._links.rows)] = -1
        return views.of(batch[mine], X, drawn[mine])

    def _views(self, rows: RowReader) -> Views:
        """The neighbours of the rows, in the space of what the network learns from."""
        if self._views_ is None:
            read = (
                self._encoded
                if self.settings_.start == "whitened"
                else lambda parts: torch.cat([*parts]).to(self.device_)
            )
            self._views_ = Views(rows, max(1, self.settings_.neighbour_views), self.seed_, read)
        return self._views_

    def _look(self) -> tuple[float, float]:
        """Of the network as it is, over some rows: how well neighbours agree on their labels, and by how many rows a
        row is expressed, in clusters of average size."""
        if self._watched is None:
            views = self._views(self._training_rows)
            sample = self._some(len(views.places))
            found = nearest_neighbours(views.points[torch.from_numpy(sample).to(self.device_)], MOST)
            self._watched = views.places[sample], found.cpu().numpy()
        watched, near = self._watched
        labels, Y = self._labels_now(watched)
        return metrics.agreement_beyond_chance(labels, near), self.n_clusters_ * perplexity(Y, self.settings_.eta)

    def _some(self, n: int) -> np.ndarray:
        """Which of so many rows are watched, ascending."""
        some = generator(self.seed_, Stream.SCORED_ROWS).permutation(n)
        return np.sort(some[: max(RULES.n_rows, 4 * self.n_clusters_)])

    def _labels_now(self, watched: np.ndarray) -> tuple[np.ndarray, Tensor]:
        """Labels by the network as it is of some rows, clustered on their own, and their Y."""
        if self._frozen is not None:
            parts: Iterable[Tensor] = self._outputs(self.network_.y, [self._frozen[torch.from_numpy(watched)]], True)
        else:
            parts = self._outputs(self.network_.y, self._training_rows.chunks(watched))
        Y = torch.cat([*parts])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong with labels is said of those that stay
            return spectral_partition(self._plain_kernel(Y), self.n_clusters_, 1, self.seed_).labels(Y), Y

    def _also_about(self) -> dict[str, Any]:
        return {} if self._links is None else {"links": self._links.digest()}

    def _listeners(self) -> list[Callback]:
        guard = CollapseGuard(self.on_collapse, self.eps)  # type: ignore[arg-type]
        if self.settings_.keep == "best":
            return [guard, BestWeightsCallback(self._look, self.network_)]
        if self.settings_.keep == "settled":
            some = self._some(len(self._training_rows))
            return [guard, StopWhenConverged(lambda: self._labels_now(some)[0], len(some))]
        return [guard]

    def _finish(self, training: Training, rows: RowReader) -> None:
        self.gamma_ = training.objective.weights["self_expression"]
        if self.settings_.eta == "auto":  # there were no joint steps
            self._settle_eta(rows)
        del self._training_rows, self._frozen, self._views_, self._watched
        self._label(rows)
        self.known_clusters_ = {} if self._links is None else self._links.clusters(self.labels_)
        del self._given, self._links

    def _encoded(self, batches: Iterable[Tensor]) -> Tensor:
        """H of all batches, for an encoder that does not change any more."""
        with torch.no_grad():
            return torch.cat([self.network_.encode(X.to(self.device_)) for X in batches])

    def _takes_images(self, array: Any) -> bool:
        own_or_auto = isinstance(self.encoder, nn.Module) or self.encoder == "auto"
        return self.encoder == "conv" or (own_or_auto and array.ndim > 2)
