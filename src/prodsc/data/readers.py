"""Read a feature matrix, and labels where there are any, from a file. Nothing is ever unpickled.

path --> opened by its suffix --> Contents: arrays by name, not yet read --> X, y

Every failure is an InputError of one sentence: the rule, the value and the way out.
"""

import csv
import pickle
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from itertools import islice
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import scipy.io
import scipy.sparse
import torch
from safetensors import safe_open

from prodsc.errors import InputError, ProdscError, did_you_mean, require

FEATURE_NAMES = ("X", "x", "features", "data", "embeddings")  # the first that a file has is X
LABEL_NAMES = ("y", "ys", "labels", "label", "gnd", "Y", "target", "targets")
EXACT_IN_FLOAT32 = 2**24  # every whole number up to here is a float32
ROWS_AT_A_TIME = 8192
NO_PICKLE = "a pickle is never loaded, as it could run code"


Arrays = Mapping[str, Callable[[], np.ndarray]]  # by name, each read when called


@dataclass(frozen=True)
class DataFile:
    """What was read: X (n rows, perhaps a read-only memory map) and y, used only to score."""

    path: Path
    X: np.ndarray  # dtype as in the file
    y: np.ndarray | None  # int64 codes from 0
    columns: list[str] | None  # column names of X when the file has them


@dataclass(frozen=True)
class Contents:
    """What a file holds; nothing large is read until it is asked for."""

    arrays: Arrays  # a file of one nameless array has the name ""
    # X and its columns, given the names to leave out of it; None when X is one of the arrays
    matrix: Callable[[Collection[str]], tuple[np.ndarray, list[str] | None]] | None = None


def read(path: str | PathLike[str], *, labels: str | PathLike[str] | None = None) -> DataFile:
    """Read X and y; `labels` names an array or column of the same file, or is the path of another file."""
    path = _existing(path)
    names = LABEL_NAMES if labels is None else (labels,) if isinstance(labels, str) else ()
    with _opened(path) as contents:
        X, columns = _features(contents, path, aside={*LABEL_NAMES, *names})
        y = _vector(contents, names)
    where = f"{path}" if labels is None or y is not None else f"{labels}"
    if labels is not None and y is None:
        y = _label_file(labels, path, [name for name in contents.arrays if name])
    return DataFile(path, X, None if y is None else _codes(y, X, where), columns)


# ---- the file: is it there, can it be opened -------------------------------------------------------------------------


def _existing(path: str | PathLike[str]) -> Path:
    path = Path(path).expanduser()
    if path.is_dir():
        raise InputError(f"{path} is a directory, not a file; name one file of these types: {', '.join(OPENERS)}.")
    if not path.is_file():
        raise InputError(f"{path} does not exist{did_you_mean(path.name, _siblings(path)) or '; check the path.'}")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty (0 bytes); write it again.")
    return path


def _siblings(path: Path) -> list[str]:
    with suppress(OSError):  # a folder that cannot be listed only costs the hint
        return [other.name for other in path.parent.iterdir()]
    return []


@contextmanager
def _opened(path: Path) -> Iterator[Contents]:
    """The contents of a file, readable inside the block; whatever a library raises there becomes one sentence."""
    opener = OPENERS.get(path.suffix.lower())
    if opener is None:
        suffix = f"type '{path.suffix}'" if path.suffix else "no suffix"
        raise InputError(f"{path} has {suffix}; supported are {', '.join(OPENERS)}: convert the file to one of them.")
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the libraries warn of is no business of the caller
        try:
            yield opener(path, stack)
        except ProdscError:
            raise
        except MemoryError as error:
            raise InputError(f"{path} does not fit in memory; save it as .npy, which is read from disk.") from error
        except Exception as error:  # a damaged file makes these libraries raise nearly anything
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:160].rstrip(".:")
            raise InputError(
                f"{path} cannot be read as {path.suffix.lower()} ({reason}); "
                "it is damaged, cut short or of another format: copy or write it again."
            ) from error


# ---- one opener per format -------------------------------------------------------------------------------------------


