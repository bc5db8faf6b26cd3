"""A fit as a map: coordinates of the rows and nested layers of named clusters, as datamapplot and others draw them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prodsc.core.graph import nested_layers
from prodsc.errors import InputError
from prodsc.estimators.capabilities import Capability, can, method_of
from prodsc.report.layout import lay_out
from prodsc.sources.door import open_source
from prodsc.sources.source import RowsInput

UNLABELLED = "Unlabelled"  # what datamapplot calls rows in no cluster
Names = Mapping[int, str] | Sequence[str] | None


@dataclass(frozen=True)
class DataMap:
    """Rows in the plane with their clusters.

    Parameters
    ----------
    coordinates : ndarray of shape (n, 2)
        A place for each row.
    layers : tuple of ndarray of int, shape (n,)
        Nested clusters, the finest first; -1 for rows in no cluster.
    names : tuple of tuple of str
        The names of the clusters of each layer.
    confidence : ndarray of shape (n,) or None
        Confidence of the labels of the finest layer, where the method gives one.
    Z : ndarray of shape (n, d)
        The representation that the map was made of.
    """

    coordinates: np.ndarray
    layers: tuple[np.ndarray, ...]
    names: tuple[tuple[str, ...], ...]
    confidence: np.ndarray | None
    Z: np.ndarray

    @property
    def label_layers(self) -> list[np.ndarray]:
        """The name of each row's cluster, one array per layer: the arguments of `datamapplot.create_interactive_plot`
        after the coordinates."""
        return [
            np.array([*names, UNLABELLED], dtype=object)[layer]
            for layer, names in zip(self.layers, self.names, strict=True)
        ]


def data_map(model: Any, X: RowsInput, *, names: Names = None, min_clusters: int = 2, seed: int = 0) -> DataMap:
    """Place rows on a map and name their clusters, layer by layer.

    Parameters
    ----------
    model : estimator
        Fitted. A method that cannot label new rows needs the rows it was fitted on.
    X : array, tensor, frame, memory map or path
        The rows.
    names : mapping or sequence of str, optional
        The name of each cluster; "cluster 3" by default.
    min_clusters : int, default=2
        The coarsest layer has at least so many clusters.
    seed : int, default=0
        Of the map.

    Returns
    -------
    DataMap
    """
    labels, confidence = labels_of(model, X)
    Z = representation_of(model, X)
    layers = nested_layers(Z, labels, min_clusters)
    fine = cluster_names(labels, names)
    return DataMap(
        lay_out(Z, seed=seed).places.astype(np.float32),
        tuple(layers),
        (fine, *(_names_of_unions(labels, layer, fine) for layer in layers[1:])),
        confidence,
        Z,
    )


def labels_of(model: Any, X: RowsInput) -> tuple[np.ndarray, np.ndarray | None]:
    """Labels of rows and, where the method gives it, the confidence of each."""
    if can(model, Capability.PREDICT):
        parts = [*zip(*model.labelled(X), strict=True)]
        return np.concatenate(parts[0]), np.concatenate(parts[1]) if len(parts) > 1 else None
    n_rows = len(open_source(X).X)
    if n_rows != len(model.labels_):
        raise InputError(
            f"{type(model).__name__} labels no new rows, and X has {n_rows} rows for {len(model.labels_)} labels. "
            "Give the rows that were fitted."
        )
    return model.labels_, None


def representation_of(model: Any, X: RowsInput) -> np.ndarray:
    """Z of a method that learns one, else the rows themselves as vectors."""
    if can(model, Capability.TRANSFORM):
        return np.asarray(method_of(model, Capability.TRANSFORM)(X))
    rows = np.asarray(open_source(X).X, dtype=np.float32)
    return rows.reshape(len(rows), -1)


def cluster_names(labels: np.ndarray, names: Names) -> tuple[str, ...]:
    """One name for each cluster 0, 1, ..., the user's where there is one.

    Parameters
    ----------
    labels : ndarray of int
        Labels of rows; negative for none.
    names : mapping or sequence of str, optional
        The user's names.

    Returns
    -------
    tuple of str

    Raises
    ------
    InputError
        If a sequence has too few names, or two clusters have one name.
    """
    k = int(labels.max(initial=-1)) + 1
    if names is None:
        return tuple(f"cluster {c}" for c in range(k))
    if not isinstance(names, Mapping) and len(names) < k:
        raise InputError(f"names has {len(names)} entries for {k} clusters; give one for each, or a mapping.")
    given = names if isinstance(names, Mapping) else dict(enumerate(names))
    found = tuple(str(given.get(c, f"cluster {c}")) for c in range(k))
    twice = sorted({name for name in found if found.count(name) > 1})
    if twice:
        raise InputError(f"two clusters have the name {twice[0]!r}; give each cluster a name of its own.")
    return found


def _names_of_unions(fine: np.ndarray, coarse: np.ndarray, names: Sequence[str]) -> tuple[str, ...]:
    """A union is called after its largest cluster and the number of the others."""
    found = []
    for union in range(int(coarse.max(initial=-1)) + 1):
        parts, sizes = np.unique(fine[coarse == union], return_counts=True)
        first = names[parts[sizes.argmax()]]
        found.append(first if len(parts) == 1 else f"{first} and {len(parts) - 1} more")
    return tuple(found)
