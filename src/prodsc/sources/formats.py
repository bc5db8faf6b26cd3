"""A file as arrays by name, none of them read yet: one opener per format. Nothing is ever unpickled.

The library of a format is imported when a file of that format is opened.
"""

import os
import pickle
import warnings
import zipfile
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prodsc.errors import InputError, ProdscError, did_you_mean, reason_of, require
from prodsc.progress import ProgressFunction
from prodsc.sources.arrays import FEATURE_NAMES, LABEL_NAMES, listed
from prodsc.sources.stored import StoredFile, StoredRows
from prodsc.sources.tables import ColumnTable, column_values, matrix_columns, open_csv, open_parquet, table_matrix

NO_PICKLE = "a pickle is never loaded, as it could run code"

ArrayLoaders = Mapping[str, Callable[[], Any]]  # by name, each read when called


# X and its column names, given the columns to exclude, progress, and the bytes from which X is kept on disk
MatrixReader = Callable[[Collection[str], ProgressFunction | None, int], tuple[Any, list[str] | None]]


@dataclass(frozen=True)
class FileContents:
    """What a file holds; nothing large is read until it is asked for."""

    arrays: ArrayLoaders  # a file of one nameless array has the name ""
    matrix: MatrixReader | None = None  # None if X is one of the arrays
    columns: Callable[[Collection[str]], list[str] | None] | None = None  # names of the columns of that X, without X


# ---- the file: is it there, can it be opened -------------------------------------------------------------------------


def existing(path: str | PathLike[str], folders: bool = False) -> Path:
    """The path of a file that exists and is not empty, or (if allowed) of a folder of rows; else an InputError."""
    path = Path(os.path.expanduser(path))
    if os.path.isdir(path):
        if folders and _shards(path):
            return path
        raise InputError(
            f"{path} is a directory, not a file; name one file of these types: {', '.join(OPENERS)}"
            f"{', or a folder of .npy or of .parquet files' if folders else ''}."
        )
    if not os.path.isfile(path):  # unlike Path.is_file, this raises nothing for names the system cannot have
        raise InputError(f"{path} does not exist{did_you_mean(path.name, siblings(path)) or '; check the path.'}")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty (0 bytes); write it again.")
    return path


def siblings(path: Path) -> list[str]:
    """Names of the files in the same folder, for suggestions."""
    with suppress(OSError):  # without a list there is only no suggestion
        return [other.name for other in path.parent.iterdir()]
    return []


@contextmanager
def opened(path: Path) -> Iterator[FileContents]:
    """The contents of a file, readable inside the block; any error of a library there becomes an InputError."""
    opener = _open_folder if path.is_dir() else OPENERS.get(path.suffix.lower())
    if opener is None:
        suffix = f"type '{path.suffix}'" if path.suffix else "no suffix"
        raise InputError(f"{path} has {suffix}; supported are {', '.join(OPENERS)}: convert the file to one of them.")
    with ExitStack() as stack, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # warnings of the libraries do not help the user
        try:
            yield opener(path, stack)
        except ProdscError:
            raise
        except PermissionError as error:
            raise InputError(f"{path} may not be read by you (permission denied); change its permissions.") from error
        except MemoryError as error:
            raise InputError(f"{path} does not fit in memory; save it as .npy, which is read from disk.") from error
        except Exception as error:  # damaged files raise many kinds of errors
            reason = reason_of(error)
            raise InputError(
                f"{path} cannot be read as {path.suffix.lower() or 'rows'} ({reason}); "
                "it is damaged, cut short or of another format: copy or write it again."
            ) from error


# ---- one opener per format -------------------------------------------------------------------------------------------


def _open_npy(path: Path, stack: ExitStack) -> FileContents:
    with path.open("rb") as file:
        if file.read(6) != b"\x93NUMPY":
            raise InputError(f"{path} is not a NumPy array ({NO_PICKLE}); write it with numpy.save(path, X).")
    return FileContents({"": partial(_without_objects, partial(np.lib.format.open_memmap, path, mode="r"), f"{path}")})


