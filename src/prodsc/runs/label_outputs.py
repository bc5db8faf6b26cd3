"""Labels in parts, joined to one file: .npy, .parquet or Lance. Only one part is in memory at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from prodsc import files
from prodsc.errors import require
from prodsc.sources.arrow import pa

FIELDS = (("label", np.int32), ("confidence", np.float32), ("outlier", np.float32))


def no_labels(n: int, n_fields: int) -> np.ndarray:
    """An array of n rows with the first so many of `FIELDS`; the label is -1, the others are NaN."""
    rows = np.full(n, -1, dtype=list(FIELDS[:n_fields]))
    for name, _ in FIELDS[1:n_fields]:
        rows[name] = np.nan
    return rows


def write_npy(path: Path, parts: Iterable[np.ndarray], names: Sequence[str] | None, into: Path | None) -> None:
    """The labels as one array of int32."""
    n = sum(map(len, parts))
    with files.atomic(path) as part, part.open("wb") as file:
        header = {"descr": "<i4", "fortran_order": False, "shape": (n,)}
        np.lib.format.write_array_header_1_0(file, header)
        for labels in parts:
            file.write(np.ascontiguousarray(labels["label"], "<i4").data)


def write_parquet(path: Path, parts: Iterable[np.ndarray], names: Sequence[str] | None, into: Path | None) -> None:
    """A column for each field, a row group for each part; with names of clusters, also a column of them."""
    batches = _tables(parts, names)
    first = next(batches)
    with files.atomic(path) as part, pa.parquet.ParquetWriter(part, first.schema) as writer:
        writer.write_table(first)
        for table in batches:
            writer.write_table(table)


def write_lance(path: Path, parts: Iterable[np.ndarray], names: Sequence[str] | None, into: Path | None) -> None:
    """A new Lance data set, or further columns of the one that was labelled; Lance commits all or nothing."""
    lance = require("lance", extra="lance", caller="a Lance data set")
    schema = next(_tables(parts, names)).schema
    reader = pa.RecordBatchReader.from_batches(
        schema, (batch for table in _tables(parts, names) for batch in table.to_batches())
    )
    if into is None:
        lance.write_dataset(reader, str(path), mode="overwrite" if path.exists() else "create")
        return
    dataset = lance.dataset(str(into))
    if old := sorted(set(schema.names) & set(dataset.schema.names)):
        dataset.drop_columns(old)
    dataset.add_columns(reader)


def columns_taken(path: Path) -> list[str]:
    """Columns of a Lance data set that labels would replace."""
    schema = require("lance", extra="lance", caller="a Lance data set").dataset(str(path)).schema
    return sorted({"name", *(name for name, _ in FIELDS)} & set(schema.names))


def _tables(parts: Iterable[np.ndarray], names: Sequence[str] | None) -> Iterator[Any]:
    for labels in parts:
        columns = {name: pa.array(labels[name], from_pandas=True) for name in labels.dtype.names or ()}
        if names is not None:
            codes = pa.array(labels["label"], mask=labels["label"] < 0)
            columns["name"] = pa.DictionaryArray.from_arrays(codes, pa.array(list(names)))
        yield pa.table(columns)


OUTPUTS: dict[str, Callable[[Path, Iterable[np.ndarray], Sequence[str] | None, Path | None], None]] = {
    ".npy": write_npy,
    ".parquet": write_parquet,
    ".lance": write_lance,
}
