"""A file as arrays by name, none of them read yet: one opener per format. Nothing is ever unpickled.

The library of a format is imported when a file of that format is opened.
"""

import errno
import os
import pickle
import warnings
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from os import PathLike
from pathlib import Path
from typing import IO, Any

import numpy as np

from prodsc.errors import InputError, ProdscError, did_you_mean, reason_of, visible
from prodsc.sources.arrays import LABEL_NAMES
from prodsc.sources.child import open_in_child
from prodsc.sources.contents import NO_PICKLE, ArrayLoaders, FileContents, dense, n_bytes
from prodsc.sources.limits import check_size
from prodsc.sources.stored import StoredFile, StoredRows
from prodsc.sources.tables import (
    ColumnTable,
    column_values,
    coordinates,
    id_notes,
    matrix_columns,
    open_csv,
    open_parquet,
    table_matrix,
)

NPY_MAGIC = b"\x93NUMPY"
LONGEST_NAME = 1000  # characters of the name of an array or column; damaged files have longer ones

# ---- the file: is it there, can it be opened -------------------------------------------------------------------------


def existing(path: str | PathLike[str], folders: bool = False) -> Path:
    """The path of a file that exists and is not empty, or (if allowed) of a folder of rows; else an InputError."""
    path = Path(os.path.expanduser(path))
    if os.path.isdir(path):
        if folders and shard_paths(path):
            return path
        raise InputError(
            f"{path} is a directory, not a file; name one file of these types: {', '.join(OPENERS)}"
            f"{', or a folder of .npy or of .parquet files' if folders else ''}."
        )
    if os.path.exists(path) and not os.path.isfile(path):
        raise InputError(f"{path} is a pipe, socket or device, not a file; write its content to a file first.")
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
            contents = opener(path, stack)
            if (longest := max((len(visible(name)) for name in contents.arrays), default=0)) > LONGEST_NAME:
                raise ValueError(f"it has an array or column with a name of {longest:,} characters")
            yield contents
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
    return FileContents({"": partial(_mapped_npy, path)})


def _mapped_npy(path: Path) -> np.ndarray:
    with path.open("rb") as file:
        if file.read(6) != NPY_MAGIC:
            raise InputError(f"{path} is not a NumPy array ({NO_PICKLE}); write it with numpy.save(path, X).")
        file.seek(0)
        _check_npy(file, path.stat().st_size, f"{path}")
    return np.lib.format.open_memmap(path, mode="r")


