"""Formats whose libraries can crash or hang on a damaged file: MATLAB (SciPy, HDF5) and AnnData (HDF5).

`prodsc.sources.child` runs this module in a process of its own. Links inside HDF5 files are not followed, because they
may lead to any other file of the user.
"""

import json
import os
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import IO, Any

import numpy as np

from prodsc.errors import InputError, ProdscError, require
from prodsc.sources.arrays import FEATURE_NAMES, listed
from prodsc.sources.contents import FileContents, dense, n_bytes
from prodsc.sources.limits import check_size

BLOCK_BYTES = 2**24  # of an array that are sent together


# ---- MATLAB ----------------------------------------------------------------------------------------------------------


def open_mat(path: Path, stack: ExitStack) -> FileContents:
    with path.open("rb") as file:
        head = file.read(520)
    if b"\x89HDF\r\n\x1a\n" in (head[:8], head[512:]):  # v7.3 is HDF5 behind 512 bytes of MATLAB's own
        hdf5 = _hdf5(path, stack)
        return FileContents({name: partial(_mat73, name, hdf5, path) for name in hdf5 if not name.startswith("#")})
    from scipy import io

    variables = io.whosmat(path, appendmat=False)
    return FileContents({name: partial(_mat5, name, shape, kind, path) for name, shape, kind in variables})


def _mat5(name: str, shape: tuple[int, ...], kind: str, path: Path) -> np.ndarray:
    from scipy import io

    if kind != "sparse":
        check_size(n_bytes(shape, np.dtype(np.uint8)), path, f"the array '{name}'")
    value = io.loadmat(path, appendmat=False, variable_names=[name])[name]
    if hasattr(value, "toarray"):
        value = dense(value, path)
    # MATLAB packs doubles that are whole as bytes (and scipy's own mat_dtype would drop imaginary parts)
    whole = {"double": np.float64, "single": np.float32}.get(kind) if value.dtype.kind in "iu" else None
    return _mat_array(name, value.astype(whole) if whole else value)


def _mat73(name: str, file: Any, path: Path) -> np.ndarray:
    from scipy import sparse

    node = _node(file, name, path)
    kind = node.attrs.get("MATLAB_class", b"")
    if "MATLAB_sparse" in node.attrs:
        parts = tuple(_values(_node(node, part, path), path) for part in ("data", "ir", "jc"))
        shape = (int(node.attrs["MATLAB_sparse"]), len(parts[2]) - 1)
        return _mat_array(name, dense(sparse.csc_array(parts, shape=shape), path))
    if not hasattr(node, "dtype") or kind in (b"char", b"cell", b"struct"):
        return np.asarray(None)  # a group, or text stored as numbers: nothing to cluster
    if "MATLAB_empty" in node.attrs:  # an empty matrix is stored as its shape
        shape = tuple(_values(node, path).astype(int).ravel().tolist())
        return np.empty(shape) if 0 in shape and min(shape) == 0 else np.asarray(None)
    return _mat_array(name, _values(node, path).T)  # MATLAB counts columns first, HDF5 rows first


def _mat_array(name: str, array: np.ndarray) -> np.ndarray:
    """Rows contiguous. MATLAB has no vectors: 1 x n and n x 1 become one, unless the name says that it is X."""
    array = np.asarray(array)
    vector = array.ndim == 2 and 1 in array.shape and name not in FEATURE_NAMES
    return array.ravel() if vector else np.ascontiguousarray(array)


# ---- AnnData ---------------------------------------------------------------------------------------------------------


def open_h5ad(path: Path, stack: ExitStack) -> FileContents:
    file = _hdf5(path, stack)
    if "X" not in file.keys():  # noqa: SIM118  # `in file` alone would follow links
        raise InputError(f"{path} has no matrix X (it holds {listed(file)}); write it with AnnData(X=X).write_h5ad().")
    obs = _node(file, "obs", path) if "obs" in file.keys() else {}  # noqa: SIM118
    labels = {name: partial(_obs_column, obs, name, path) for name in obs} if hasattr(obs, "keys") else {}
    columns = partial(_h5ad_columns, file, path)
    return FileContents(labels, lambda *_: (_h5ad_matrix(file, path), columns()), lambda exclude: columns())


def _h5ad_matrix(file: Any, path: Path) -> Any:
    node = _node(file, "X", path)
    if hasattr(node, "dtype"):
        check_size(n_bytes(node.shape or (), node.dtype), path, "the matrix X")
        return node
    from scipy import sparse

    kind = node.attrs.get("encoding-type", "unknown")
    build = {"csr_matrix": sparse.csr_array, "csc_matrix": sparse.csc_array}.get(kind)
    if build is None:
        raise InputError(f"X in {path} is stored as '{kind}'; it must be dense, csr_matrix or csc_matrix: convert it.")
    parts = tuple(_values(_node(node, part, path), path) for part in ("data", "indices", "indptr"))
    return dense(build(parts, shape=tuple(int(length) for length in node.attrs["shape"])), path)


def _h5ad_columns(file: Any, path: Path) -> list[str] | None:
    var: Any = _node(file, "var", path) if "var" in file.keys() else None  # noqa: SIM118
    if not hasattr(var, "keys"):
        return None
    index = var.attrs.get("_index", "_index")
    names: Any = _node(var, index, path) if index in var.keys() else None  # noqa: SIM118
    return [str(name) for name in _text(names, path)] if hasattr(names, "asstr") and names.ndim == 1 else None


