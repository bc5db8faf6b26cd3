"""The one door: whatever a user has becomes a `Source`.

name of a data set ----> prodsc.sources.named ---+
file or folder --------> prodsc.sources.readers -+-> Source: X, y, ids, column names, class names
array, frame, tensor --> prodsc.sources.arrays --+
"""

import os
from collections.abc import Collection
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prodsc.errors import InputError, ParameterError, reason_of
from prodsc.progress import ProgressFunction
from prodsc.sources.arrays import array_of, frame_columns, unmasked
from prodsc.sources.named import PathOrNone, check_split, dataset_info, file_part, load_named
from prodsc.sources.readers import label_codes, read
from prodsc.sources.source import Source, Split


def open_source(
    source: Any,
    *,
    labels: Any = None,
    exclude: Collection[str] = (),
    split: Split = "all",
    data_dir: PathOrNone = None,
    progress: ProgressFunction | None = None,
) -> Source:
    """Open any input.

    Parameters
    ----------
    source : str, path, array, tensor, data frame, nested list, memory map or Source
        A text is the name of a data set (`prodsc data list`) if there is one of that name, else a path. A path is a
        file, or a folder of .npy or .parquet files that together are the rows. A Source is returned as it is.
    labels : str, path, array or None
        Known labels: an array or column of the input by its name, the path of another file, or one label per row.
    exclude : collection of str
        Further columns that are no part of X.
    split : {"all", "train", "test"}
        Which rows: as the array 'split' of the file marks them, or as the catalogue knows them.
    data_dir : path or None
        Where files of named data sets are looked for first.
    progress : callable or None
        Called with the rows done and the rows in total while a large table is converted.

    Returns
    -------
    Source

    Raises
    ------
    InputError
        If the input cannot be read. The message is one sentence with the way out.
    """
    check_split(split)
    if isinstance(source, Source):
        return source
    if not isinstance(source, (str, PathLike)):
        return _from_memory(source, labels, exclude, split)
    info = dataset_info(source)
    if labels is not None and not isinstance(labels, (str, PathLike)):
        return _with_labels(open_source(source, exclude=exclude, split=split, data_dir=data_dir), labels)
    if info is not None:
        return load_named(info, split, data_dir=data_dir, labels=labels, exclude=exclude, progress=progress)
    return file_part(read(source, labels=labels, exclude=exclude, progress=progress), split)


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


def _from_memory(source: Any, labels: Any, exclude: Collection[str], split: Split) -> Source:
    """Arrays, tensors, frames, lists: X and its column names; `labels` may name a column of a frame."""
    if split != "all":
        raise ParameterError(f"split='{split}' is for files and named data sets; select the rows of an array yourself.")
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
    return opened if y is None else _with_labels(opened, y)


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
