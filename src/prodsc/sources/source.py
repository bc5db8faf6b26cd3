"""What every input becomes: rows, and whatever else is known about them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from prodsc.sources.catalogue import DatasetInfo

Split = Literal["all", "train", "test"]


@dataclass(frozen=True)
class Source:
    """An input that was opened. `prodsc.sources.door.open_source` makes it.

    Parameters
    ----------
    name : str
        Name of the data set, stem of the file name, or what the input is called in messages.
    X : ndarray or StoredRows of shape (n, ...)
        The rows, with the data type that they have in the input.
    y : ndarray of shape (n,) or None
        Known labels as int64 codes from 0. They are used only to score.
    columns : list of str or None
        Names of the columns of X.
    class_names : list of str or None
        Names of the codes in y.
    info : DatasetInfo or None
        What the catalogue knows about a named data set; None for other inputs.
    paths : tuple of Path
        The files that were read; empty for arrays and for data sets that are computed.
    split : {"all", "train", "test"}
        Which part of the rows this is.
    notes : tuple of str
        What a reader of scores on these rows must know.
    read_ids : callable
        Reads the names of the rows.
    texts : list of str or None
        The text of each row, from the columns that were chosen as text.
    kept : ndarray of int or None
        The number of each row in the input, if rows with missing values were dropped.
    fill_values : dict or None
        What missing values of each column became.
    others : mapping from name to callable
        Columns that are no features; each is read when called.
    """

    name: str
    X: Any
    y: np.ndarray | None = None
    columns: list[str] | None = None
    class_names: list[str] | None = None
    info: DatasetInfo | None = None
    paths: tuple[Path, ...] = ()
    split: Split = "all"
    notes: tuple[str, ...] = ()
    read_ids: Callable[[], list[str] | None] = field(default=lambda: None, repr=False)
    texts: list[str] | None = field(default=None, repr=False)
    kept: np.ndarray | None = field(default=None, repr=False)
    fill_values: dict[str, float] | None = field(default=None, repr=False)
    others: Mapping[str, Callable[[], np.ndarray]] = field(default_factory=dict, repr=False)

    @property
    def path(self) -> Path | None:
        """The one file or folder that was read; None if there is none, or more than one."""
        return self.paths[0] if len(self.paths) == 1 else None

    @property
    def location(self) -> str:
        """Where the rows come from: the path, or the name of what has no path of its own."""
        return self.name if self.path is None else str(self.path)

    @cached_property
    def ids(self) -> list[str] | None:
        """Names of the rows, read at the first use; None if the rows have none."""
        return self.read_ids()


RowsInput: TypeAlias = Source | str | PathLike[str] | ArrayLike
"""Whatever a user may give as rows: an opened source, a path, the name of a data set, or anything like an array
(arrays, tensors, nested lists, data frames)."""
