"""Labels joined to the input as CSV or Parquet: all rows and columns of the input, and two more columns."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from prodsc import files
from prodsc.errors import InputError, reason_of
from prodsc.export.targets import check_labels, check_target
from prodsc.sources.arrow import pa
from prodsc.sources.csv_format import csv_format
from prodsc.sources.door import open_source
from prodsc.sources.frames import arrow_table, is_table
from prodsc.sources.readers import read_vectors
from prodsc.sources.tables import BATCH_ROWS
from prodsc.spreadsheet import without_formula

TABLE_SUFFIXES = (".csv", ".tsv", ".parquet")
DELIMITED_SUFFIXES = (".csv", ".tsv")


def table(
    path: str | Path,
    source: Any,
    labels: ArrayLike,
    confidence: ArrayLike | None = None,
    *,
    names: Sequence[str] | None = None,
    places: ArrayLike | None = None,
    rows: ArrayLike | None = None,
    features: bool = True,
    force: bool = False,
) -> Path:
    """Write the rows of a source with their clusters, in their order.

    A table keeps its columns, and text stays as it was written. Only in CSV, text that a spreadsheet would run as a
    formula gets an apostrophe before it. An array becomes the columns `row` (and `id`, where the file names its rows),
    its other vectors such as y, the cluster, and its features: one column each in text, in
    Parquet one column X of vectors.

    Parameters
    ----------
    path : path
        The file to write, ending in .csv, .tsv or .parquet.
    source : path, name of a data set, array or data frame
        The rows that were fitted.
    labels : array of shape (n,)
        The cluster of each row.
    confidence : array of shape (n,), optional
        Confidence of each label.
    names : sequence of str, optional
        The name of each cluster; written as the column `cluster_name`.
    places : array of shape (n, 2), optional
        The place of each row on the map; written as the columns `x` and `y`.
    rows : array of shape (n,), optional
        The number of each labelled row in the source, ascending, if rows with missing values were left out. Those
        have no cluster in the file.
    features : bool, default=True
        Write the features of an array.
    force : bool, default=False
        Replace an existing file.

    Returns
    -------
    Path
        The file.

    Raises
    ------
    OutputError
        If the file exists or has another ending.
    InputError
        If there is not one label for each row.
    """
    path = check_target(path, TABLE_SUFFIXES, force, [source])
    new = _new_columns(*check_labels(labels, confidence), names, places)
    numbers = None if rows is None else np.asarray(rows, dtype=np.int64)
    n_labelled = len(next(iter(new.values())))
    as_text = path.suffix.lower() in DELIMITED_SUFFIXES
    done = 0
    with files.atomic(path) as part:
        with _Writer(part, path.suffix.lower()) as writer:
            for chunk, keep in _chunks(source, features, as_text):
                positions = _positions(done, done + len(chunk), numbers)
                done += len(chunk)
                if numbers is None and done > n_labelled:
                    break
                writer.write(_joined(chunk, keep, {name: values.take(positions) for name, values in new.items()}))
        if done != n_labelled if numbers is None else done <= numbers[-1]:
            more = "more than " if done > n_labelled else ""
            held = f"{more}{n_labelled if more else done}"
            raise InputError(
                f"{_name(source)} has {held} rows for {n_labelled} labels; give the rows that were fitted."
            )
    return path


def _new_columns(
    clusters: np.ndarray, confidences: np.ndarray | None, names: Sequence[str] | None, places: ArrayLike | None
) -> dict[str, pa.Array]:
    """What is known about the labelled rows, by the name of the column."""
    new = {"cluster": pa.array(clusters)}
    if names is not None:
        if len(names) <= clusters.max():
            raise InputError(f"names has {len(names)} names for {clusters.max() + 1} clusters; give one for each.")
        new["cluster_name"] = pa.array([str(name) for name in names]).take(pa.array(clusters))
    if confidences is not None:
        new["confidence"] = pa.array(confidences)
    if places is not None:
        plane = np.asarray(places, dtype=np.float32)
        new |= {"x": pa.array(plane[:, 0]), "y": pa.array(plane[:, 1])}
    return new


def _positions(start: int, stop: int, rows: np.ndarray | None) -> pa.Array:
    """Which labelled row each row of the source is; missing where it has no label."""
    every = np.arange(start, stop)
    if rows is None:
        return pa.array(every)
    found = np.minimum(np.searchsorted(rows, every), len(rows) - 1)
    return pa.array(found, mask=rows[found] != every)


def map_places(model: Any, X: Any) -> np.ndarray:
    """The place of each row on the map of a page.

    Parameters
    ----------
    model : PRODSC
        Fitted.
    X : array, tensor, frame, memory map or path
        The rows of the fit.

    Returns
    -------
    ndarray of shape (n, 2)
        Within the unit square.
    """
    from prodsc.report.layout import lay_out  # needs matplotlib
    from prodsc.report.map_data import unit_square

    return unit_square(lay_out(model.transform(X)).places)


def input_columns(source: Any, features: bool = True) -> pa.Table:
    """All rows of a source as `table` writes them to Parquet, without the cluster.

    Parameters
    ----------
    source : path, name of a data set, array or data frame
        The rows.
    features : bool, default=True
        Keep the features of an array.

    Returns
    -------
    pyarrow.Table
    """
    return pa.concat_tables([chunk for chunk, _ in _chunks(source, features, as_text=False)])


def _joined(chunk: pa.Table, first: int, new: dict[str, pa.Array]) -> pa.Table:
    """Add new columns behind the first ones, under names that the input does not use."""
    for name, values in reversed(new.items()):
        taken, free = set(chunk.column_names), name
        while free in taken:
            free += "_"
        chunk = chunk.add_column(first, free, values)
    return chunk


def _name(source: Any) -> str:
    return str(source) if isinstance(source, (str, Path)) else "the input"


# ---- the input, a few thousand rows at a time ------------------------------------------------------------------------

Chunks: TypeAlias = "Iterator[tuple[pa.Table, int]]"  # with the number of columns that come before the cluster


def _chunks(source: Any, features: bool, as_text: bool) -> Chunks:
    if hasattr(source, "iloc") and hasattr(source, "columns"):  # pandas, whose index is kept
        return _whole(pa.Table.from_pandas(source))
    if is_table(source):
        return _whole(arrow_table(source))
    if not isinstance(source, (str, Path)):
        return _of_arrays({}, np.asarray(source), features, as_text)
    path = Path(source).expanduser()
    if path.suffix.lower() in TABLE_SUFFIXES:  # columns that are not numbers are kept
        try:
            return (
                _parquet(pa.parquet.ParquetFile(path))
                if path.suffix.lower() == ".parquet"
                else _whole(_csv(path, as_text))
            )
        except (pa.ArrowException, OSError, ValueError) as error:
            reason = reason_of(error)
            raise InputError(f"{path} cannot be read ({reason}); name the file that was fitted.") from error
    opened = open_source(str(source))
    vectors = {} if opened.y is None else {"y": opened.y}
    if opened.info is None:
        vectors = read_vectors(path, len(opened.X))
    if opened.ids is not None:
        others = {name: values for name, values in vectors.items() if name not in ("id", "ids")}
        vectors = {"id": np.array(opened.ids)} | others
    return _of_arrays(vectors, opened.X, features, as_text)


def _whole(table: pa.Table) -> Chunks:
    for start in range(0, len(table), BATCH_ROWS):
        yield table.slice(start, BATCH_ROWS), table.num_columns


def _parquet(file: pa.parquet.ParquetFile) -> Chunks:
    with file:
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            yield pa.Table.from_batches([batch]), batch.num_columns


def _csv(path: Path, as_text: bool) -> pa.Table:
    """Text as it is in the file; for Parquet numbers, except that identifiers such as 007 stay text."""
    form = csv_format(path)
    how, parse = form.read, form.parse
    names = pa.csv.read_csv(path, how, parse).column_names
    text = pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
    written = pa.csv.read_csv(path, how, parse, text)
    if as_text:
        return written
    typed = pa.csv.read_csv(path, how, parse, pa.csv.ConvertOptions(decimal_point=form.decimal_point))
    for i, column in enumerate(typed.columns):
        if (
            pa.types.is_integer(column.type)
            and pa.compute.all(pa.compute.equal(column.cast(pa.string()), written.column(i))).as_py() is False
        ):
            typed = typed.set_column(i, typed.field(i).with_type(pa.string()), written.column(i))
    return typed


def _of_arrays(vectors: dict[str, np.ndarray], X: np.ndarray, features: bool, as_text: bool) -> Chunks:
    taken = {"row", *vectors}
    for start in range(0, len(X), BATCH_ROWS):
        rows = slice(start, start + BATCH_ROWS)
        columns = {"row": pa.array(np.arange(len(X))[rows])}
        columns |= {name: pa.array(values[rows]) for name, values in vectors.items()}
        first = len(columns)
        flat = np.asarray(X[rows]).reshape(len(columns["row"]), -1)
        if features and as_text:
            shown = flat.astype(str)  # the shortest decimals that give the very number back
            columns |= {
                f"f{j}" if f"f{j}" not in taken else f"f{j}_": pa.array(shown[:, j]) for j in range(shown.shape[1])
            }
        elif features:
            values = pa.array(flat.reshape(-1))
            columns["X" if "X" not in taken else "X_"] = pa.FixedSizeListArray.from_arrays(values, flat.shape[1])
        yield pa.table(columns), first


# ---- the output ------------------------------------------------------------------------------------------------------


class _Writer:
    """Writes tables of one schema to one file; a context, so that the file is closed before it is renamed."""

    def __init__(self, path: Path, suffix: str):
        self.path, self.suffix = path, suffix
        self.parquet: Any = None
        self.file: Any = None

    def __enter__(self) -> _Writer:
        if self.suffix in DELIMITED_SUFFIXES:
            self.file = self.path.open("w", encoding="utf-8", newline="")
            self.lines = csv.writer(self.file, delimiter="\t" if self.suffix == ".tsv" else ",", lineterminator="\n")
        return self

    def write(self, table: pa.Table) -> None:
        if self.file is None:
            if self.parquet is None:
                self.parquet = pa.parquet.ParquetWriter(self.path, table.schema)
            self.parquet.write_table(table.cast(self.parquet.schema))
            return
        if not self.file.tell():
            self.lines.writerow(map(without_formula, table.column_names))
        columns = [_text(table.column(i)) for i in range(table.num_columns)]
        self.lines.writerows(zip(*columns, strict=True))

    def __exit__(self, *_: object) -> None:
        for writer in (self.parquet, self.file):
            if writer is not None:
                writer.close()


def _text(column: pa.ChunkedArray) -> list[Any]:
    values = column.to_pylist()
    if pa.types.is_float32(column.type):
        with suppress(pa.ArrowInvalid):
            return column.to_numpy().astype(str).tolist() if not column.null_count else values
    if pa.types.is_nested(column.type):
        return [json.dumps(value, default=str) for value in values]
    return [without_formula(value) if isinstance(value, str) else value for value in values]
