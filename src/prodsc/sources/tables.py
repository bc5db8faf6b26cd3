"""Tables (.parquet, .csv): columns of numbers, or one column of vectors, as one matrix."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from prodsc.errors import InputError
from prodsc.progress import ProgressFunction
from prodsc.sources.arrays import FEATURE_NAMES, listed
from prodsc.sources.arrow import pa
from prodsc.sources.csv_format import DECIMAL_COMMA, csv_format
from prodsc.sources.limits import check_size, check_unpacked
from prodsc.sources.parquet import declared_values, is_text, parquet_file, read_batches, read_column, text_values
from prodsc.sources.stored import StoredRows, converted

BATCH_ROWS = 2048  # rows of a table that are read together
BATCH_NUMBERS = 2**23  # of vectors; 2,048 rows of 4,096 numbers
ID_NAME = re.compile(r"(.*[ _.-])?(id|ids|idx|index|row|key|nr)|.*ID|Id|Unnamed: 0", re.IGNORECASE)


@dataclass(frozen=True)
class ColumnTable:
    """A file with columns; nothing large is read until it is asked for."""

    path: Path
    fields: dict[int, pa.Field]  # by position in the file
    n_rows: int
    batches: Callable[[Sequence[int], int], Iterable[pa.RecordBatch]]  # some columns, so many rows at a time
    column: Callable[[int], pa.ChunkedArray]
    header: bool = True
    in_memory: bool = False
    on_disk: bool = True  # False for a table of the user's that has no file
    width: Callable[[int], float] = lambda i: 0.0  # of a column of vectors as the file declares it; 0 if it does not
    notes: tuple[str, ...] = ()  # how the file was understood, where that is not certain


@dataclass(frozen=True)
class MatrixPlan:
    """The matrix of a table before it is read."""

    table: ColumnTable
    width: int
    dtype: np.dtype
    blocks: Callable[[], Iterator[np.ndarray]]  # its rows, some at a time
    columns: list[str] | None = None

    @property
    def nbytes(self) -> int:
        return self.table.n_rows * self.width * self.dtype.itemsize


def open_parquet(path: Path, stack: ExitStack) -> ColumnTable:
    file = stack.enter_context(parquet_file(path))
    schema = file.metadata.schema.to_arrow_schema()
    index = (schema.pandas_metadata or {}).get("index_columns", [])  # row names, not features
    fields = {i: schema.field(i) for i, name in enumerate(schema.names) if name not in index}
    twice = len(set(schema.names)) < len(schema.names)

    def batches(columns: Sequence[int], rows: int) -> Iterable[pa.RecordBatch]:
        if twice:  # names do not say which column is meant
            return (batch.select([*columns]) for batch in file.iter_batches(batch_size=rows))
        return read_batches(file, [fields[i].name for i in columns], rows)

    return ColumnTable(
        path,
        fields,
        file.metadata.num_rows,
        batches,
        lambda i: read_column(file, fields[i].name, path),
        width=lambda i: declared_values(file, fields[i].name, path) / max(1, file.metadata.num_rows),
    )


def open_csv(path: Path) -> ColumnTable:
    check_size(4 * path.stat().st_size, path)  # a digit and a comma become 8 bytes
    form = csv_format(path)
    convert = pa.csv.ConvertOptions(decimal_point=form.decimal_point)
    table = pa.csv.read_csv(path, form.read, form.parse, convert)
    table = table.rename_columns([name.strip() for name in table.column_names])
    # pandas and R write the row names as a first column without a name
    unnamed = form.header and table.column_names[0] == ""
    fields = {i: field for i, field in enumerate(table.schema) if i > 0 or not unnamed}
    return ColumnTable(
        path,
        fields,
        len(table),
        lambda columns, rows: table.select([*columns]).to_batches(max_chunksize=rows),
        table.column,
        form.header,
        in_memory=True,
        notes=form.notes,
    )


def table_matrix(
    tables: Sequence[ColumnTable],
    exclude: Collection[str],
    progress: ProgressFunction | None,
    max_bytes: int,
) -> tuple[Any, list[str] | None]:
    """Read the rows of one or more tables as one matrix.

    Parameters
    ----------
    tables : sequence of ColumnTable
        Their rows are put below each other.
    exclude : collection of str
        Columns that are no part of the matrix.
    progress : callable or None
        Called with the rows done and the rows in total while a large table is converted.
    max_bytes : int
        A larger matrix is converted to rows on disk, once, instead of being held in memory.

    Returns
    -------
    X : ndarray or StoredRows
    columns : list of str or None
        Names of its columns.
    """
    plans = [_plan(table, exclude) for table in tables]
    if len(plans) > 1 and len({(plan.width, tuple(plan.columns or ())) for plan in plans}) > 1:
        odd = next(p for p in plans if (p.width, p.columns) != (plans[0].width, plans[0].columns))
        raise InputError(f"{odd.table.path} has other columns than {tables[0].path}; all files must have the same.")
    columns = plans[0].columns
    if sum(plan.nbytes for plan in plans) <= max_bytes or all(table.in_memory for table in tables):
        for plan in plans:
            if plan.table.on_disk:
                check_size(plan.nbytes, plan.table.path, "its matrix")
        matrices = [_in_memory(plan) for plan in plans]
        return matrices[0] if len(matrices) == 1 else np.concatenate(matrices), columns
    n, done = sum(table.n_rows for table in tables), 0
    stored = []
    for plan in plans:
        what = f"without {sorted(exclude)}"
        of_all = None if progress is None else lambda now, _, before=done: progress(before + now, n)
        shape = (plan.table.n_rows, plan.width)
        check_unpacked(plan.nbytes, plan.table.path, "its matrix")
        stored += converted(plan.table.path, what, shape, plan.dtype, plan.blocks, of_all).files
        done += plan.table.n_rows
    return StoredRows(stored), columns


def _in_memory(plan: MatrixPlan) -> np.ndarray:
    X, start = np.empty((plan.table.n_rows, plan.width), plan.dtype), 0
    for block in plan.blocks():
        X[start : start + len(block)] = block
        start += len(block)
    if plan.width and start != len(X):
        raise ValueError(f"its header declares {len(X)} rows, and it has {start}")
    return X


def coordinates(table: ColumnTable) -> list[str]:
    """Columns called y that are features: a number y beside a number x is a coordinate, not a label."""
    numbers = {field.name for field in table.fields.values() if _is_numeric(field.type)}
    return [y for x, y in (("x", "y"), ("X", "Y")) if {x, y} <= numbers]


def id_notes(table: ColumnTable, exclude: Collection[str], *, least_rows: int = 10) -> list[str]:
    """Sentences about columns that look like numbers of rows and not like features.

    Parameters
    ----------
    table : ColumnTable
    exclude : collection of str
        Columns that are no features.
    least_rows : int
        A first column of any name that counts the rows is mentioned from this number of rows on.

    Returns
    -------
    list of str
    """
    notes: list[str] = []
    if any(is_vector(field.type) for field in table.fields.values() if field.name not in exclude):
        return notes  # the other columns are no features
    for position, (i, field) in enumerate(table.fields.items()):
        named = ID_NAME.fullmatch(field.name) is not None
        if field.name in exclude or not pa.types.is_integer(field.type) or not (named or position == 0):
            continue
        values = column_values(table, i)
        if values.dtype.kind not in "iu" or len(values) < (3 if named else least_rows):
            continue
        if (np.diff(values) == 1).all() or (named and len(np.unique(values)) == len(values)):
            notes.append(
                f"the column '{field.name}' of {table.path} has another whole number in every row, as numbers of rows "
                f"have, and is used as a feature; if it names the rows, say so: --id {field.name}, or "
                f"prodsc.open_source(X, id='{field.name}')."
            )
    return notes


def column_values(table: ColumnTable, i: int) -> np.ndarray:
    """One column, of any type, as an array."""
    column = table.column(i)
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    if pa.types.is_integer(column.type) and not column.null_count:
        return column.to_numpy()  # a list takes ten times the memory
    if table.on_disk and (is_text(kind) or pa.types.is_binary(kind)):
        return np.asarray(text_values(column, table.path, f"the column '{table.fields[i].name}'"))
    return np.asarray(column.to_pylist())


def matrix_columns(table: ColumnTable, exclude: Collection[str]) -> list[str] | None:
    """Names of the columns of a table's matrix; None for a column of vectors, or a file without a header."""
    fields = [field for field in table.fields.values() if field.name not in exclude]
    if not table.header or any(is_vector(field.type) for field in fields):
        return None
    return [field.name for field in fields]