def _open_npz(path: Path, stack: ExitStack) -> FileContents:
    if not zipfile.is_zipfile(path):
        raise InputError(
            f"{path} is not a complete .npz archive ({NO_PICKLE}); "
            "copy it again or write it with numpy.savez(path, X=X)."
        )
    file = stack.enter_context(path.open("rb"))  # given a path, np.load leaves a damaged archive open
    members = stack.enter_context(np.load(file, allow_pickle=False))
    if {"format", "shape", "data"} <= set(members.files):  # written by scipy.sparse.save_npz
        return FileContents({}, lambda *_: (_load_sparse(path), None))
    get = {name: partial(members.__getitem__, name) for name in members.files}
    return FileContents({name: partial(_without_objects, get[name], f"array '{name}' in {path}") for name in get})


def _load_sparse(path: Path) -> np.ndarray:
    from scipy import sparse

    return _dense(sparse.load_npz(path))


def _dense(matrix: Any) -> np.ndarray:
    """A sparse matrix of a file as an array. Its indices are checked first: SciPy would write outside the array."""
    if hasattr(matrix, "check_format"):  # the other formats check their indices when they are made
        matrix.check_format(full_check=True)
    return matrix.toarray()


def _without_objects(get: Callable[[], Any], where: str) -> np.ndarray:
    try:
        return np.asanyarray(get())
    except ValueError as error:
        if "Object arrays" not in str(error) and "Python objects" not in str(error):
            raise
        raise InputError(
            f"{where} holds Python objects ({NO_PICKLE}); save it as numbers, or labels as text with y.astype(str)."
        ) from error


def _open_torch(path: Path, stack: ExitStack) -> FileContents:
    import torch

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
    return FileContents({str(name): partial(_from_tensor, held, name) for name in held})


def _open_safetensors(path: Path, stack: ExitStack) -> FileContents:
    from safetensors import safe_open

    file = stack.enter_context(safe_open(path, framework="pt"))  # torch, because NumPy has no bfloat16
    names: list[str] = list(file.keys())
    return FileContents({name: partial(_from_tensor, file, name) for name in names})


def _from_tensor(file: Any, name: Any) -> np.ndarray:
    import torch

    value = file.get_tensor(name) if hasattr(file, "get_tensor") else file[name]
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)  # a list of labels
    value = value.detach()
    if value.layout is not torch.strided:
        value = value.to_dense()
    if value.is_floating_point() and value.dtype not in (torch.float16, torch.float32, torch.float64):
        value = value.float()  # bfloat16 and the 8-bit floats, which NumPy lacks
    return value.numpy()


def _open_csv(path: Path, stack: ExitStack) -> FileContents:
    return _of_tables([open_csv(path)])


def _open_parquet(path: Path, stack: ExitStack) -> FileContents:
    return _of_tables([open_parquet(path, stack)])


def _of_tables(tables: list[ColumnTable]) -> FileContents:
    """One table, or several below each other."""
    arrays = {field.name: partial(_stacked_column, tables, field.name) for field in tables[0].fields.values()}
    return FileContents(arrays, partial(table_matrix, tables), partial(matrix_columns, tables[0]))


def _stacked_column(tables: list[ColumnTable], name: str) -> np.ndarray:
    numbers = [{field.name: i for i, field in table.fields.items()} for table in tables]
    absent = next((table for table, known in zip(tables, numbers, strict=True) if name not in known), None)
    if absent is not None:
        raise InputError(f"{absent.path} has no column '{name}'; all files of a folder must have the same columns.")
    parts = [column_values(table, known[name]) for table, known in zip(tables, numbers, strict=True)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _shards(folder: Path) -> list[Path]:
    """The files that together are one matrix, sorted by name; without hidden files and _SUCCESS."""
    suffixes = (".npy", ".parquet")
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in suffixes and path.name[0] not in "._")


def _open_folder(folder: Path, stack: ExitStack) -> FileContents:
    paths = _shards(folder)
    if len({path.suffix.lower() for path in paths}) > 1:
        raise InputError(f"{folder} holds .npy and .parquet files; keep only those of one kind in it.")
    if paths[0].suffix.lower() == ".parquet":
        return _of_tables([open_parquet(path, stack) for path in paths])
    labels = {path.stem: _open_npy(path, stack).arrays[""] for path in paths if path.stem in LABEL_NAMES}
    shards = [path for path in paths if path.stem not in LABEL_NAMES]
    return FileContents({"X": partial(_stacked_files, folder, shards, stack), **labels})


