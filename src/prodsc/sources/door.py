"""The one door: whatever a user has becomes a `Source`.

name of a data set ----> prodsc.sources.named ---+
file or folder --------> prodsc.sources.readers -+-> Source: X, y, ids, texts, column names, class names
table -----------------> prodsc.sources.frames --+
array, frame, tensor --> prodsc.sources.arrays --+
"""

import os
import sys
import warnings
from collections.abc import Collection
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prodsc.errors import InputError, ParameterError, reason_of
from prodsc.progress import ProgressFunction
from prodsc.sources.arrays import array_of, frame_columns, listed, unmasked
from prodsc.sources.choice import ColumnChoice, Impute, Names, chosen_columns, joined_texts
from prodsc.sources.formats import of_tables
from prodsc.sources.frames import is_cells, is_plain_frame, is_table, open_table
from prodsc.sources.named import PathOrNone, check_split, dataset_info, file_part, load_named
from prodsc.sources.readers import label_codes, read, source_of, without_missing
from prodsc.sources.source import Source, Split


def open_source(
    source: Any,
    *,
    labels: Any = None,
    id: str | None = None,
    columns: Names = None,
    drop: Names = None,
    text: Names = None,
    impute: Impute | None = None,
    exclude: Collection[str] = (),
    split: Split = "all",
    data_dir: PathOrNone = None,
    progress: ProgressFunction | None = None,
    choice: ColumnChoice | None = None,
) -> Source:
    """Open any input.

    Parameters
    ----------
    source : str, path, array, tensor, data frame, table, nested list, memory map or Source
        A text is the name of a data set (`prodsc data list`) if there is one of that name, else a path. A path is a
        file, or a folder of .npy or .parquet files that together are the rows. A table is one of pandas, polars,
        Arrow, DuckDB, Hugging Face datasets or Lance, or an AnnData object. A Source is returned as it is.
    labels : str, path, array or None
        Known labels: an array or column of the input by its name, the path of another file, or one label per row.
    id : str or None
        The column with the name of each row.
    columns : str, sequence of str or None
        The features, by name, pattern (`emb_*`) or number; all columns that are nothing else if left out.
    drop : str, sequence of str or None
        Columns that are no features. Pages can still show them.
    text : str, sequence of str or None
        Columns of text, which are no features; they name the clusters and are shown with the rows.
    impute : {"median", "drop"}, mapping from column to value, or None
        What becomes of missing values: the median of the column, or the row is left out. A mapping is the
        `fill_values` of an earlier Source, so that new rows are filled as those of the fit were.
    exclude : collection of str
        Further columns that are no part of X, if they are there.
    split : {"all", "train", "test"}
        Which rows: as the array 'split' of the file marks them, or as the catalogue knows them.
    data_dir : path or None
        Where files of named data sets are looked for first.
    progress : callable or None
        Called with the rows done and the rows in total while a large table is converted.
    choice : ColumnChoice or None
        `id`, `columns`, `drop`, `text` and `impute` as one object, instead of them.

    Returns
    -------
    Source

    Raises
    ------
    InputError
        If the input cannot be read. The message is one sentence with the way out.
    """
    check_split(split)
    chosen = ColumnChoice.of(id, columns, drop, text, impute) if choice is None else choice
    if isinstance(source, Source):
        return source
    if not isinstance(source, (str, PathLike)):
        return _from_memory(source, labels, exclude, split, chosen)
    info = dataset_info(source)
    if labels is not None and not isinstance(labels, (str, PathLike)):
        opened = open_source(
            source, exclude=exclude, split=split, data_dir=data_dir, choice=replace(chosen, impute=None)
        )
        return without_missing(_with_labels(opened, labels), chosen, opened.location)
    if info is not None:
        named = load_named(info, split, data_dir=data_dir, labels=labels, exclude=exclude, progress=progress)
        return _chosen(named, chosen, f"the data set {info.name}")
    return file_part(read(source, labels=labels, exclude=exclude, choice=chosen, progress=progress), split)


def load_dataset(name: str | PathLike[str], split: Split = "all", *, data_dir: PathOrNone = None) -> Source:
    """Open a named data set, or a file.

    Parameters
    ----------
    name : str or path
        One of `prodsc data list`, or a path.
    split : {"all", "train", "test"}
        Which rows.
    data_dir : path or None
        Where files of named data sets are looked for first.

    Returns
    -------
    Source
    """
    return open_source(name, split=split, data_dir=data_dir)


