"""What every fitted estimator says about its clusters: typical rows, names, a score, a report."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Self, TypeAlias

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from prodsc import files
from prodsc.core import metrics, naming
from prodsc.errors import InputError, reason_of
from prodsc.estimators.capabilities import Capability, can, method_of
from prodsc.estimators.scoring import LabelFreeScorer
from prodsc.random import sorted_subset
from prodsc.sources.rows import RowReader, as_array, column_names
from prodsc.sources.source import RowsInput, Source

SAMPLE = 4096  # rows among which exemplars are looked for: enough for eight of each of hundreds of clusters
NamesInput: TypeAlias = Mapping[Any, str] | Sequence[str] | str | Path


@dataclass(frozen=True)
class ClusterExemplars:
    """What a name-giver of the user's own is told about one cluster.

    Parameters
    ----------
    cluster : int
        Its number.
    size : int
        Its number of rows.
    rows : ndarray of int
        Its most typical rows, the most typical first.
    ids, texts : list of str or None
        Their names and texts, if there are any.
    images : list or None
        Their images (Pillow), if there are any.
    keywords : list of str
        Keywords of its texts.
    columns : list of (str, float)
        Columns that set it apart, and by how many standard deviations.
    """

    cluster: int
    size: int
    rows: np.ndarray
    ids: list[str] | None = None
    texts: list[str] | None = None
    images: list[Any] | None = None
    keywords: list[str] = field(default_factory=list)
    columns: list[tuple[str, float]] = field(default_factory=list)


Namer: TypeAlias = Callable[[ClusterExemplars], str]


STRAYS = "strays"  # the name of a cluster whose rows lie far from all others


class DescribedClusters:
    """Attributes and methods of a fitted estimator that describe its clusters."""

    n_clusters_: int
    labels_: np.ndarray

    @property
    def clusters_(self) -> np.ndarray:
        """The cluster of each training row, noise or not."""
        raise NotImplementedError

    exemplars_: list[np.ndarray]  # for each cluster its most typical rows
    cluster_names_: list[str]

    def _describe(self, rows: RowReader, names: Sequence[str] | None) -> None:
        """Set `exemplars_` and `cluster_names_` after a fit."""
        some = sorted_subset(len(rows), SAMPLE)
        if can(self, Capability.TRANSFORM):
            part = Source("X", np.asarray(rows.array[some]), columns=None if names is None else list(names))
            Z = method_of(self, Capability.TRANSFORM)(part)
        else:
            Z = rows[some].flatten(1).numpy()
        labels = self.clusters_[some]
        self.exemplars_ = [some[each] for each in naming.typical_rows(Z, labels, self.n_clusters_)]
        known = {cluster: str(label) for cluster, label in getattr(self, "known_clusters_", {}).items()}
        named = self._names_from(rows.array, None, names, None, None)
        self.cluster_names_ = naming.unique_names([known.get(c, name) for c, name in enumerate(named)])

    def name_clusters(
        self,
        X: RowsInput | None = None,
        *,
        texts: Sequence[str] | None = None,
        ids: Sequence[str] | None = None,
        images: Callable[[int], Any] | None = None,
        columns: Sequence[str] | None = None,
        namer: Namer | None = None,
    ) -> list[str]:
        """Give every cluster a readable name and keep the names in `cluster_names_`.

        The first of these that there is names the clusters: `namer`; keywords of `texts`; columns of X that set a
        cluster apart; the id of the most typical row, for images. Otherwise they are called cluster 0, cluster 1, ...

        Parameters
        ----------
        X : array, tensor, frame, memory map, path or Source, optional
            The rows of the fit, to compare columns. A Source may bring texts and ids.
        texts : sequence of str, optional
            The text of each row.
        ids : sequence of str, optional
            The name of each row.
        images : callable, optional
            From the number of a row to its image.
        columns : sequence of str, optional
            Names of the columns of X.
        namer : callable, optional
            A function from a `ClusterExemplars` to a name, such as a call of a language model.

        Returns
        -------
        list of str
        """
        check_is_fitted(self)
        if isinstance(X, Source):
            texts, ids = (X.texts if texts is None else texts), (X.ids if ids is None else ids)
        array = None if X is None else as_array(X, columns=getattr(self, "feature_names_in_", None))
        if columns is None:
            columns = getattr(self, "feature_names_in_", None if X is None else column_names(X))
        for name, values in {"X": array, "texts": texts, "ids": ids}.items():
            if values is not None and len(values) != len(self.clusters_):
                raise InputError(
                    f"{name} has {len(values)} rows, and the model was fitted on {len(self.clusters_)}; give those."
                )
        names = self._names_from(array, texts, columns, ids, images)
        if namer is not None:
            names = [namer(self._exemplars_of(c, array, texts, columns, ids, images)) for c in range(self.n_clusters_)]
        self.cluster_names_ = naming.unique_names([str(name) for name in names])
        return self.cluster_names_

    def _exemplars_of(
        self, cluster: int, array: Any, texts: Any, columns: Any, ids: Any, images: Any
    ) -> ClusterExemplars:
        """What a name-giver is told about a cluster; the parameters are those of `name_clusters`."""
        rows = self.exemplars_[cluster]
        of_texts = None if texts is None else naming.keywords(texts, self.clusters_, self.n_clusters_)
        of_columns = None if not _is_table(array, columns) else self._unusual(array, columns)
        return ClusterExemplars(
            cluster,
            int((self.clusters_ == cluster).sum()),
            rows,
            None if ids is None else [str(ids[i]) for i in rows],
            None if texts is None else [str(texts[i]) for i in rows],
            None if images is None else [images(int(i)) for i in rows],
            [] if of_texts is None else of_texts[cluster],
            [] if of_columns is None else of_columns[cluster],
        )

    def rename_clusters(self, names: NamesInput) -> Self:
        """Give clusters other names.

        Parameters
        ----------
        names : mapping, sequence of str, or path
            From cluster to name, a name for every cluster, or the file that "Save names" of a page wrote.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        self.cluster_names_ = renamed(self.cluster_names_, names)
        return self

    @available_if(lambda self: can(self, Capability.PREDICT))
    def score(self, X: RowsInput, y: Any = None) -> float:
        """How well `predict` labels rows; higher is better, so that searches of scikit-learn need no scorer.

        Parameters
        ----------
        X : array, tensor, frame, memory map or path
            Rows.
        y : array of shape (n,) or None
            Known classes. With them the score is the adjusted Rand index, without them how often a row and its ten
            nearest rows share a cluster, beyond chance (`prodsc tune` searches by it).

        Returns
        -------
        float
            At most 1.
        """
        labels = method_of(self, Capability.PREDICT)(X)
        if y is not None:
            return float(metrics.ari(np.asarray(y), labels))
        return LabelFreeScorer(as_array(X)).neighbour_agreement(labels) / 100

    def report(self, X: RowsInput, **shown: Any) -> Any:
        """A page about the fit, which shows itself in a notebook and saves itself.

        Parameters
        ----------
        X : array, tensor, frame, memory map, path or Source
            The rows of the fit.
        **shown
            `texts`, `images`, `ids`, `columns`, `y`, `names`, `namer` and `title`: see `prodsc.report.fit_report`.

        Returns
        -------
        FitReport
            `report.save("report.html")` writes the page.
        """
        # The page is a layer above the estimators: it is looked up by name, as the names of the package are.
        return import_module("prodsc.report.fit_report").make_report(self, X, **shown)

    def _names_from(self, array: Any, texts: Any, columns: Any, ids: Any, images: Any) -> list[str]:
        """Names from what there is; a cluster of rows far from all others is called strays."""
        strays = set(getattr(self, "_strays_", []))
        names = self._found_names(array, texts, columns, ids, images)
        return [STRAYS if cluster in strays else name for cluster, name in enumerate(names)]

    def _found_names(self, array: Any, texts: Any, columns: Any, ids: Any, images: Any) -> list[str]:
        if texts is not None:
            return naming.names_from_keywords(naming.keywords(texts, self.clusters_, self.n_clusters_))
        if _is_table(array, columns) and images is None:
            return naming.names_from_columns(self._unusual(array, columns))
        if images is not None and ids is not None:
            return naming.names_from_ids([str(ids[rows[0]]) if len(rows) else None for rows in self.exemplars_])
        return naming.unique_names([""] * self.n_clusters_)

    def _unusual(self, array: Any, columns: Sequence[str]) -> list[list[tuple[str, float]]]:
        return naming.unusual_columns(array, self.clusters_, self.n_clusters_, list(columns))


