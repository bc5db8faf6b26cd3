"""Read a feature matrix, and labels where there are any, from a file. Nothing is ever unpickled.

path --> opened by its suffix --> Contents: arrays by name, not yet read --> X, y

Every failure is an InputError of one sentence: the rule, the value and the way out.
"""

import os
import pickle
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import scipy.io
import scipy.sparse
import torch
from safetensors import safe_open

from prodsc.data.stored import Part, Progress, StoredRows
from prodsc.data.tables import FEATURE_NAMES, LABEL_NAMES, Table, listed, open_csv, open_parquet, table_matrix
from prodsc.errors import InputError, ProdscError, did_you_mean, require

ID_NAMES = ("ids", "id")
NO_PICKLE = "a pickle is never loaded, as it could run code"


Arrays = Mapping[str, Callable[[], Any]]  # by name, each read when called


@dataclass(frozen=True)
class DataFile:
    """What was read: X (n rows, perhaps a read-only memory map) and y, used only to score."""

    path: Path
    X: Any  # an array, or StoredRows where it is made of several files or large; dtype as in the file
    y: np.ndarray | None  # int64 codes from 0
    columns: list[str] | None  # column names of X when the file has them


@dataclass(frozen=True)
class Contents:
    """What a file holds; nothing large is read until it is asked for."""

    arrays: Arrays  # a file of one nameless array has the name ""
    # X and its columns, given the names to leave out of it; None when X is one of the arrays
    matrix: Callable[[Collection[str], Progress | None], tuple[Any, list[str] | None]] | None = None


def read(
    path: str | PathLike[str],
    *,
    labels: str | PathLike[str] | None = None,
    aside: Collection[str] = (),
    progress: Progress | None = None,
) -> DataFile:
    """Read X and y from a file, or from a folder of .npy or .parquet files that together are the rows.

    `labels` names an array or column of the same file, or is the path of another; what is named in `aside` is
    no part of X. `progress` is told of the rows of a large table as they are converted.
    """
    path = _existing(path, folders=True)
    names = LABEL_NAMES if labels is None else (labels,) if isinstance(labels, str) else ()
    with _opened(path) as contents:
        X, columns = _features(contents, path, {*LABEL_NAMES, *names, *aside}, progress)
        y = _vector(contents, names)
    where = f"{path}" if labels is None or y is not None else f"{labels}"
    if labels is not None and y is None:
        y = _label_file(labels, path, [name for name in contents.arrays if name])
    return DataFile(path, X, None if y is None else _codes(y, X, where), columns)


def read_labels(path: str | PathLike[str] | None, labels: str) -> np.ndarray:
    """Labels as they are written, perhaps with gaps: an array or column of a file, or a file of their own."""
    names: list[str] = []
    if path is not None:
        with _opened(_existing(path, folders=True)) as contents:
            y = _vector(contents, [labels])
            names = [name for name in contents.arrays if name]
        if y is not None:
            return y
    return _label_file(labels, Path(path or "the data"), names)


def read_pairs(path: str | PathLike[str]) -> np.ndarray:
    """n x 2 row numbers: from .npy, or from text with two whole numbers in each line, perhaps below a line of names."""
    path = _existing(path)
    if path.suffix.lower() == ".npy":
        with _opened(path) as contents:
            return np.array(contents.arrays[""]())
    try:
        lines = [line for line in path.read_text(encoding="utf-8-sig").splitlines() if line.strip()]
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8; write two row numbers in each line: 3,17.") from error
    pairs = []
    for number, line in enumerate(lines):
        words = line.replace(",", " ").replace(";", " ").split()
        if len(words) == 2 and all(word.isdecimal() for word in words):
            pairs.append((int(words[0]), int(words[1])))
        elif number:  # the first line may name the columns
            raise InputError(f"{path} has the line '{line:.60}'; each must have two row numbers, counted from 0: 3,17.")
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def read_array(path: str | PathLike[str], name: str) -> np.ndarray | None:
    """One more array of a file, such as its split, by name; None when the file has none of that name."""
    with _opened(_existing(path, folders=True)) as contents:
        return contents.arrays[name]() if name in contents.arrays else None


def read_vectors(path: str | PathLike[str], n: int) -> dict[str, np.ndarray]:
    """Every array of a file that has one value for each of n rows, such as labels, ids or a split, by name."""
    found = {}
    with _opened(_existing(path)) as contents:
        for name in filter(None, contents.arrays):
            array = contents.arrays[name]()
            array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
            if array.shape == (n,) and array.dtype.kind in "biufUSO":
                found[name] = np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array
    return found


def read_ids(path: str | PathLike[str], n: int) -> list[str] | None:
    """What a file calls its n rows: its array or column `ids` or `id`, or NAME.ids.txt beside it; None without names.

    `prodsc extract` leaves them so. Names of another number than the rows are of something else, and not taken.
    """
    path = Path(os.path.expanduser(path))
    if not os.path.isfile(path):  # a computed data set has no file
        return None
    beside = path.with_name(f"{path.stem}.ids.txt")
    if os.path.isfile(beside):
        names = beside.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        return names if len(names) == n else None
    for name in ID_NAMES:
        ids = read_array(path, name) if path.suffix.lower() in OPENERS else None
        if ids is not None and ids.shape == (n,) and ids.dtype.kind in "iuUSO":
            return [
                value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in ids.tolist()
            ]
    return None


# ---- the file: is it there, can it be opened -------------------------------------------------------------------------