def canonical_name(source: str | PathLike[str]) -> str:
    """The name of a data set as it is, or the absolute path of a file: what any process can open.

    Raises
    ------
    InputError
        If it is a single word that is neither a name nor a file.
    """
    info = dataset_info(source)
    return str(Path(os.path.expanduser(source)).resolve()) if info is None else info.name


def _from_memory(source: Any, labels: Any, exclude: Collection[str], split: Split, choice: ColumnChoice) -> Source:
    """Arrays, tensors, frames, lists: X and its column names; `labels` may name a column of a frame."""
    if split != "all":
        raise ParameterError(f"split='{split}' is for files and named data sets; select the rows of an array yourself.")
    if is_cells(source):
        return _from_cells(source, labels, choice)
    if not is_plain_frame(source) or (choice and is_table(source)):
        return _from_table(source, labels, exclude, choice)
    columns = frame_columns(source)
    y = labels
    if isinstance(labels, (str, PathLike)):
        if columns is None or str(labels) not in columns:
            raise InputError(f"labels='{labels}' is not a column of the rows in memory; give one label per row.")
        y = array_1d(source[str(labels)])
    dropped = {*exclude, *([str(labels)] if isinstance(labels, (str, PathLike)) else [])}
    if columns is not None and dropped & set(columns):
        columns = [name for name in columns if name not in dropped]
        source = source[columns]
    opened = Source("the array" if columns is None else "the data frame", array_of(source), columns=columns)
    return _chosen(opened if y is None else _with_labels(opened, y), choice, opened.name)


def _from_table(source: Any, labels: Any, exclude: Collection[str], choice: ColumnChoice) -> Source:
    """A table in memory is read as that of a file is."""
    table = open_table(source)
    named = labels if labels is None or isinstance(labels, str) else None
    if named is not None and named not in {field.name for field in table.fields.values()}:
        raise InputError(f"labels='{named}' is not a column of the table; give one label per row.")
    notes: list[str] = []
    most = sys.maxsize  # it is in memory already
    first = choice if named is labels else replace(choice, impute=None)
    opened = source_of(of_tables([table]), table.path, named, exclude, first, None, most, notes)
    for note in notes:
        warnings.warn(note, UserWarning, stacklevel=4)
    opened = replace(opened, name=str(table.path))
    return opened if named is labels else without_missing(_with_labels(opened, labels), choice, opened.name)


def _from_cells(cells: Any, labels: Any, choice: ColumnChoice) -> Source:
    """Single cells: cells are the rows, genes the columns, and the annotation of cells (obs) has further columns."""
    cells = cells.to_memory() if getattr(cells, "isbacked", False) else cells
    obs = {str(name): cells.obs[name] for name in cells.obs.columns}
    other = replace(choice, columns=(), drop=()).within(list(obs), "obs")
    names = cells.obs_names if other.id is None else obs[other.id]
    texts = joined_texts([obs[name] for name in other.text]) if other.text else None
    opened = Source(
        "the cells",
        array_of(cells.X),
        columns=[str(name) for name in cells.var_names],
        read_ids=lambda: [str(name) for name in names],
        texts=texts,
        others={name: partial(array_1d, column) for name, column in obs.items() if name != other.id},
    )
    if isinstance(labels, str) and labels not in obs:
        raise InputError(f"labels='{labels}' is not a column of obs ({listed(obs)}); give one label per cell.")
    y = obs[labels] if isinstance(labels, str) else labels
    return _chosen(opened if y is None else _with_labels(opened, y), choice, opened.name)


def _chosen(source: Source, choice: ColumnChoice, where: str) -> Source:
    """The chosen columns of a source that is no table, without missing values."""
    if not choice:
        return source
    if source.name != "the cells" and choice.strict and (choice.id or choice.text):
        raise InputError(f"--id and --text name columns, and {where} has none; they are for tables.")
    X, columns = chosen_columns(source.X, source.columns, choice, where)
    return without_missing(replace(source, X=X, columns=columns), choice, where)


def _with_labels(source: Source, labels: Any) -> Source:
    y, class_names = label_codes(array_1d(labels), source.X, "labels")
    return replace(source, y=y, class_names=class_names)


def array_1d(labels: Any) -> np.ndarray:
    """Labels of any kind (list, column of a frame, tensor, array) as an array."""
    if isinstance(labels, np.ma.MaskedArray):
        labels = unmasked(labels, "labels")
    try:
        values = labels.to_numpy() if hasattr(labels, "to_numpy") else np.asarray(labels)
    except ValueError as error:
        raise InputError(
            f"labels must be one per row ({reason_of(error)}); give one number or text per row."
        ) from error
    if values.ndim != 1:
        raise InputError(f"labels must be one per row; they have shape {values.shape}.")
    return values
