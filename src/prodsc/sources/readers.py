"""Read a feature matrix, and labels where there are any, from a file. Nothing is ever unpickled.

path --> opened by its suffix --> FileContents: arrays by name, not yet read --> X, y

Every failure is an InputError of one sentence: the rule, the value and the way out.
"""

import os
import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prodsc.errors import InputError, did_you_mean
from prodsc.memory import memory_left
from prodsc.progress import ProgressFunction
from prodsc.sources.arrays import FEATURE_NAMES, LABEL_NAMES, listed
from prodsc.sources.choice import NO_CHOICE, ColumnChoice, chosen_columns, completed, joined_texts
from prodsc.sources.contents import ArrayLoaders, FileContents, check_text, utf8_text
from prodsc.sources.formats import OPENERS, existing, opened, siblings
from prodsc.sources.source import Source


def read(
    path: str | PathLike[str],
    *,
    labels: str | PathLike[str] | None = None,
    exclude: Collection[str] = (),
    choice: ColumnChoice = NO_CHOICE,
    progress: ProgressFunction | None = None,
    max_bytes: int = 2**28,
) -> Source:
    """Read X and y from a file.

    Parameters
    ----------
    path : path
        A file, or a folder of .npy or .parquet files that together are the rows.
    labels : str, path or None
        An array or column of the same file by its name, or the path of another file.
    exclude : collection of str
        Arrays or columns that are no part of X.
    choice : ColumnChoice
        Which columns are what, and what becomes of missing values.
    progress : callable or None
        Called with the rows done and the rows in total while a large table is converted.
    max_bytes : int
        The rows of a larger table are converted to a file once and then read from there when needed.

    Returns
    -------
    Source
        Its X may be a read-only memory map, or StoredRows if it consists of several files or is a large table.

    Raises
    ------
    InputError
        If the file does not exist, is damaged, or holds no numeric matrix.
    """
    path = existing(path, folders=True)
    notes: list[str] = []
    with opened(path) as contents:
        most = int(min(max_bytes, memory_left() / 4))
        source = source_of(contents, path, labels, exclude, choice, progress, most, notes)
    for note in notes:  # not inside `opened`, which hides the warnings of the libraries
        warnings.warn(note, UserWarning, stacklevel=2)
    others = {name: partial(_read_kept, path, name, source.kept) for name in source.others}
    texts = source.texts if source.texts is not None or source.kept is not None else _texts_beside(path, len(source.X))
    return replace(source, paths=(path,), others=others, texts=texts)


def _texts_beside(path: Path, n: int) -> list[str] | None:
    """The lines of NAME.texts.txt beside a file, which `prodsc extract` writes."""
    beside = path.with_name(f"{path.stem}.texts.txt")
    with suppress(OSError, UnicodeDecodeError):
        lines = beside.read_text(encoding="utf-8").removesuffix("\n").split("\n")
        return lines if len(lines) == n else None
    return None