def _stacked_files(folder: Path, paths: list[Path], stack: ExitStack) -> StoredRows:
    stored = []
    for path in paths:
        mapped = _open_npy(path, stack).arrays[""]()
        file = StoredFile.behind(mapped) if isinstance(mapped, np.memmap) else None
        if file is None:
            raise InputError(
                f"{path} must have rows and columns, stored by rows, to be part of {folder} (it has shape "
                f"{mapped.shape}); save it with numpy.save(path, numpy.ascontiguousarray(X))."
            )
        stored.append(file)
    if not stored:
        raise InputError(f"{folder} holds labels but no rows; add the .npy files of X.")
    return StoredRows(stored)


def _open_mat(path: Path, stack: ExitStack) -> FileContents:
    with path.open("rb") as file:
        head = file.read(520)
    if b"\x89HDF\r\n\x1a\n" in (head[:8], head[512:]):  # v7.3 is HDF5 behind 512 bytes of MATLAB's own
        file = _hdf5(path, stack)
        return FileContents({name: partial(_mat73, name, file[name]) for name in file if not name.startswith("#")})
    from scipy import io

    kinds = {name: kind for name, _, kind in io.whosmat(path, appendmat=False)}
    return FileContents({name: partial(_mat5, name, kind, path) for name, kind in kinds.items()})


def _mat5(name: str, kind: str, path: Path) -> np.ndarray:
    from scipy import io

    value = io.loadmat(path, appendmat=False, variable_names=[name])[name]
    # MATLAB packs doubles that are whole as bytes (and scipy's own mat_dtype would drop imaginary parts)
    whole = {"double": np.float64, "single": np.float32}.get(kind) if value.dtype.kind in "iu" else None
    return _mat_array(name, value.astype(whole) if whole else value)


def _mat73(name: str, node: Any) -> np.ndarray:
    from scipy import sparse

    kind = node.attrs.get("MATLAB_class", b"")
    if "MATLAB_sparse" in node.attrs:
        parts = node["data"][()], node["ir"][()], node["jc"][()]
        return _mat_array(name, sparse.csc_array(parts, shape=(node.attrs["MATLAB_sparse"], len(parts[2]) - 1)))
    if not hasattr(node, "dtype") or kind in (b"char", b"cell", b"struct"):
        return np.asarray(None)  # a group, or text stored as numbers: nothing to cluster
    if "MATLAB_empty" in node.attrs:
        return np.empty(node[()].astype(int).ravel())  # an empty matrix is stored as its shape
    return _mat_array(name, node[()].T)  # MATLAB counts columns first, HDF5 rows first


def _mat_array(name: str, value: Any) -> np.ndarray:
    """Dense, rows contiguous. MATLAB has no vectors: 1 x n and n x 1 become one, unless the name says that it is X."""
    array = np.asarray(_dense(value) if hasattr(value, "toarray") else value)
    vector = array.ndim == 2 and 1 in array.shape and name not in FEATURE_NAMES
    return array.ravel() if vector else np.ascontiguousarray(array)


def _open_h5ad(path: Path, stack: ExitStack) -> FileContents:
    file = _hdf5(path, stack)
    if "X" not in file:
        raise InputError(f"{path} has no matrix X (it holds {listed(file)}); write it with AnnData(X=X).write_h5ad().")
    obs = file.get("obs", {})
    labels = {name: partial(_obs_column, obs[name]) for name in obs} if hasattr(obs, "keys") else {}
    columns = partial(_h5ad_columns, file)
    return FileContents(labels, lambda *_: (_h5ad_matrix(file["X"], path), columns()), lambda exclude: columns())


def _h5ad_matrix(node: Any, path: Path) -> np.ndarray:
    if hasattr(node, "dtype"):
        return node[()]
    from scipy import sparse

    kind = node.attrs.get("encoding-type", "unknown")
    build = {"csr_matrix": sparse.csr_array, "csc_matrix": sparse.csc_array}.get(kind)
    if build is None:
        raise InputError(f"X in {path} is stored as '{kind}'; it must be dense, csr_matrix or csc_matrix: convert it.")
    parts = node["data"][()], node["indices"][()], node["indptr"][()]
    return _dense(build(parts, shape=tuple(node.attrs["shape"])))


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


OPENERS: dict[str, Callable[[Path, ExitStack], FileContents]] = {
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
SUFFIXES = tuple(OPENERS)