def _obs_column(obs: Any, name: str, path: Path) -> np.ndarray:
    node = _node(obs, name, path)
    if hasattr(node, "dtype"):
        return _text(node, path) if node.dtype.kind == "O" else _values(node, path)
    if "codes" not in node.keys():  # noqa: SIM118
        return np.asarray(None)
    codes, values = _values(_node(node, "codes", path), path), _obs_column(node, "categories", path)
    if (codes < 0).any():  # rows without a category
        values = np.array([*values, None], dtype=object)  # -1 points to the last
    return values[codes]


# ---- HDF5 ------------------------------------------------------------------------------------------------------------


def _hdf5(path: Path, stack: ExitStack) -> Any:
    return stack.enter_context(require("h5py", extra="hdf5", caller=f"reading {path}").File(path, "r"))


def _node(group: Any, name: str, path: Path) -> Any:
    """A group or data set whose content is in this file; links and data sets made of other files are refused."""
    import h5py

    if not isinstance(group.get(name, getlink=True), h5py.HardLink):
        target = group.get(name, getlink=True)
        where = f"{getattr(target, 'filename', '')} {getattr(target, 'path', '')}".strip()
        raise InputError(f"'{name}' in {path} is a link to {where}, and links are not followed; copy the data into it.")
    node = group[name]
    if hasattr(node, "dtype") and (node.is_virtual or node.external):
        raise InputError(
            f"'{name}' in {path} has its values in other files, which are not read; copy the data into {path.name}."
        )
    return node


def _values(node: Any, path: Path) -> np.ndarray:
    if node.shape is None:
        return np.asarray(None)
    check_size(n_bytes(node.shape, node.dtype), path, f"the array '{node.name}'")
    return np.asarray(node[()])


def _text(node: Any, path: Path) -> np.ndarray:
    if node.shape is None:
        return np.asarray(None)
    check_size(n_bytes(node.shape, np.dtype(np.int64)), path, f"the text '{node.name}'")
    return np.asarray(node.asstr("utf-8", "replace")[()])


# ---- the process -----------------------------------------------------------------------------------------------------

UNTRUSTED = {".mat": open_mat, ".h5ad": open_h5ad}


def serve() -> None:
    """Answer the requests of `prodsc.sources.child`, which come as lines of JSON, until there are no more.

    The first line has the path and the largest number of bytes of memory. Each answer is a line of JSON; if it has a
    `dtype`, the bytes of an array follow.
    """
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what a library prints must not mix with the answers
    first = json.loads(requests.readline())
    _limit_memory(first["bytes"])
    path = Path(first["path"])
    with ExitStack() as stack:
        try:
            contents = UNTRUSTED[path.suffix.lower()](path, stack)
            has_matrix = contents.matrix is not None
            _send(answers, {"names": list(contents.arrays), "matrix": has_matrix})
        except Exception as error:
            _send_error(answers, error)
            return
        for line in requests:
            try:
                _answer(answers, contents, json.loads(line), path)
            except Exception as error:
                _send_error(answers, error)


def _answer(answers: IO[bytes], contents: FileContents, request: dict[str, Any], path: Path) -> None:
    if request["get"] == "columns":
        assert contents.columns is not None
        _send(answers, {"columns": contents.columns(())})
    elif request["get"] == "matrix":
        assert contents.matrix is not None
        X, columns = contents.matrix((), None, 0)
        _send_array(answers, X, columns, path)
    else:
        _send_array(answers, contents.arrays[request["name"]](), None, path)


def _send_array(answers: IO[bytes], array: Any, columns: list[str] | None, path: Path) -> None:
    """Numbers and text of fixed width as bytes, a block at a time; text of any width as JSON."""
    shape, dtype = tuple(array.shape or ()), array.dtype
    if dtype.kind == "O":
        values = np.asarray(array).ravel().tolist()
        plain = all(value is None or isinstance(value, str) for value in values) and values != [None]
        if plain:  # a category of a million characters is one text here, and one for each row when it is sent
            check_size(sum(len(value or "") for value in values), path, "its text")
        _send(answers, {"shape": shape, "texts": values} if plain else {"objects": True})
        return
    if dtype.kind not in "biufcUS":
        raise InputError(f"an array of type {dtype} does not hold numbers; save it as numbers.")
    _send(answers, {"shape": shape, "dtype": dtype.str, "columns": columns})
    whole = array if len(shape) else np.asarray(array).reshape(1)
    step = max(1, BLOCK_BYTES * len(whole) // max(1, n_bytes(shape, dtype)))
    for start in range(0, len(whole), step):
        answers.write(np.ascontiguousarray(whole[start : start + step]).tobytes())
    answers.flush()


def _send(answers: IO[bytes], content: dict[str, Any]) -> None:
    answers.write(json.dumps(content).encode() + b"\n")
    answers.flush()


def _send_error(answers: IO[bytes], error: Exception) -> None:
    ours = isinstance(error, ProdscError)
    _send(answers, {"error": type(error).__name__, "ours": ours, "message": str(error).strip()})


def _limit_memory(n_bytes: int) -> None:
    try:
        import resource
    except ImportError:  # Windows
        return
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = n_bytes if hard == resource.RLIM_INFINITY else min(n_bytes, hard)
    resource.setrlimit(resource.RLIMIT_AS, (most, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))  # no core dumps