def _plan(table: ColumnTable, exclude: Collection[str]) -> MatrixPlan:
    fields = {i: field for i, field in table.fields.items() if field.name not in exclude}
    vectors = [i for i in fields if is_vector(fields[i].type)]
    vectors = [i for i in vectors if fields[i].name in FEATURE_NAMES] or vectors
    if len(vectors) > 1:
        names = listed(fields[i].name for i in vectors)
        raise InputError(f"{table.path} has several columns of vectors ({names}); keep one, or name one of them 'X'.")
    if vectors:  # a column of embeddings is the features; the other columns are not
        return _vectors(table, vectors[0])
    text = {i: field for i, field in fields.items() if not _is_numeric(field.type) and table.n_rows}
    if text:
        _refuse_decimal_commas(table, text)
        raise InputError(
            f"{table.path} has columns that are not numbers: {listed(f'{f.name} ({f.type})' for f in text.values())}; "
            "say what they are: --drop (no features), --text, --id, or --labels if it is known classes; in Python "
            f"prodsc.open_source(X, drop=['{next(iter(text.values())).name}'])."
        )
    return _columns(table, list(fields), matrix_columns(table, exclude))


def _refuse_decimal_commas(table: ColumnTable, text: dict[int, pa.Field]) -> None:
    """Numbers such as "1,5" are no reason to drop a column."""
    for i, field in text.items() if table.in_memory else ():
        for value in table.column(i).slice(0, BATCH_ROWS).to_pylist() if pa.types.is_string(field.type) else ():
            if DECIMAL_COMMA.fullmatch((value or "").strip()):
                raise InputError(
                    f"{table.path} has the number '{value:.40}' in the column '{field.name}'; a comma in a number may "
                    "be a decimal comma or divide thousands: write numbers as 1234.5 (pandas: read_csv(decimal=','))."
                )