def source_of(
    contents: FileContents,
    path: Path,
    labels: str | PathLike[str] | None,
    exclude: Collection[str],
    choice: ColumnChoice,
    progress: ProgressFunction | None,
    max_bytes: int,
    notes: list[str],
) -> Source:
    """X, y and what else was chosen of the contents of a file or of a table in memory.

    Parameters
    ----------
    contents : FileContents
    path : Path
        The file, or what messages call the table.
    labels, exclude, choice, progress, max_bytes
        As for `read`.
    notes : list of str
        Sentences that the user should read are added to it.

    Returns
    -------
    Source
    """
    usual = _label_names(contents)
    names = usual if labels is None else [labels] if isinstance(labels, str) else []
    columns_of_table = [name for name in contents.arrays if name] if contents.is_table else []
    vectors = [name for name in contents.arrays if name]
    chosen = choice.within(vectors, str(path)) if contents.is_table else _arrays_chosen(choice, vectors, path)
    no_features = {*usual, *names, *exclude, *(chosen.no_features(columns_of_table) if contents.is_table else ())}
    no_features -= {name for name in chosen.columns if name not in names}  # a column called 'target' may be a feature
    X, columns = _features(contents, path, no_features, progress, max_bytes)
    if not contents.is_table:
        X, columns = chosen_columns(X, columns, choice, str(path))
    y = _vector(contents, [name for name in names if name not in chosen.columns])
    if contents.notes is not None:
        notes += contents.notes(no_features)
    if labels is None and contents.coordinates:
        notes += [_coordinate_note(name, path) for name in contents.coordinates if name not in no_features]
    class_names = _class_names(contents) if path.suffix.lower() == ".npz" and y is not None else None
    where = f"{path}" if labels is None or y is not None else f"{labels}"
    if labels is not None and y is None:
        y = _label_file(labels, path, vectors)
    codes, values = (None, None) if y is None else label_codes(y, X, where)
    ids: Callable[[], list[str] | None] = partial(read_ids, path, len(X))
    if chosen.id is not None:
        names_of_rows = _row_names(contents.arrays[chosen.id](), len(X), chosen.id, path, notes)
        ids = lambda: names_of_rows  # noqa: E731
    texts = joined_texts([contents.arrays[name]() for name in chosen.text]) if chosen.text else None
    used = {*(columns or ()), *([chosen.id] if chosen.id else []), *chosen.text}
    others = {name: contents.arrays[name] for name in columns_of_table if name not in used}
    opened_source = Source(
        path.stem, X, codes, columns, class_names or values, read_ids=ids, texts=texts, others=others
    )
    return without_missing(opened_source, choice, str(path))


def _arrays_chosen(choice: ColumnChoice, names: list[str], path: Path) -> ColumnChoice:
    """Of a file of arrays, `id` and `text` are arrays; `columns` and `drop` are columns of X."""
    return replace(choice, columns=(), drop=()).within(names, str(path))


def without_missing(source: Source, choice: ColumnChoice, where: str) -> Source:
    """A source whose missing values are filled, or whose rows with missing values are dropped, as the choice says.

    Parameters
    ----------
    source : Source
    choice : ColumnChoice
        Its `impute` is used.
    where : str
        How messages call the input.

    Returns
    -------
    Source
    """
    done = completed(source.X, source.columns, choice.impute, where)
    kept = done.kept
    if kept is None:
        return replace(source, X=done.X, fill_values=done.fill_values)
    load_ids, texts = source.read_ids, source.texts
    return replace(
        source,
        X=done.X,
        kept=kept,
        y=None if source.y is None else source.y[kept],
        read_ids=lambda: None if (names := load_ids()) is None else [names[i] for i in kept],
        texts=None if texts is None else [texts[i] for i in kept],
        others={name: partial(lambda load: load()[kept], load) for name, load in source.others.items()},
    )


def _row_names(values: np.ndarray, n: int, name: str, path: Path, notes: list[str]) -> list[str]:
    """The names of rows as text. A name that two rows share would not say which row is meant."""
    if values.shape != (n,):
        raise InputError(f"--id: '{name}' of {path} must have one value for each of {n} rows; it has {values.shape}.")
    names = [_as_text(value) for value in values.tolist()]
    if len(set(names)) < n:
        twice = next(name for name, count in Counter(names).items() if count > 1)
        notes.append(f"the column '{name}' of {path} has '{twice}' in more than one row.")
    return names


def _as_text(value: Any) -> str:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    whole = isinstance(value, float) and value.is_integer()  # a column of whole numbers with gaps is read as floats
    return "" if value is None else str(int(value) if whole else value)


def _read_kept(path: Path, name: str, kept: np.ndarray | None) -> np.ndarray:
    values = read_array(path, name)
    assert values is not None
    return values if kept is None else values[kept]


