"""Shared by the classical subspace methods: coefficients of all rows, an affinity, spectral clustering."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse
import torch
from torch import Tensor

from prodsc import files
from prodsc.core.graph import spectral_labels
from prodsc.core.graph.affinity import symmetrised, symmetrised_sparse
from prodsc.core.self_expression.sparse import blocks
from prodsc.errors import InputError
from prodsc.estimators import model_file
from prodsc.estimators.base import Clusterer
from prodsc.estimators.capabilities import Capability
from prodsc.progress import track
from prodsc.sources.fingerprint import fingerprint
from prodsc.sources.rows import RowReader
from prodsc.sources.source import RowsInput
from prodsc.training import Callback
from prodsc.types import Affinity, Rows, SparseMatrix, Square

SPARSE_PARTS = ["data", "indices", "indptr"]
CLUSTERING_PARAMETERS = ["n_clusters", "n_init", "random_state", "device", "verbose"]  # the affinity ignores them


class SelfExpressive(Clusterer):
    """A method is its `_coefficients`, and its `_affinity` when that is not (|C| + |C|')/2.

    There are no coefficients for new rows, so there is no `predict`, and a saved model is its labels.
    """

    _block_bytes = 16 * 2**20  # of one matrix of a block of rows; malloc reuses buffers below 32 MB

    capabilities = frozenset({Capability.COEFFICIENTS, Capability.AFFINITY})

    n_init: int

    def _coefficients(self, X: Rows) -> Square | SparseMatrix:
        """C, N x N: column j expresses row j by the others."""
        raise NotImplementedError

    def _affinity(self, C: Any) -> Affinity | SparseMatrix:
        return symmetrised(C) if isinstance(C, Tensor) else symmetrised_sparse(C)

    def _fit(self, rows: RowReader, callbacks: Sequence[Callback], checkpoint: Path | None) -> None:
        A = self._kept_affinity(rows, checkpoint)
        self.labels_ = spectral_labels(A, self.n_clusters_, self.n_init, self.seed_)

    def _kept_affinity(self, rows: RowReader, checkpoint: Path | None) -> Affinity | SparseMatrix:
        """The affinity, from the checkpoint if that is of these rows and parameters, whatever seed and k."""
        if checkpoint is None:
            return self._affinity(self._coefficients(self._points(rows)))
        parameters = {n: v for n, v in model_file.plain_parameters(self).items() if n not in CLUSTERING_PARAMETERS}
        about = json.dumps([type(self).__name__, parameters, fingerprint(rows.array)])
        if checkpoint.exists():
            metadata, parts = files.read_tensors(checkpoint)
            if metadata.get("affinity of") == about:
                return scipy.sparse.csr_array(tuple(parts[name].numpy() for name in SPARSE_PARTS))
        A = self._affinity(self._coefficients(self._points(rows)))
        if not isinstance(A, Tensor):  # a dense one is large, and cheap to recompute
            A = scipy.sparse.csr_array(A)
            kept = {name: torch.from_numpy(getattr(A, name)) for name in SPARSE_PARTS}
            files.write_tensors(checkpoint, kept, {"affinity of": about})
        return A

    def coefficients(self, X: RowsInput) -> np.ndarray | SparseMatrix:
        """The coefficients C; column j expresses row j of X by the others.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            The rows.

        Returns
        -------
        ndarray or sparse array, shape (n, n)
        """
        return _as_given(self._coefficients(self._points(self._new_rows(X))))

    def affinity(self, X: RowsInput) -> np.ndarray | SparseMatrix:
        """The affinity that spectral clustering uses for these rows.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            The rows.

        Returns
        -------
        ndarray or sparse array, shape (n, n)
        """
        return _as_given(self._affinity(self._coefficients(self._points(self._new_rows(X)))))

    def _points(self, rows: RowReader) -> Rows:
        """All rows in float64: supports and optimality depend on small differences."""
        return torch.cat(list(rows.chunks())).to(self.device_, torch.float64)

    def _blocks(self, n: int, values_per_point: int) -> Iterable[slice]:
        """Rows to express together, with progress."""
        return track(blocks(n, values_per_point, self._block_bytes), type(self).__name__, enabled=bool(self.verbose))


class DenseSelfExpressive(SelfExpressive):
    """C has an entry for every pair of rows, which bounds the number of rows."""

    _max_bytes = 4 * 2**30  # of all N x N matrices that exist at once
    _n_matrices = 5  # of float64: C, the affinity, its normalised form, and two copies in the eigensolver

    def _check_rows(self, X: RowsInput, learn: bool, strict: bool = False) -> np.ndarray:
        array = super()._check_rows(X, learn, strict)
        row_bytes = 8 * self._n_matrices * len(array)
        most = int((self._max_bytes / (8 * self._n_matrices)) ** 0.5)
        if len(array) > most:
            raise InputError(
                f"X has {len(array)} rows, and {type(self).__name__} makes matrices of all pairs "
                f"({row_bytes * len(array) / 2**30:.1f} GB, at most {self._max_bytes / 2**30:.0f} GB): at most {most} "
                "rows. Give fewer, or use SSCOMP or EnSC."
            )
        return array


def _as_given(matrix: Square | SparseMatrix) -> np.ndarray | SparseMatrix:
    return matrix.cpu().numpy() if isinstance(matrix, Tensor) else matrix