def _is_numeric(kind: pa.DataType) -> bool:
    t = pa.types
    return t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind) or t.is_decimal(kind)


def is_vector(kind: pa.DataType) -> bool:
    t = pa.types
    listed = t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind)
    return listed and _is_numeric(kind.value_type) and not t.is_decimal(kind.value_type)


def _columns(table: ColumnTable, chosen: list[int], names: list[str] | None) -> MatrixPlan:
    """One matrix in the narrowest float type that holds every column exactly; a missing value becomes NaN."""
    kinds = {i: table.fields[i].type for i in chosen}
    wide = [i for i in chosen if pa.types.is_integer(kinds[i]) and kinds[i].bit_width > 16]
    batches = table.batches(wide, BATCH_ROWS) if wide else ()
    ends = [pa.compute.min_max(column).as_py() for batch in batches for column in batch.columns]
    # float32 holds every whole number up to 2**24
    fits = all(abs(value) <= 2**24 for end in ends for value in end.values() if value is not None)
    dtypes = {
        np.float64 if pa.types.is_decimal(kinds[i]) or (i in wide and not fits) else np.float32
        for i in chosen
        if not pa.types.is_floating(kinds[i])
    }
    dtypes |= {kind.to_pandas_dtype() for kind in kinds.values() if pa.types.is_floating(kind)}
    dtype = np.result_type(np.float16, *dtypes)

    def blocks() -> Iterator[np.ndarray]:
        for batch in table.batches(chosen, BATCH_ROWS) if chosen else ():
            X = np.empty((len(batch), len(chosen)), dtype)
            for j, i in enumerate(chosen):
                column = batch.column(j)
                column = column if pa.types.is_floating(kinds[i]) else column.cast(pa.float64(), safe=False)
                X[:, j] = column.to_numpy(zero_copy_only=False)
            yield X

    return MatrixPlan(table, len(chosen), dtype, blocks, names)


def _vectors(table: ColumnTable, i: int) -> MatrixPlan:
    name, dtype = table.fields[i].name, np.dtype(table.fields[i].type.value_type.to_pandas_dtype())
    rows = int(np.clip(BATCH_NUMBERS / max(1.0, table.width(i)), 1, BATCH_ROWS))
    first = next((_widths(batch.column(0)) for batch in table.batches([i], 1) if len(batch)), np.zeros(1))
    width = int(first[0])

    def blocks() -> Iterator[np.ndarray]:
        start = 0
        for batch in table.batches([i], rows):
            column = batch.column(0)
            widths = _widths(column)
            if (bad := np.flatnonzero(widths != width)).size:
                raise InputError(
                    f"column '{name}' of {table.path} must hold vectors of one length, {width}; "
                    f"row {start + bad[0]} has {widths[bad[0]]:.0f} values: drop or mend such rows."
                )
            values = column.flatten()
            if values.null_count and dtype.kind != "f":  # among floats it becomes a NaN
                raise InputError(f"column '{name}' of {table.path} has vectors with missing values; fill or drop them.")
            yield values.to_numpy(zero_copy_only=False).reshape(len(batch), -1)
            start += len(batch)

    return MatrixPlan(table, width, dtype, blocks)


def _widths(column: Any) -> np.ndarray:
    """The length of each vector; 0 where there is none."""
    return np.nan_to_num(pa.compute.list_value_length(column).to_numpy(zero_copy_only=False))