def read_labels(path: str | PathLike[str] | None, labels: str) -> np.ndarray:
    """Read labels as they are written, without converting them to codes.

    Parameters
    ----------
    path : path or None
        The file of the rows; None if they have none.
    labels : str
        An array or column of that file by its name, or the path of another file.

    Returns
    -------
    ndarray of shape (n,)
        Numbers or text; some rows may have no label.
    """
    names: list[str] = []
    if path is not None:
        with opened(existing(path, folders=True)) as contents:
            y = _vector(contents, [labels])
            names = [name for name in contents.arrays if name]
        if y is not None:
            return y
    return _label_file(labels, Path(path or "the data"), names)


def read_pairs(path: str | PathLike[str]) -> np.ndarray:
    """Read pairs of rows.

    Parameters
    ----------
    path : path
        A .npy file, or text with two row numbers in each line. The first line of a text may name the columns.

    Returns
    -------
    ndarray of shape (n_pairs, 2)
    """
    path = existing(path)
    if path.suffix.lower() == ".npy":
        with opened(path) as contents:
            return np.array(contents.arrays[""]())
    lines = [line for line in utf8_text(path, "write two row numbers in each line: 3,17").splitlines() if line.strip()]
    pairs = []
    for number, line in enumerate(lines):
        words = line.replace(",", " ").replace(";", " ").split()
        if len(words) == 2 and all(word.isdecimal() and len(word) < 19 for word in words):
            pairs.append((int(words[0]), int(words[1])))
        elif number:  # the first line may name the columns
            raise InputError(f"{path} has the line '{line:.60}'; each must have two row numbers, counted from 0: 3,17.")
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)


def read_array(path: str | PathLike[str], name: str) -> np.ndarray | None:
    """Read one array of a file by its name, such as 'split'; None if the file has no array of that name."""
    with opened(existing(path, folders=True)) as contents:
        return contents.arrays[name]() if name in contents.arrays else None


def read_column_names(path: str | PathLike[str]) -> list[str] | None:
    """Read the names of the columns of X, without reading X; None if the columns have no names."""
    with opened(existing(path, folders=True)) as contents:
        return None if contents.columns is None else contents.columns(_label_names(contents))


def read_vectors(path: str | PathLike[str], n: int) -> dict[str, np.ndarray]:
    """Read every array of a file that has one value for each of n rows, such as labels, ids or a split, by name."""
    vectors = {}
    with opened(existing(path)) as contents:
        for name in filter(None, contents.arrays):
            array = contents.arrays[name]()
            array = array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array
            if array.shape == (n,) and array.dtype.kind in "biufUSO":
                vectors[name] = np.char.decode(array, "utf-8", "replace") if array.dtype.kind == "S" else array
    return vectors


def read_ids(path: str | PathLike[str], n: int) -> list[str] | None:
    """Read the names of the n rows of a file, as `prodsc extract` writes them.

    Parameters
    ----------
    path : path
        The file. Names are its array or column 'ids' or 'id', or the lines of NAME.ids.txt beside it.
    n : int
        Number of rows. Names are ignored if there are more or fewer.

    Returns
    -------
    list of str or None
        None if the rows have no names.
    """
    path = Path(os.path.expanduser(path))
    if not os.path.isfile(path):  # a computed data set has no file
        return None
    beside = path.with_name(f"{path.stem}.ids.txt")
    if os.path.isfile(beside):
        names = utf8_text(beside, "write one name per line").removesuffix("\n").split("\n")
        return names if len(names) == n else None
    for name in ("ids", "id", "_index"):  # the last one is that of AnnData
        ids = read_array(path, name) if path.suffix.lower() in OPENERS else None
        if ids is not None and ids.shape == (n,) and ids.dtype.kind in "iuUSO":
            return [
                value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in ids.tolist()
            ]
    return None


# ---- X: which array it is, and whether it can be one -----------------------------------------------------------------


