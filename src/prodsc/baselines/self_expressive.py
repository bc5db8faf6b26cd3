"""What the classical subspace methods share: coefficients of all rows, an affinity of them, spectral clustering."""

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
from prodsc.training import Callback
from prodsc.types import Affinity, Rows, SparseMatrix, Square

MAX_BYTES = 4 * 2**30  # of all matrices of N x N that live at once
PARTS = ("data", "indices", "indptr")  # of a sparse matrix
LATER = ("n_clusters", "n_init", "random_state", "device", "verbose")  # parameters that the affinity does not depend on
SQUARES = 5  # such matrices of float64: C, the affinity, its normalised form, and what the eigensolver copies


class SelfExpressive(Clusterer):
    """A method is its `_coefficients`, and its `_affinity` when that is not (|C| + |C|')/2.

    The coefficients say nothing of rows that were not there, so there is no `predict`, and a saved model is its labels.
    """

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
        """The affinity of the checkpoint, when it is of these rows and parameters; no seed and no k is among them."""
        if checkpoint is None:
            return self._affinity(self._coefficients(self._points(rows)))
        parameters = {n: v for n, v in model_file.plain_parameters(self).items() if n not in LATER}
        about = json.dumps([type(self).__name__, parameters, fingerprint(rows.array)])
        if checkpoint.exists():
            metadata, parts = files.read_tensors(checkpoint)
            if metadata.get("affinity of") == about:
                return scipy.sparse.csr_array(tuple(parts[name].numpy() for name in PARTS))
        A = self._affinity(self._coefficients(self._points(rows)))
        if not isinstance(A, Tensor):  # a dense one is cheap to make again, and large
            A = scipy.sparse.csr_array(A)
            kept = {name: torch.from_numpy(getattr(A, name)) for name in PARTS}
            files.write_tensors(checkpoint, kept, {"affinity of": about})
        return A

    def coefficients(self, X: Any) -> np.ndarray | SparseMatrix:
        """C, n x n: column j expresses row j of X by the others; sparse where the method is."""
        return _as_given(self._coefficients(self._points(self._new_rows(X))))

    def affinity(self, X: Any) -> np.ndarray | SparseMatrix:
        """The n x n affinity that spectral clustering sees for these rows."""
        return _as_given(self._affinity(self._coefficients(self._points(self._new_rows(X)))))

    def _points(self, rows: RowReader) -> Rows:
        """All rows in double: supports and optimality are read off small differences."""
        return torch.cat(list(rows.chunks())).to(self.device_, torch.float64)

    def _blocks(self, n: int, values_per_point: int) -> Iterable[slice]:
        """Rows to express together, with progress."""
        return track(blocks(n, values_per_point), type(self).__name__, enabled=bool(self.verbose))


class DenseSelfExpressive(SelfExpressive):
    """C has an entry for every pair of rows, which bounds the number of rows."""

    def _checked(self, X: Any, reset: bool, strict: bool = False) -> np.ndarray:
        array = super()._checked(X, reset, strict)
        most = int((MAX_BYTES / (8 * SQUARES)) ** 0.5)
        if len(array) > most:
            raise InputError(
                f"X has {len(array)} rows, and {type(self).__name__} makes matrices of all pairs "
                f"({8 * SQUARES * len(array) ** 2 / 2**30:.1f} GB, at most {MAX_BYTES / 2**30:.0f} GB): at most {most} "
                "rows. Give fewer, or use SSCOMP or EnSC."
            )
        return array


def _as_given(matrix: Square | SparseMatrix) -> np.ndarray | SparseMatrix:
    return matrix.cpu().numpy() if isinstance(matrix, Tensor) else matrix