def _is_table(array: Any, columns: Sequence[str] | None) -> bool:
    """Do the columns of an array mean something to a reader?"""
    return array is not None and array.ndim == 2 and columns is not None and naming.are_words(list(columns))


def are_names(names: Sequence[str]) -> bool:
    """Do clusters have names that say more than their numbers?"""
    return any(name != f"cluster {cluster}" for cluster, name in enumerate(names))


def renamed(names: Sequence[str], given: NamesInput) -> list[str]:
    """Names of clusters, some of them replaced.

    Parameters
    ----------
    names : sequence of str
        The names so far.
    given : mapping, sequence of str, or path
        From cluster to name, a name for every cluster, or the path of a JSON file with one of them.

    Returns
    -------
    list of str

    Raises
    ------
    InputError
        If a cluster does not exist, or a name is not text.
    """
    content: Any = _read_names(given) if isinstance(given, (str, Path)) else given
    if isinstance(content, Mapping):
        content = content.get("names", content)
    pairs = list(content.items()) if isinstance(content, Mapping) else list(enumerate(content))
    new = list(names)
    for cluster, name in pairs:
        if not str(cluster).isdecimal() or int(cluster) >= len(new):
            raise InputError(f"names: there is no cluster '{cluster}'; the clusters are 0 to {len(new) - 1}.")
        if not isinstance(name, str):
            raise InputError(f"names: the name of cluster {cluster} must be text, got {name!r}.")
        new[int(cluster)] = name
    return naming.unique_names(new)


def _read_names(path: str | Path) -> Any:
    try:
        content = files.read_json(Path(path).expanduser())
    except FileNotFoundError as error:
        raise InputError(f"{path} does not exist; name the file that 'Save names' of the page wrote.") from error
    except (OSError, json.JSONDecodeError, UnicodeDecodeError, ValueError) as error:
        raise InputError(f"{path} is not JSON ({reason_of(error)}); save the names from the page again.") from error
    if not isinstance(content, (dict, list)):
        raise InputError(f'{path} must hold names by cluster, such as {{"0": "a name"}}.')
    return content