def _features(
    contents: FileContents, path: Path, exclude: Collection[str], progress: ProgressFunction | None, max_bytes: int
) -> tuple[Any, list[str] | None]:
    if contents.matrix is not None:
        X, columns = contents.matrix(exclude, progress, max_bytes)
        return _checked(X, f"{path}"), columns
    name, X = _feature_array(contents.arrays, path, exclude)
    return _checked(X, f"array '{name}' in {path}" if name else f"{path}"), None


def _feature_array(arrays: ArrayLoaders, path: Path, exclude: Collection[str]) -> tuple[str, np.ndarray]:
    usual = [name for name in FEATURE_NAMES if name in arrays]
    if usual or len(arrays) == 1:
        name = usual[0] if usual else next(iter(arrays))
        return name, arrays[name]()
    candidates, described = {}, []
    for name, load in arrays.items():
        array = load()
        described.append(f"{name} {array.shape} {array.dtype}")
        if array.ndim >= 2 and array.shape[1:] != (1,) and array.dtype.kind in "biufc" and name not in exclude:
            candidates[name] = array
    if len(candidates) == 1:
        return next(iter(candidates.items()))
    if candidates:
        raise InputError(f"{path} has several arrays that could be X: {listed(candidates)}; name the right one 'X'.")
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
        return X.astype(np.float64)  # torch has no long doubles
    return X if X.dtype.isnative else X.astype(X.dtype.newbyteorder("="))  # torch has only the native byte order


# ---- y: where it is, and its codes -----------------------------------------------------------------------------------


def _label_names(contents: FileContents) -> list[str]:
    """Names that labels usually have, without those that are coordinates in this file."""
    return [name for name in LABEL_NAMES if name not in contents.coordinates]


def _coordinate_note(name: str, path: Path) -> str:
    return (
        f"the column '{name}' of {path} is used as a feature, because it stands beside a column of numbers "
        f"'{name.translate({ord('y'): 'x', ord('Y'): 'X'})}'; if it is the labels, say so: labels='{name}'."
    )


def _vector(contents: FileContents, names: Iterable[str]) -> np.ndarray | None:
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
        hint = did_you_mean(labels, [name for name in [*names, *siblings(file)] if name != labels])
        raise InputError(
            f"labels='{labels}' is neither a column or 1-D array of {path} ({held}) nor a file"
            f"{hint or '; give one of those names or the path of a file.'}"
        )
    file = existing(file)
    if file.suffix.lower() == ".txt":
        return _text_labels(file)
    with opened(file) as contents:
        y = _vector(contents, _label_names(contents))
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
    lines = [line.strip() for line in utf8_text(file, "write one label per line").splitlines() if line.strip()]
    with suppress(ValueError):
        return np.asarray(lines, dtype=np.float64)  # as numbers, 10 comes after 9
    check_text(len(lines), max(map(len, lines), default=0), file, "its labels")
    return np.asarray(lines)


def _class_names(contents: FileContents) -> list[str] | None:
    """Names of the codes in y: the array 'classes' that `prodsc extract` writes."""
    with suppress(InputError):  # an array of Python objects is not ours
        names = contents.arrays["classes"]() if "classes" in contents.arrays else np.empty(0)
        return [str(name) for name in names] if names.ndim == 1 and len(names) else None
    return None


def label_codes(y: np.ndarray, X: Any, where: str) -> tuple[np.ndarray, list[str] | None]:
    """Convert labels to int64 codes 0, 1, ... in the order of their values.

    Parameters
    ----------
    y : ndarray of shape (n,)
        Whole numbers, booleans or text.
    X : array of shape (n, ...)
        The rows that they belong to.
    where : str
        Where the labels come from, for error messages.

    Returns
    -------
    codes : ndarray of shape (n,)
    class_names : list of str or None
        The values if they are text.

    Raises
    ------
    InputError
        If there is not one valid label per row.
    """
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
    values, codes = np.unique(y, return_inverse=True)
    text = values.dtype.kind in "USO"
    names = [value.decode(errors="replace") if isinstance(value, bytes) else str(value) for value in values.tolist()]
    return codes.astype(np.int64), names if text else None
