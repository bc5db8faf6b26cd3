"""SENet: self-expressive coefficients as a network of two points, learned by an elastic net."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor

from prodsc.core.graph import spectral_partition
from prodsc.core.losses import Objective, Term, dictionary_expression, elastic_net
from prodsc.core.self_expression import CodeKernel, ExpressionNet
from prodsc.estimators import model_file
from prodsc.estimators.capabilities import Capability
from prodsc.estimators.deep import DeepClusterer
from prodsc.nn import build_seeded, initialise_expression, relu_layers
from prodsc.random import Stream, sorted_subset
from prodsc.sources.rows import RowReader
from prodsc.sources.source import RowsInput
from prodsc.training import Batches, Callback, Phase, Training
from prodsc.training.schedule import Schedule, cosine
from prodsc.types import Rows


class SENet(DeepClusterer):
    """Subspace clustering whose coefficients are a function of two points (SENet, CVPR 2021).

        gamma/2 ||x_i - sum_j c_ij x_j||^2 + sum_j (tau |c_ij| + (1 - tau)/2 c_ij^2),   c_ij = soft_b(q(x_i)'k(x_j))/m

    over the rows x_j of a dictionary, j != i. The codes c_i of the landmarks give a graph of nearest neighbours, which
    is clustered spectrally. See docs/methods/senet.md.
    """

    capabilities = DeepClusterer.capabilities | {Capability.PREDICT, Capability.PROBABILITIES, Capability.COEFFICIENTS}

    departures = (
        "rows without their mean; networks of width 256 instead of 1024; 300 steps on a dictionary of 1,000 "
        "rows instead of 100,000 on all; codes without signs; a graph of 10 nearest codes instead of 3"
    )

    network_: ExpressionNet

    def __init__(
        self,
        n_clusters: int = 8,
        *,
        hidden_sizes: Sequence[int] = (256, 256, 256),
        n_components: int = 256,
        scaling: str = "centred",
        gamma: float = 200.0,
        tau: float = 0.9,
        dictionary_size: int = 1000,
        batch_size: int = 100,
        steps: int = 300,
        learning_rate: float = 1e-3,
        gradient_clip: float = 1e-3,
        max_coefficients: int = 1000,
        n_neighbors: int = 10,
        max_landmarks: int = 4096,
        n_init: int = 10,
        random_state: int | np.random.RandomState | None = 0,
        device: str = "auto",
        verbose: int = 0,
    ):
        self.n_clusters = n_clusters
        self.hidden_sizes = hidden_sizes
        self.n_components = n_components
        self.scaling = scaling
        self.gamma = gamma
        self.tau = tau
        self.dictionary_size = dictionary_size
        self.batch_size = batch_size
        self.steps = steps
        self.learning_rate = learning_rate
        self.gradient_clip = gradient_clip
        self.max_coefficients = max_coefficients
        self.n_neighbors = n_neighbors
        self.max_landmarks = max_landmarks
        self.n_init = n_init
        self.random_state = random_state
        self.device = device
        self.verbose = verbose

    # ---- the pieces of a fit -------------------------------------------------------------------------------

    def _network(self, sample: Tensor) -> ExpressionNet:
        generator = torch.Generator().manual_seed(self.seed_)
        sizes = [sample.shape[1], *self.hidden_sizes, self.n_components]
        query, key = (build_seeded(lambda: relu_layers(sizes), generator, initialise_expression) for _ in "qk")
        return ExpressionNet(query, key)

    def _prepare(self, rows: RowReader) -> None:
        self._dictionary = self._subset(rows, self.dictionary_size, Stream.SENET_DICTIONARY)

    def _objective(self) -> Objective["SENetBatch"]:
        return Objective(
            Term("self_expression", self.gamma, lambda s: dictionary_expression(s.X, s.C, self._dictionary)),
            Term("elastic_net", 1.0, lambda s: elastic_net(s.C, self.tau)),
        )

    def _phases(self, objective: Objective[Any], n_rows: int) -> list[Phase]:
        batches = Batches(len(self._dictionary), self.batch_size, (self.seed_, Stream.FIRST_PHASE))
        return [Phase("joint", self.steps, tuple(objective.terms), batches, self._adam)]

    def _adam(self, network: ExpressionNet) -> torch.optim.Optimizer:
        optimizer = torch.optim.Adam(network.parameters(), lr=self.learning_rate, fused=True)

        def clip(*_: Any) -> None:
            torch.nn.utils.clip_grad_norm_(network.parameters(), self.gradient_clip)

        optimizer.register_step_pre_hook(clip)
        return optimizer

    def _step(self, rows: RowReader, phase: Phase, t: int) -> "SENetBatch":
        return SENetBatch(self.network_, self._dictionary, torch.from_numpy(phase.batches[t]).to(self.device_))

    def _listeners(self) -> list[Callback]:
        return [Schedule(joint=cosine)]

    def _finish(self, training: Training, rows: RowReader) -> None:
        del self._dictionary  # the network is a function of any rows
        self.network_.eval()
        kernel = self._kernel(self._subset(rows, self.max_landmarks, Stream.LANDMARKS))
        partition = spectral_partition(kernel, self.n_clusters_, self.n_init, self.seed_)
        labels = np.concatenate([partition.labels(X.to(self.device_)) for X in rows.chunks()])
        self.partition_, self.labels_ = partition.ordered(labels)

    def _subset(self, rows: RowReader, size: int, stream: Stream) -> Rows:
        """All rows, or a random subset."""
        return rows[sorted_subset(len(rows), size, self.seed_, stream)].to(self.device_)

    def _kernel(self, landmarks: Rows) -> CodeKernel:
        return CodeKernel(self.network_, landmarks, self.max_coefficients, self.n_neighbors)

    # ---- use -----------------------------------------------------------------------------------------------

    def predict(self, X: RowsInput) -> np.ndarray:
        """Label rows; the label of a row does not depend on the other rows.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to label.

        Returns
        -------
        ndarray of int, shape (n,)
        """
        rows = self._new_rows(X)
        return np.concatenate([self.partition_.labels(part.to(self.device_)) for part in rows.chunks()])

    def predict_proba(self, X: RowsInput) -> np.ndarray:
        """Probability of each cluster for each row, largest at the label of `predict`.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows to label.

        Returns
        -------
        ndarray of float, shape (n, n_clusters)
        """
        rows = self._new_rows(X)
        return np.concatenate([self.partition_.probabilities(part.to(self.device_)) for part in rows.chunks()])

    def coefficients(self, X: RowsInput) -> np.ndarray:
        """The coefficients C; column j expresses row j of X by the others.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            The rows.

        Returns
        -------
        ndarray of float, shape (n, n)
        """
        rows = torch.cat([*self._new_rows(X).chunks()]).to(self.device_)
        with torch.inference_mode():
            return self.network_.coefficients(rows, rows).fill_diagonal_(0.0).T.cpu().numpy()

    def _state(self) -> tuple[dict[str, Tensor], dict[str, Any]]:
        tensors, facts = super()._state()
        of_partition, about_partition = model_file.partition_state(self.partition_)
        return tensors | of_partition, facts | about_partition

    def _restore(self, tensors: dict[str, Tensor], facts: dict[str, Any]) -> None:
        super()._restore(tensors, facts)
        self.partition_ = model_file.restore_partition(self._kernel, tensors, facts, self.device_)


class SENetBatch:
    """A batch of rows of the dictionary, expressed by the others."""

    def __init__(self, network: ExpressionNet, dictionary: Rows, batch: Tensor):
        self.network, self.dictionary, self.batch = network, dictionary, batch

    @property
    def X(self) -> Rows:
        return self.dictionary[self.batch]

    @cached_property
    def C(self) -> Tensor:
        itself = self.batch[:, None] == torch.arange(len(self.dictionary), device=self.batch.device)
        return self.network.coefficients(self.X, self.dictionary).masked_fill(itself, 0.0)
