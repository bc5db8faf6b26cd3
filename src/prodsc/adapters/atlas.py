"""A Parquet file for Embedding Atlas: the rows with their place, cluster, confidence and neighbours."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn.functional import normalize

from prodsc import files
from prodsc.adapters.data_map import DataMap, Names, data_map
from prodsc.core.graph import nearest_neighbours
from prodsc.errors import InputError
from prodsc.export.tables import input_columns
from prodsc.export.targets import check_target
from prodsc.sources.arrow import pa
from prodsc.sources.source import RowsInput


def embedding_atlas(
    path: str | Path,
    model: Any,
    X: RowsInput,
    *,
    table: Any = None,
    names: Names = None,
    n_neighbors: int = 15,
    force: bool = False,
) -> Path:
    """Write a map that Embedding Atlas opens without computing one of its own.

    The file has the columns `x`, `y`, `cluster` (its name), `cluster_2`, `cluster_3`, ... (coarser layers),
    `confidence` and `neighbors`, behind those of `table`. Open it with

        embedding-atlas map.parquet --x x --y y --neighbors neighbors

    Parameters
    ----------
    path : path
        The file to write, ending in .parquet.
    model : estimator
        Fitted.
    X : array, tensor, frame, memory map or path
        The rows.
    table : path, data frame or array, optional
        What to show of each row, such as its text: the columns of a table, the ids and labels of a file of arrays.
        Row numbers by default.
    names : mapping or sequence of str, optional
        The name of each cluster.
    n_neighbors : int, default=15
        Neighbours of each row, by cosine in the representation.
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
        If the table has another number of rows than X.
    """
    path = check_target(path, (".parquet",), force, [X, table])
    mapped = data_map(model, X, names=names)
    n_rows = len(mapped.coordinates)
    shown = pa.table({"row": np.arange(n_rows)}) if table is None else input_columns(table, features=False)
    if len(shown) != n_rows:
        raise InputError(f"the table has {len(shown)} rows and X has {n_rows}; give one row for each.")
    for name, values in _columns(mapped, n_neighbors).items():
        free = name
        while free in shown.column_names:
            free += "_"
        shown = shown.append_column(free, values)
    with files.atomic(path) as part:
        pa.parquet.write_table(shown, part)
    return path


def _columns(mapped: DataMap, n_neighbors: int) -> dict[str, Any]:
    columns = {"x": pa.array(mapped.coordinates[:, 0]), "y": pa.array(mapped.coordinates[:, 1])}
    for number, layer in enumerate(mapped.label_layers, 1):
        columns["cluster" if number == 1 else f"cluster_{number}"] = pa.array(layer.tolist(), pa.string())
    if mapped.confidence is not None:
        columns["confidence"] = pa.array(mapped.confidence.astype(np.float32))
    return columns | {"neighbors": _neighbours(mapped.Z, n_neighbors)}


def _neighbours(Z: np.ndarray, n_neighbors: int) -> Any:
    """A struct of row numbers and distances (1 - cosine) for each row, the nearest first."""
    unit = normalize(torch.from_numpy(np.ascontiguousarray(Z, dtype=np.float32)))
    near = nearest_neighbours(unit, n_neighbors)
    distances = torch.stack([1 - unit[rows] @ unit[i] for i, rows in enumerate(near)]).clamp_min(0)
    offsets = pa.array(np.arange(len(Z) + 1) * near.shape[1], pa.int32())
    lists = [
        pa.ListArray.from_arrays(offsets, pa.array(values.numpy().reshape(-1))) for values in (near, distances.double())
    ]
    return pa.StructArray.from_arrays(lists, ["ids", "distances"])