def _open_npy(path: Path, stack: ExitStack) -> Contents:
    with path.open("rb") as file:
        if file.read(6) != b"\x93NUMPY":
            raise InputError(f"{path} is not a NumPy array ({NO_PICKLE}); write it with numpy.save(path, X).")
    return Contents({"": partial(_without_objects, partial(np.lib.format.open_memmap, path, mode="r"), f"{path}")})


def _open_npz(path: Path, stack: ExitStack) -> Contents:
    if not zipfile.is_zipfile(path):
        raise InputError(
            f"{path} is not a complete .npz archive ({NO_PICKLE}); "
            "copy it again or write it with numpy.savez(path, X=X)."
        )
    file = stack.enter_context(path.open("rb"))  # given a path, np.load leaves a damaged archive open
    members = stack.enter_context(np.load(file, allow_pickle=False))
    if {"format", "shape", "data"} <= set(members.files):  # written by scipy.sparse.save_npz
        return Contents({}, lambda aside: (scipy.sparse.load_npz(path).toarray(), None))
    get = {name: partial(members.__getitem__, name) for name in members.files}
    return Contents({name: partial(_without_objects, get[name], f"array '{name}' in {path}") for name in get})


def _without_objects(get: Callable[[], Any], where: str) -> np.ndarray:
    try:
        return np.asanyarray(get())
    except ValueError as error:
        if "Object arrays" not in str(error) and "Python objects" not in str(error):
            raise
        raise InputError(
            f"{where} holds Python objects ({NO_PICKLE}); save it as numbers, or labels as text with y.astype(str)."
        ) from error


def _open_torch(path: Path, stack: ExitStack) -> Contents:
    zipped = zipfile.is_zipfile(path)  # files of torch before 1.6 are not, and cannot be mapped
    try:
        held = torch.load(path, map_location="cpu", weights_only=True, mmap=zipped)
    except pickle.UnpicklingError as error:
        with path.open("rb") as file:
            if file.read(2) == b"PK" and not zipped:
                raise  # an archive cut short, not a refusal
        raise InputError(
            f"{path} holds Python objects other than tensors, or no tensors ({NO_PICKLE}); "
            "write it with torch.save({'features': X, 'ys': y}, path), X and y tensors."
        ) from error
    if isinstance(held, torch.Tensor):
        held = {"": held}
    if not isinstance(held, dict):
        raise InputError(f"{path} holds a {type(held).__name__}; save a tensor, or a dict with a tensor 'features'.")
    return Contents({str(name): partial(_from_tensor, held, name) for name in held})


def _open_safetensors(path: Path, stack: ExitStack) -> Contents:
    file = stack.enter_context(safe_open(path, framework="pt"))  # torch, because NumPy has no bfloat16
    names: list[str] = list(file.keys())
    return Contents({name: partial(_from_tensor, file, name) for name in names})


def _from_tensor(file: Any, name: Any) -> np.ndarray:
    value = file.get_tensor(name) if hasattr(file, "get_tensor") else file[name]
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)  # a list of labels
    value = value.detach()
    if value.layout is not torch.strided:
        value = value.to_dense()
    if value.is_floating_point() and value.dtype not in (torch.float16, torch.float32, torch.float64):
        value = value.float()  # bfloat16 and the 8-bit floats, which NumPy lacks
    return value.numpy()


def _open_parquet(path: Path, stack: ExitStack) -> Contents:
    file = stack.enter_context(pa.parquet.ParquetFile(path))
    schema = file.schema_arrow
    index = (schema.pandas_metadata or {}).get("index_columns", [])  # row names, not features
    fields = {i: schema.field(i) for i, name in enumerate(schema.names) if name not in index}
    batches = partial(file.iter_batches, batch_size=ROWS_AT_A_TIME)
    column = lambda i: file.read(columns=[fields[i].name]).column(fields[i].name)  # noqa: E731
    return _table_contents(Table(path, fields, file.metadata.num_rows, batches, column))


