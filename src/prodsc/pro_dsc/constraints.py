"""Constraints: known labels of a few rows, pairs that belong together, and pairs that do not.

labels, must_link, cannot_link --> groups of rows that belong together, and which groups must stay apart
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
import torch
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import connected_components
from torch import Tensor

from prodsc.errors import InputError
from prodsc.random import generator

UNKNOWN = (-1, "-1", "", None)  # and not a number: no label is known


@dataclass(frozen=True)
class Constraints:
    """What is known of some rows, closed under "belongs together".

    `rows` are the known rows, ascending, and `groups` has the group of each.
    """

    rows: np.ndarray
    groups: np.ndarray
    labels: tuple[Any, ...]  # of the first groups; the others are only linked
    forbidden: scipy.sparse.csr_array  # groups x groups, symmetric: must stay apart
    pairs: np.ndarray  # n x 2: pairs of known rows from which all constraints follow

    def restrict(self, rows: np.ndarray) -> "Constraints":
        """The constraints among these rows, which are numbered by their place in `rows`."""
        order = np.argsort(rows, kind="stable")
        at = np.searchsorted(rows[order], self.rows)
        found = (at < len(rows)) & (rows[order[np.minimum(at, len(rows) - 1)]] == self.rows)
        places, groups = order[at[found]], self.groups[found]
        ascending = np.argsort(places)
        return Constraints(
            places[ascending], groups[ascending], self.labels, self.forbidden, np.zeros((0, 2), np.int64)
        )

    def relation(self, n: int) -> np.ndarray:
        """n x n: 1 for two rows that belong together, -1 for two that must stay apart, 0 where nothing is known."""
        same = (self.groups[:, None] == self.groups).astype(np.int8)
        apart = self.forbidden[self.groups][:, self.groups].toarray()
        found = np.zeros((n, n), dtype=np.int8)
        found[np.ix_(self.rows, self.rows)] = same - apart.astype(np.int8)
        np.fill_diagonal(found, 0)
        return found

    def relation_of(self, rows: np.ndarray) -> Tensor:
        """`relation` of these rows, as a tensor."""
        return torch.from_numpy(self.restrict(rows).relation(len(rows)))

    def codes(self, n: int) -> np.ndarray:
        """The label of each of n rows by its place in `labels`, -1 where it is not known."""
        found = np.full(n, -1)
        found[self.rows] = np.where(self.groups < len(self.labels), self.groups, -1)
        return found

    def name_clusters(self, found: np.ndarray) -> dict[int, Any]:
        """From cluster to known label: the matching in which most rows of known label are where it says."""
        own = self.groups < len(self.labels)
        counts = np.zeros((found.max() + 1, len(self.labels)), dtype=np.int64)
        np.add.at(counts, (found[self.rows[own]], self.groups[own]), 1)
        pairs = zip(*linear_sum_assignment(-counts), strict=True)
        return {int(cluster): self.labels[code] for cluster, code in pairs}

    def draw_rows(self, most: int, seed: Sequence[int]) -> np.ndarray:
        """At most so many known rows, both ends of a pair together: all, or those of pairs drawn at random."""
        if len(self.rows) <= most:
            return self.rows
        order = generator(*seed).permutation(len(self.pairs))
        return np.unique(self.pairs[order[: max(most // 2, 1)]])

    def digest(self) -> str:
        """A word that changes with what is known."""
        found = hashlib.sha256(repr(self.labels).encode())
        for part in (self.rows, self.groups, *self.forbidden.nonzero()):
            found.update(np.ascontiguousarray(part, dtype=np.int64).tobytes())
        return found.hexdigest()


def make_constraints(
    n_rows: int, n_clusters: int, known_labels: Any = None, must_link: Any = None, cannot_link: Any = None
) -> Constraints | None:
    """All that is known of n rows, or None when that is nothing; contradictions are refused."""
    labelled = _labelled(known_labels, n_rows)
    together, apart = _pairs(must_link, n_rows, "must_link"), _pairs(cannot_link, n_rows, "cannot_link")
    labels = tuple(sorted(set(labelled.values()), key=lambda label: (isinstance(label, str), label)))
    if len(labels) > n_clusters:
        raise InputError(
            f"known_labels has {len(labels)} different labels for n_clusters={n_clusters}. Ask for more clusters."
        )
    rows = np.unique(np.concatenate([np.array([*labelled], dtype=np.int64), together.ravel(), apart.ravel()]))
    if not len(rows):
        return None
    of_label = [np.array([row for row, own in labelled.items() if own == label], dtype=np.int64) for label in labels]
    rings = [np.stack([members, np.roll(members, 1)], axis=1) for members in of_label]
    required = np.concatenate([together, *rings])
    groups = _components(np.searchsorted(rows, required), len(rows))
    group_of = dict(zip(rows.tolist(), groups.tolist(), strict=True))
    first: dict[int, int] = {}  # a labelled row of each group
    for row, label in labelled.items():
        other = first.setdefault(group_of[row], row)
        if labelled[other] != label:
            raise InputError(
                f"must_link connects row {other} of label {labelled[other]!r} with row {row} of label {label!r}. "
                "Remove one of these links or labels."
            )
    for i, j in apart.tolist():
        if group_of[i] == group_of[j]:
            raise InputError(
                f"cannot_link has the pair ({i}, {j}), but must_link or known_labels put these rows together. "
                "Remove the pair, or what connects them."
            )
    # Groups with a label come first, in the order of the labels.
    named = [group_of[members[0]] for members in of_label]
    order = np.array([*named, *(g for g in range(groups.max() + 1) if g not in set(named))])
    place = np.argsort(order)
    pairs = np.concatenate([_apart(len(labels)), place[groups[np.searchsorted(rows, apart)]]])
    shape = (len(order), len(order))
    both = np.concatenate([pairs, pairs[:, ::-1]])
    forbidden = scipy.sparse.csr_array((np.ones(len(both), dtype=bool), both.T), shape=shape, dtype=bool)
    return Constraints(rows, place[groups], labels, forbidden, np.concatenate([required, apart]))


def _labelled(known: Any, n_rows: int) -> dict[int, Any]:
    """The rows whose labels are known, in ascending order."""
    if known is None:
        return {}
    items: Iterable[tuple[Any, Any]]
    if isinstance(known, Mapping):
        items = known.items()
        outside = [row for row in known if not _is_row(row, n_rows)]
        if outside:
            raise InputError(f"known_labels names row {outside[0]!r}; rows of X are 0 to {n_rows - 1}.")
    else:
        values = np.asarray(known, dtype=object)
        if values.shape != (n_rows,):
            raise InputError(
                f"known_labels has shape {values.shape} for {n_rows} rows of X. Give one entry for each row (-1 where "
                "the label is not known), or a mapping from rows to labels."
            )
        items = enumerate(values)
    found = {int(row): _plain(label) for row, label in items}
    return {row: label for row, label in sorted(found.items()) if label not in UNKNOWN and label == label}


def _plain(label: Any) -> Any:
    """A label as JSON can hold it; 3.0 is 3."""
    label = label.item() if isinstance(label, np.generic) else label
    if isinstance(label, float) and label.is_integer():
        return int(label)
    if label is not None and not isinstance(label, (int, float, str)):
        raise InputError(f"known_labels has the label {label!r}; labels are whole numbers or text.")
    if isinstance(label, float) and label == label:
        raise InputError(f"known_labels has the label {label!r}; labels are whole numbers or text.")
    return label


def _is_row(value: Any, n_rows: int) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(0 <= value < n_rows)


def _pairs(given: Any, n_rows: int, name: str) -> np.ndarray:
    """n x 2 row numbers."""
    if given is None or len(given) == 0:
        return np.zeros((0, 2), dtype=np.int64)
    try:
        pairs = np.asarray(given)
    except ValueError:
        pairs = np.zeros(0)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise InputError(f"{name} must be pairs (i, j) of row numbers, one pair for each link; got {given!r:.80}.")
    bad = np.flatnonzero(((pairs < 0) | (pairs >= n_rows)).any(1))
    if bad.size:
        i, j = pairs[bad[0]]
        raise InputError(f"{name} has the pair ({i}, {j}); rows of X are 0 to {n_rows - 1}.")
    itself = np.flatnonzero(pairs[:, 0] == pairs[:, 1])
    if itself.size:
        raise InputError(f"{name} has row {pairs[itself[0], 0]} paired with itself. A link is between two rows.")
    return pairs.astype(np.int64)


def _components(edges: np.ndarray, n: int) -> np.ndarray:
    graph = scipy.sparse.coo_array((np.ones(len(edges), dtype=bool), edges.T), shape=(n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def _apart(n: int) -> np.ndarray:
    """All pairs of n things."""
    return np.stack(np.triu_indices(n, 1), axis=1)