def _existing(path: str | PathLike[str], folders: bool = False) -> Path:
    path = Path(os.path.expanduser(path))
    if os.path.isdir(path):
        if folders and _shards(path):
            return path
        raise InputError(
            f"{path} is a directory, not a file; name one file of these types: {', '.join(OPENERS)}"
            f"{', or a folder of .npy or of .parquet files' if folders else ''}."
        )
    if not os.path.isfile(path):  # unlike Path.is_file, this raises nothing for names the system cannot have
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
    opener = _open_folder if path.is_dir() else OPENERS.get(path.suffix.lower())
    if opener is None:
        suffix = f"type '{path.suffix}'" if path.suffix else "no suffix"
        raise InputError(f"{path} has {suffix}; supported are {', '.join(OPENERS)}: convert the file to one of them.")
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the libraries warn of is no business of the caller
        try:
            yield opener(path, stack)
        except ProdscError:
            raise
        except PermissionError as error:
            raise InputError(f"{path} may not be read by you (permission denied); change its permissions.") from error
        except MemoryError as error:
            raise InputError(f"{path} does not fit in memory; save it as .npy, which is read from disk.") from error
        except Exception as error:  # a damaged file makes these libraries raise nearly anything
            reason = (str(error).strip() or type(error).__name__).splitlines()[0][:160].rstrip(".:")
            raise InputError(
                f"{path} cannot be read as {path.suffix.lower() or 'rows'} ({reason}); "
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
        return Contents({}, lambda aside, _: (scipy.sparse.load_npz(path).toarray(), None))
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


def _open_table(opener: Callable[[Path, ExitStack], Table], path: Path, stack: ExitStack) -> Contents:
    table = opener(path, stack)
    arrays = {field.name: partial(_column_values, table, i) for i, field in table.fields.items()}
    return Contents(arrays, partial(table_matrix, [table]))


def _column_values(table: Table, i: int) -> np.ndarray:
    column = table.column(i)
    plain = pa.types.is_integer(column.type) and not column.null_count
    return column.to_numpy() if plain else np.asarray(column.to_pylist())  # a list takes ten times the memory


def _shards(folder: Path) -> list[Path]:
    """The files that make a folder one matrix, in the order of their names; hidden ones and _SUCCESS are none."""
    found = [path for path in folder.iterdir() if path.suffix.lower() in SHARDS and path.name[0] not in "._"]
    return sorted(found)


def _open_folder(folder: Path, stack: ExitStack) -> Contents:
    paths = _shards(folder)
    if len({path.suffix.lower() for path in paths}) > 1:
        raise InputError(f"{folder} holds .npy and .parquet files; keep only those of one kind in it.")
    if paths[0].suffix.lower() == ".parquet":
        tables = [open_parquet(path, stack) for path in paths]
        names = [field.name for field in tables[0].fields.values()]
        return Contents({name: partial(_stacked_column, tables, name) for name in names}, partial(table_matrix, tables))
    labels = {path.stem: _open_npy(path, stack).arrays[""] for path in paths if path.stem in LABEL_NAMES}
    shards = [path for path in paths if path.stem not in LABEL_NAMES]
    return Contents({"X": partial(_stacked_files, folder, shards, stack), **labels})


def _stacked_column(tables: list[Table], name: str) -> np.ndarray:
    numbers = [{field.name: i for i, field in table.fields.items()} for table in tables]
    absent = next((table for table, known in zip(tables, numbers, strict=True) if name not in known), None)
    if absent is not None:
        raise InputError(f"{absent.path} has no column '{name}'; the files of a folder must be alike.")
    return np.concatenate([_column_values(t, known[name]) for t, known in zip(tables, numbers, strict=True)])


def _stacked_files(folder: Path, paths: list[Path], stack: ExitStack) -> StoredRows:
    parts = []
    for path in paths:
        mapped = _open_npy(path, stack).arrays[""]()
        part = Part.of(mapped) if isinstance(mapped, np.memmap) else None
        if part is None:
            raise InputError(
                f"{path} must have rows and columns, stored by rows, to be part of {folder} (it has shape "
                f"{mapped.shape}); save it with numpy.save(path, numpy.ascontiguousarray(X))."
            )
        parts.append(part)
    if not parts:
        raise InputError(f"{folder} holds labels but no rows; add the .npy files of X.")
    return StoredRows(parts)


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
        raise InputError(f"{path} has no matrix X (it holds {listed(file)}); write it with AnnData(X=X).write_h5ad().")
    obs = file.get("obs", {})
    labels = {name: partial(_obs_column, obs[name]) for name in obs} if hasattr(obs, "keys") else {}
    return Contents(labels, lambda aside, _: (_h5ad_matrix(file["X"], path), _h5ad_columns(file)))


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
    ".parquet": partial(_open_table, open_parquet),
    ".csv": partial(_open_table, open_csv),
    ".tsv": partial(_open_table, open_csv),
    ".mat": _open_mat,
    ".h5ad": _open_h5ad,
}


SHARDS = (".npy", ".parquet")  # what a folder of rows may be made of


# ---- X: which array it is, and whether it can be one -----------------------------------------------------------------


def _features(
    contents: Contents, path: Path, aside: Collection[str], progress: Progress | None
) -> tuple[Any, list[str] | None]:
    if contents.matrix is not None:
        X, columns = contents.matrix(aside, progress)
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
        raise InputError(f"{path} has several arrays that could be X: {listed(found)}; name the right one 'X'.")
    raise InputError(
        f"{path} has no numeric array of two or more dimensions that could be X (it holds "
        f"{listed(described) or 'nothing'}); save the n x d features under the name 'X'."
    )


def _checked(X: Any, where: str) -> Any:
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
    file = Path(os.path.expanduser(labels))
    if isinstance(labels, str) and not os.path.exists(file):
        held = f"it holds {listed(names)}" if names else "it holds one array without a name"
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
    held = listed(name for name in contents.arrays if name)
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


def _codes(y: np.ndarray, X: Any, where: str) -> np.ndarray:
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