def _open_csv(path: Path, stack: ExitStack) -> Contents:
    with path.open(encoding="utf-8-sig", newline="") as file:
        first = file.readline()
        file.seek(0)
        tabs = path.suffix.lower() == ".tsv"
        delimiter = "\t" if tabs else ";" if ";" in first and "," not in first else ","
        rows = list(islice((row for row in csv.reader(file, delimiter=delimiter) if row), 2))
    if not rows:
        raise InputError(f"{path} holds no rows, only blank lines; write it again.")
    header = _has_header(rows)
    names = None if header else [f"f{j}" for j in range(len(rows[0]))]
    block = max(2**20, 4 * sum(len(cell) + 1 for row in rows for cell in row))  # pyarrow wants whole rows in a block
    options = pa.csv.ReadOptions(column_names=names, block_size=block), pa.csv.ParseOptions(delimiter=delimiter)
    table = pa.csv.read_csv(path, *options)
    table = table.rename_columns([name.strip() for name in table.column_names])
    # pandas and R write the row names as a first column without a name
    unnamed = header and table.column_names[0] == ""
    fields = {i: field for i, field in enumerate(table.schema) if i > 0 or not unnamed}
    batches = partial(table.to_batches, max_chunksize=ROWS_AT_A_TIME)
    return _table_contents(Table(path, fields, len(table), batches, table.column, header))


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Is the first row names? It is if it names labels, has text above a number, has only text, or counts 0, 1, 2..."""
    first = [cell.strip() for cell in rows[0]]
    below = [cell.strip() for cell in rows[-1]] if len(rows) > 1 else []
    counted = [str(i) for i in range(len(first))]  # the header that pandas gives to an array
    if first == counted:
        return len(first) > 2 or any("." in cell for cell in below)  # 0,1 alone may well be data
    return (
        first == ["", *counted[:-1]]
        or any(cell in LABEL_NAMES for cell in first)
        or any(not _is_number(a) and _is_number(b) and b for a, b in zip(first, below, strict=False))
        or (len(first) > 1 and not any(_is_number(cell) for cell in first))
    )


def _is_number(cell: str) -> bool:
    with suppress(ValueError):
        return cell in ("", "NA", "null") or float(cell) is not None
    return False


def _open_mat(path: Path, stack: ExitStack) -> Contents:
    with path.open("rb") as file:
        head = file.read(520)
    if b"\x89HDF\r\n\x1a\n" in (head[:8], head[512:]):  # v7.3 is HDF5 behind 512 bytes of MATLAB's own
        file = _hdf5(path, stack)
        return Contents({name: partial(_mat73, name, file[name]) for name in file if not name.startswith("#")})
    kinds = {name: kind for name, _, kind in scipy.io.whosmat(path, appendmat=False)}
    return Contents({name: partial(_mat5, name, kind, path) for name, kind in kinds.items()})


def _mat5(name: str, kind: str, path: Path) -> np.ndarray:
    value = scipy.io.loadmat(path, appendmat=False, variable_names=[name])[name]
    # MATLAB packs doubles that are whole as bytes (and scipy's own mat_dtype would drop imaginary parts)
    whole = {"double": np.float64, "single": np.float32}.get(kind) if value.dtype.kind in "iu" else None
    return _mat_array(name, value.astype(whole) if whole else value)


def _mat73(name: str, node: Any) -> np.ndarray:
    kind = node.attrs.get("MATLAB_class", b"")
    if "MATLAB_sparse" in node.attrs:
        parts = node["data"][()], node["ir"][()], node["jc"][()]
        return _mat_array(name, scipy.sparse.csc_array(parts, shape=(node.attrs["MATLAB_sparse"], len(parts[2]) - 1)))
    if not hasattr(node, "dtype") or kind in (b"char", b"cell", b"struct"):
        return np.asarray(None)  # a group, or text stored as numbers: nothing to cluster
    if "MATLAB_empty" in node.attrs:
        return np.empty(node[()].astype(int).ravel())  # an empty matrix is stored as its shape
    return _mat_array(name, node[()].T)  # MATLAB counts columns first, HDF5 rows first


def _mat_array(name: str, value: Any) -> np.ndarray:
    """Dense, rows contiguous; MATLAB knows no vectors, so 1 x n and n x 1 are taken as such unless they must be X."""
    array = np.asarray(value.toarray() if scipy.sparse.issparse(value) else value)
    vector = array.ndim == 2 and 1 in array.shape and name not in FEATURE_NAMES
    return array.ravel() if vector else np.ascontiguousarray(array)


def _open_h5ad(path: Path, stack: ExitStack) -> Contents:
    file = _hdf5(path, stack)
    if "X" not in file:
        raise InputError(f"{path} has no matrix X (it holds {_listed(file)}); write it with AnnData(X=X).write_h5ad().")
    obs = file.get("obs", {})
    labels = {name: partial(_obs_column, obs[name]) for name in obs} if hasattr(obs, "keys") else {}
    return Contents(labels, lambda aside: (_h5ad_matrix(file["X"], path), _h5ad_columns(file)))


def _h5ad_matrix(node: Any, path: Path) -> np.ndarray:
    if hasattr(node, "dtype"):
        return node[()]
    kind = node.attrs.get("encoding-type", "unknown")
    build = {"csr_matrix": scipy.sparse.csr_array, "csc_matrix": scipy.sparse.csc_array}.get(kind)
    if build is None:
        raise InputError(f"X in {path} is stored as '{kind}'; it must be dense, csr_matrix or csc_matrix: convert it.")
    parts = node["data"][()], node["indices"][()], node["indptr"][()]
    return build(parts, shape=tuple(node.attrs["shape"])).toarray()


def _h5ad_columns(file: Any) -> list[str] | None:
    var = file.get("var")
    names: Any = var.get(var.attrs.get("_index", "_index")) if hasattr(var, "keys") else None
    return list(names.asstr()[()]) if hasattr(names, "asstr") else None


def _obs_column(node: Any) -> np.ndarray:
    if hasattr(node, "dtype"):
        return node.asstr()[()] if node.dtype.kind == "O" else node[()]
    if "codes" not in node:
        return np.asarray(None)
    codes, values = node["codes"][()], _obs_column(node["categories"])
    if (codes < 0).any():  # rows without a category
        values = np.array([*values, None], dtype=object)  # -1 points to the last
    return values[codes]


def _hdf5(path: Path, stack: ExitStack) -> Any:
    return stack.enter_context(require("h5py", extra="hdf5", caller=f"reading {path}").File(path, "r"))


OPENERS: dict[str, Callable[[Path, ExitStack], Contents]] = {
    ".npy": _open_npy,
    ".npz": _open_npz,
    ".pt": _open_torch,
    ".pth": _open_torch,
    ".safetensors": _open_safetensors,
    ".parquet": _open_parquet,
    ".csv": _open_csv,
    ".tsv": _open_csv,
    ".mat": _open_mat,
    ".h5ad": _open_h5ad,
}


# ---- tables: columns of numbers, or one column of vectors ------------------------------------------------------------


@dataclass(frozen=True)
class Table:
    path: Path
    fields: dict[int, pa.Field]  # by position in the file
    n_rows: int
    batches: Callable[[], Iterable[pa.RecordBatch]]  # starts anew at every call: a big file is not held whole beside X
    column: Callable[[int], pa.ChunkedArray]
    header: bool = True


def _table_contents(table: Table) -> Contents:
    arrays = {field.name: partial(_column_values, table, i) for i, field in table.fields.items()}
    return Contents(arrays, partial(_table_matrix, table))


def _column_values(table: Table, i: int) -> np.ndarray:
    return np.asarray(table.column(i).to_pylist())


def _table_matrix(table: Table, aside: Collection[str]) -> tuple[np.ndarray, list[str] | None]:
    fields = {i: field for i, field in table.fields.items() if field.name not in aside}
    vectors = [i for i in fields if _is_vector(fields[i].type)]
    vectors = [i for i in vectors if fields[i].name in FEATURE_NAMES] or vectors
    if len(vectors) > 1:
        names = _listed(fields[i].name for i in vectors)
        raise InputError(f"{table.path} has several columns of vectors ({names}); keep one, or name one of them 'X'.")
    if vectors:  # an embedding column is the features, and what stands beside it is not
        return _from_vectors(table, vectors[0]), None
    text = [field for field in fields.values() if not _is_numeric(field.type) and table.n_rows]
    if text:
        raise InputError(
            f"{table.path} has columns that are not numbers: {_listed(f'{f.name} ({f.type})' for f in text)}; "
            f"drop them (pandas: df.drop(columns=[...])), or pass labels='{text[0].name}' if that column is the labels."
        )
    return _from_columns(table, list(fields)), [f.name for f in fields.values()] if table.header else None


def _is_numeric(kind: pa.DataType) -> bool:
    t = pa.types
    return t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind) or t.is_decimal(kind)


def _is_vector(kind: pa.DataType) -> bool:
    t = pa.types
    listed = t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind)
    return listed and _is_numeric(kind.value_type) and not t.is_decimal(kind.value_type)


def _from_columns(table: Table, chosen: list[int]) -> np.ndarray:
    """One array in the narrowest float type that holds every column exactly; a missing value becomes NaN."""
    kinds = {i: table.fields[i].type for i in chosen}
    wide = [i for i in chosen if pa.types.is_integer(kinds[i]) and kinds[i].bit_width > 16]
    ends = [pc.min_max(batch.column(i)).as_py() for batch in table.batches() for i in wide] if wide else []
    fits = all(abs(value) <= EXACT_IN_FLOAT32 for end in ends for value in end.values() if value is not None)
    dtypes = {
        np.float64 if pa.types.is_decimal(kinds[i]) or (i in wide and not fits) else np.float32
        for i in chosen
        if not pa.types.is_floating(kinds[i])
    }
    dtypes |= {kind.to_pandas_dtype() for kind in kinds.values() if pa.types.is_floating(kind)}
    X = np.empty((table.n_rows, len(chosen)), dtype=np.result_type(np.float16, *dtypes))
    start = 0
    for batch in table.batches():
        for j, i in enumerate(chosen):
            column = batch.column(i)
            column = column if pa.types.is_floating(kinds[i]) else column.cast(pa.float64(), safe=False)
            X[start : start + len(batch), j] = column.to_numpy(zero_copy_only=False)
        start += len(batch)
    return X


def _from_vectors(table: Table, i: int) -> np.ndarray:
    name, dtype = table.fields[i].name, table.fields[i].type.value_type.to_pandas_dtype()
    X, start = np.empty((table.n_rows, 0)), 0
    for batch in table.batches():
        column = batch.column(i)
        widths = pc.list_value_length(column).to_numpy(zero_copy_only=False)  # NaN where there is no vector
        if start == 0:
            X = np.empty((table.n_rows, int(np.nan_to_num(widths[0]))), dtype=dtype)
        if (bad := np.flatnonzero(widths != X.shape[1])).size:
            raise InputError(
                f"column '{name}' of {table.path} must hold vectors of one length, {X.shape[1]}; "
                f"row {start + bad[0]} has {np.nan_to_num(widths[bad[0]]):.0f} values: drop or mend such rows."
            )
        values = column.flatten()
        if values.null_count and X.dtype.kind != "f":  # among floats it becomes a NaN
            raise InputError(f"column '{name}' of {table.path} has vectors with missing values; fill or drop them.")
        X[start : start + len(batch)] = values.to_numpy(zero_copy_only=False).reshape(len(batch), -1)
        start += len(batch)
    return X


# ---- X: which array it is, and whether it can be one -----------------------------------------------------------------


def _features(contents: Contents, path: Path, aside: Collection[str]) -> tuple[np.ndarray, list[str] | None]:
    if contents.matrix is not None:
        X, columns = contents.matrix(aside)
        return _checked(X, f"{path}"), columns
    name, X = _feature_array(contents.arrays, path, aside)
    return _checked(X, f"array '{name}' in {path}" if name else f"{path}"), None


def _feature_array(arrays: Arrays, path: Path, aside: Collection[str]) -> tuple[str, np.ndarray]:
    known = [name for name in FEATURE_NAMES if name in arrays]
    if known or len(arrays) == 1:
        name = known[0] if known else next(iter(arrays))
        return name, arrays[name]()
    found, described = {}, []
    for name, get in arrays.items():
        array = get()
        described.append(f"{name} {array.shape} {array.dtype}")
        if array.ndim >= 2 and array.shape[1:] != (1,) and array.dtype.kind in "biufc" and name not in aside:
            found[name] = array
    if len(found) == 1:
        return next(iter(found.items()))
    if found:
        raise InputError(f"{path} has several arrays that could be X: {_listed(found)}; name the right one 'X'.")
    raise InputError(
        f"{path} has no numeric array of two or more dimensions that could be X (it holds "
        f"{_listed(described) or 'nothing'}); save the n x d features under the name 'X'."
    )


def _checked(X: np.ndarray, where: str) -> np.ndarray:
    if X.dtype.kind == "c":
        raise InputError(
            f"{where} holds complex numbers ({X.dtype}); X must be real: save np.hstack([X.real, X.imag]) or abs(X)."
        )
    if X.dtype.kind not in "biuf":
        raise InputError(f"{where} is of type {X.dtype}, not numbers; save it as a float or integer array.")
    if X.ndim < 2:
        raise InputError(
            f"{where} is {X.ndim}-D (shape {X.shape}); X must have rows and columns: save X.reshape(n_rows, n_columns)."
        )
    if 0 in X.shape:
        lacking = "rows" if len(X) == 0 else "columns"
        raise InputError(f"{where} has 0 {lacking} (shape {X.shape}); X must have at least one row and one column.")
    if X.dtype.itemsize > 8:
        return X.astype(np.float64)  # torch has no longer floats
    return X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))  # nor foreign byte orders


# ---- y: where it is, and its codes -----------------------------------------------------------------------------------


def _vector(contents: Contents, names: Iterable[str]) -> np.ndarray | None:
    """The first of the named arrays that is one label per row."""
    for name in names:
        if name in contents.arrays:
            y = contents.arrays[name]()
            y = y[:, 0] if y.ndim == 2 and y.shape[1] == 1 else y
            if y.ndim == 1:
                return y
    return None


def _label_file(labels: str | PathLike[str], path: Path, names: list[str]) -> np.ndarray:
    """Labels from a file of their own: one label per line (.txt), or any format above with one 1-D array in it."""
    file = Path(labels).expanduser()
    if isinstance(labels, str) and not file.exists():
        held = f"it holds {_listed(names)}" if names else "it holds one array without a name"
        hint = did_you_mean(labels, [name for name in [*names, *_siblings(file)] if name != labels])
        raise InputError(
            f"labels='{labels}' is neither a column or 1-D array of {path} ({held}) nor a file"
            f"{hint or '; give one of those names or the path of a file.'}"
        )
    file = _existing(file)
    if file.suffix.lower() == ".txt":
        return _text_labels(file)
    with _opened(file) as contents:
        y = _vector(contents, LABEL_NAMES)
        if y is not None:
            return y
        vectors = {name: y for name in contents.arrays if (y := _vector(contents, [name])) is not None}
    if len(vectors) == 1:
        return next(iter(vectors.values()))
    held = _listed(name for name in contents.arrays if name)
    raise InputError(
        f"the labels file {file} must hold one 1-D array or column, or one named 'labels'; it has "
        f"{len(vectors)} of them{f' ({held})' if held else ''}: save the labels alone."
    )


def _text_labels(file: Path) -> np.ndarray:
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise InputError(f"{file} is not text in UTF-8; write one label per line.") from error
    with suppress(ValueError):
        return np.asarray(lines, dtype=np.float64)  # so that 10 comes after 9
    return np.asarray(lines)


def _codes(y: np.ndarray, X: np.ndarray, where: str) -> np.ndarray:
    """Labels as int64 codes 0, 1, ... in the order of their values."""
    if len(y) != len(X):
        turned = "; X looks transposed, save X.T" if len(y) == X.shape[1] else "; give one label per row"
        raise InputError(f"{where} has {len(y)} labels for {len(X)} rows of X{turned}.")
    bad = np.empty(0, dtype=int)
    if y.dtype.kind == "f":
        bad = np.flatnonzero(~np.isfinite(y) | (y != np.trunc(y)))
    elif y.dtype.kind == "O":
        bad = np.flatnonzero([not isinstance(value, str) for value in y])
    elif y.dtype.kind not in "biuUS":
        bad = np.arange(len(y))
    if bad.size:
        raise InputError(
            f"labels in {where} must be whole numbers, booleans or text; row {bad[0]} has {y[bad[0]]}: "
            "mend it, or rename the array or column if it is not labels."
        )
    return np.unique(y, return_inverse=True)[1].astype(np.int64)


def _listed(names: Iterable[str], most: int = 6) -> str:
    names = list(names)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