def _check_npy(file: IO[bytes], size: int, where: str) -> int:
    """Check that the bytes of a .npy file are those that its header declares; returns their number."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise InputError(f"{where} has records with names, not numbers; save one array of numbers.")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        raise InputError(
            f"{where} holds Python objects ({NO_PICKLE}); save it as numbers, or labels as text with y.astype(str)."
        )
    declared, stored = n_bytes(shape, dtype), size - file.tell()
    if min(shape, default=0) < 0 or declared != stored:
        raise ValueError(f"the header declares {declared:,} bytes for shape {shape} of {dtype}, and {stored:,} follow")
    return declared


def _is_zip(path: Path) -> bool:
    """As zipfile.is_zipfile, which however takes a disk that fails for a file of another format."""
    try:
        with zipfile.ZipFile(path):
            return True
    except (zipfile.BadZipFile, NotImplementedError) as error:
        if isinstance(error.__context__, OSError) and error.__context__.errno != errno.EINVAL:  # EINVAL: a short file
            raise error.__context__ from error
        return zipfile.is_zipfile(path)


def _open_npz(path: Path, stack: ExitStack) -> FileContents:
    if not _is_zip(path):
        raise InputError(
            f"{path} is not a complete .npz archive ({NO_PICKLE}); "
            "copy it again or write it with numpy.savez(path, X=X)."
        )
    archive = stack.enter_context(zipfile.ZipFile(path))
    members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
    arrays = {name: partial(_npz_member, archive, info, name, path) for name, info in members.items()}
    if {"format", "shape", "data"} <= set(members):  # written by scipy.sparse.save_npz
        return FileContents({}, lambda *_: (_sparse_npz(arrays, path), None))
    return FileContents(arrays)


def _npz_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, path: Path) -> np.ndarray:
    where = f"array '{name}' in {path}"
    with archive.open(info) as file:
        if file.read(6) != NPY_MAGIC:
            return np.asarray(None)  # not an array
    with archive.open(info) as file:
        check_size(_check_npy(file, info.file_size, where), path, f"the array '{name}'")
    with archive.open(info) as file:
        return np.lib.format.read_array(file, allow_pickle=False)  # reads to the end, so that the checksum is compared


def _sparse_npz(arrays: ArrayLoaders, path: Path) -> np.ndarray:
    from scipy import sparse

    kind = arrays["format"]().item()
    kind = kind.decode("ascii", "replace") if isinstance(kind, bytes) else str(kind)
    parts = {"coo": ("row", "col"), "dia": ("offsets",)}.get(kind, ("indices", "indptr"))
    build = {name: getattr(sparse, f"{name}_array") for name in ("csr", "csc", "coo", "bsr", "dia")}.get(kind)
    if build is None or not set(parts) <= set(arrays):
        raise InputError(f"{path} holds a sparse matrix of the format '{kind}'; write it with scipy.sparse.save_npz.")
    data, others = arrays["data"](), tuple(arrays[part]() for part in parts)
    shape = tuple(int(length) for length in arrays["shape"]().ravel())
    return dense(build((data, others) if kind == "coo" else (data, *others), shape=shape), path)


def _open_torch(path: Path, stack: ExitStack) -> FileContents:
    import torch

    zipped = zipfile.is_zipfile(path)  # files of torch before 1.6 are not, and cannot be mapped
    if zipped:
        _check_torch_archive(path)
    try:
        with torch.sparse.check_sparse_tensor_invariants(True):  # else wrong indices are not noticed
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
    return FileContents({str(name): partial(_from_tensor, held, name, path) for name in held})


def _check_torch_archive(path: Path) -> None:
    """torch itself compares no checksums."""
    with zipfile.ZipFile(path) as archive:
        packed = [info.filename for info in archive.infolist() if info.compress_type != zipfile.ZIP_STORED]
        if packed:
            raise InputError(
                f"{path} has compressed parts, which torch does not write; write it with torch.save again."
            )
        damaged = archive.testzip()
    if damaged is not None:
        raise ValueError(f"the checksum of its part {damaged} is wrong")


def _open_safetensors(path: Path, stack: ExitStack) -> FileContents:
    from safetensors import safe_open

    file = stack.enter_context(safe_open(path, framework="pt"))  # torch, because NumPy has no bfloat16
    names: list[str] = list(file.keys())
    return FileContents({name: partial(_from_tensor, file, name, path) for name in names})


def _from_tensor(file: Any, name: Any, path: Path) -> np.ndarray:
    import torch

    value = file.get_tensor(name) if hasattr(file, "get_tensor") else file[name]
    if not isinstance(value, torch.Tensor):
        return np.asarray(value)  # a list of labels
    value = value.detach()
    in_file = value.layout is torch.strided and value.nbytes <= value.untyped_storage().nbytes()
    if not in_file:  # sparse, or one value that stands for many
        check_size(value.numel() * value.element_size(), path, f"the tensor '{name}'" if name else "its tensor")
    if value.layout is not torch.strided:
        value = value.to_dense()
    if value.is_floating_point() and value.dtype not in (torch.float16, torch.float32, torch.float64):
        value = value.float()  # bfloat16 and the 8-bit floats, which NumPy lacks
    return value.numpy()


def _open_csv(path: Path, stack: ExitStack) -> FileContents:
    return of_tables([open_csv(path)])


def _open_parquet(path: Path, stack: ExitStack) -> FileContents:
    return of_tables([open_parquet(path, stack)])


def of_tables(tables: list[ColumnTable]) -> FileContents:
    """One table, or several below each other."""
    arrays = {field.name: partial(_stacked_column, tables, field.name) for field in tables[0].fields.values()}
    return FileContents(
        arrays,
        partial(table_matrix, tables),
        partial(matrix_columns, tables[0]),
        lambda exclude: [*tables[0].notes, *id_notes(tables[0], exclude)],
        is_table=True,
        coordinates=coordinates(tables[0]),
    )


def _stacked_column(tables: list[ColumnTable], name: str) -> np.ndarray:
    numbers = [{field.name: i for i, field in table.fields.items()} for table in tables]
    if any([field.name for field in table.fields.values()].count(name) > 1 for table in tables):
        raise InputError(f"{tables[0].path} has more than one column '{name}'; keep or rename one of them.")
    absent = next((table for table, known in zip(tables, numbers, strict=True) if name not in known), None)
    if absent is not None:
        raise InputError(f"{absent.path} has no column '{name}'; all files of a folder must have the same columns.")
    parts = [column_values(table, known[name]) for table, known in zip(tables, numbers, strict=True)]
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def shard_paths(folder: Path) -> list[Path]:
    """The files that together are one matrix, sorted by name; without hidden files and _SUCCESS."""
    suffixes = (".npy", ".parquet")
    return sorted(path for path in folder.iterdir() if path.suffix.lower() in suffixes and path.name[0] not in "._")


def _open_folder(folder: Path, stack: ExitStack) -> FileContents:
    paths = [existing(path) for path in shard_paths(folder)]
    if len({path.suffix.lower() for path in paths}) > 1:
        raise InputError(f"{folder} holds .npy and .parquet files; keep only those of one kind in it.")
    if paths[0].suffix.lower() == ".parquet":
        return of_tables([open_parquet(path, stack) for path in paths])
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


OPENERS: dict[str, Callable[[Path, ExitStack], FileContents]] = {
    ".npy": _open_npy,
    ".npz": _open_npz,
    ".pt": _open_torch,
    ".pth": _open_torch,
    ".safetensors": _open_safetensors,
    ".parquet": _open_parquet,
    ".csv": _open_csv,
    ".tsv": _open_csv,
    ".mat": open_in_child,
    ".h5ad": open_in_child,
}
SUFFIXES = tuple(OPENERS)
