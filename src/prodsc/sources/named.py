"""Data sets by name: found in a data directory, compared with the known checksum, read lazily where possible.

name --> DatasetInfo (prodsc.sources.catalogue) --> its files in the first directory that has them --> Source
"""

import json
import os
import warnings
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from prodsc import files
from prodsc.errors import InputError, OutputError, ParameterError, did_you_mean
from prodsc.progress import ProgressFunction
from prodsc.sources.archives import TEST, TRAIN, read_uci_har
from prodsc.sources.catalogue import DATASETS, DatasetInfo
from prodsc.sources.formats import SUFFIXES
from prodsc.sources.readers import read, read_array
from prodsc.sources.source import Source, Split
from prodsc.sources.stored import user_cache

ChecksumState = Literal["matches", "differs", "not recorded"]
ENVIRONMENT = "PRODSC_DATA"  # one directory, or several as in PATH
PathOrNone = str | os.PathLike[str] | None


def dataset_info(name: str | os.PathLike[str]) -> DatasetInfo | None:
    """Look up a data set in the catalogue.

    Parameters
    ----------
    name : str or path
        The name of a data set, or a path.

    Returns
    -------
    DatasetInfo or None
        None for a path.

    Raises
    ------
    InputError
        If it is a single word that is neither a name nor an existing file. The message suggests a similar name.
    """
    if isinstance(name, str) and name in DATASETS:
        return DATASETS[name]
    path = Path(os.path.expanduser(name))
    if os.path.exists(path) or len(path.parts) > 1 or path.suffix.lower() in SUFFIXES:
        return None
    hint = did_you_mean(str(name).lower().replace("_", "-"), list(DATASETS))
    raise InputError(
        f"there is no data set '{name}'{hint or '.'} `prodsc data list` names them all; a file is given by its path."
    )


def load_named(
    info: DatasetInfo,
    split: Split = "all",
    *,
    data_dir: PathOrNone = None,
    labels: str | os.PathLike[str] | None = None,
    exclude: Collection[str] = (),
    progress: ProgressFunction | None = None,
) -> Source:
    """Read a named data set.

    Parameters
    ----------
    info : DatasetInfo
        Which one.
    split : {"all", "train", "test"}
        Which rows.
    data_dir : path or None
        Where its files are looked for first.
    labels, exclude, progress
        As in `prodsc.sources.readers.read`. Only a data set of one file that is read as it is can have other labels.

    Returns
    -------
    Source

    Raises
    ------
    InputError
        If its files are missing, or it has no such split.
    """
    check_split(split)
    paths = find_files(info, data_dir)
    if paths is None:
        raise missing_error(info, data_dir)
    as_it_is = len(paths) == 1 and info.relabel is None and paths[0].suffix != ".txt"
    if labels is not None and not as_it_is:
        raise InputError(f"--labels does not go with the named set {info.name}, which has its own.")
    if as_it_is:
        source = read(paths[0], labels=labels, exclude=exclude, progress=progress)
        source = _select(replace(source, info=info), split)
    else:
        X, y = _read_parts(info, paths, split)
        source = Source(info.name, X, y, info=info, split=split, paths=paths)
    notes = (*info.notes, *_differences(info, source))
    return replace(source, name=info.name, notes=notes)


def check_split(split: str) -> None:
    """Raise a ParameterError if there is no such split."""
    if split not in get_args(Split):
        raise ParameterError(
            f"split={split!r} must be one of {', '.join(get_args(Split))}{did_you_mean(str(split), get_args(Split))}"
        )


# ---- where the files are ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SearchFolder:
    """A directory to search, and what put it on the search path."""

    path: Path
    origin: str


def search_path(data_dir: PathOrNone = None) -> list[SearchFolder]:
    """Directories in the order in which they are searched.

    Parameters
    ----------
    data_dir : path or None
        Searched before all others.

    Returns
    -------
    list of SearchFolder
        The first that has a file is used.
    """
    option = [SearchFolder(Path(data_dir).expanduser(), "--data-dir")] if data_dir else []
    variable = filter(None, os.environ.get(ENVIRONMENT, "").split(os.pathsep))
    return [
        *option,
        *(SearchFolder(Path(path).expanduser(), ENVIRONMENT) for path in variable),
        SearchFolder(Path.cwd() / "data", "working directory"),
        SearchFolder(user_cache() / "data", "your cache"),
    ]


def download_folder(data_dir: PathOrNone = None) -> Path:
    """Where new files go: --data-dir, else the first directory of PRODSC_DATA, else the cache; never ./data."""
    return next(folder.path for folder in search_path(data_dir) if folder.origin != "working directory")


def find_files(info: DatasetInfo, data_dir: PathOrNone = None) -> tuple[Path, ...] | None:
    """Find the files of a data set.

    Parameters
    ----------
    info : DatasetInfo
        Which one.
    data_dir : path or None
        Searched before all other directories.

    Returns
    -------
    tuple of Path or None
        The file or files in the first directory that has them all; None if no directory has. Empty for a data set that
        is computed.
    """
    if info.make is not None:
        return ()
    for folder in search_path(data_dir):
        for names in info.files:
            paths = tuple(folder.path / name for name in names)
            if all(os.path.isfile(path) for path in paths):
                return paths
    return None


def missing_error(info: DatasetInfo, data_dir: PathOrNone = None) -> InputError:
    """One sentence: which file was searched for where, how to get it, where to put it."""
    wanted = " or ".join(" and ".join(names) for names in info.files)
    folders = ", ".join(str(folder.path) for folder in search_path(data_dir))
    way_out = f"get it with `prodsc data fetch {info.name}`" if info.remotes else info.obtain
    return InputError(
        f"{info.name} is not here: {wanted} (X {info.size}; {info.holds}) is in none of {folders}; "
        f"{way_out}; it belongs in {download_folder(data_dir)}."
    )


# ---- is it the known file? -------------------------------------------------------------------------------------------


def compare_checksum(info: DatasetInfo, path: Path, *, recompute: bool = False) -> ChecksumState:
    """Compare a file with the recorded sha256: that of the catalogue, or of NAME.sha256 beside it (from sha256sum).

    Parameters
    ----------
    info : DatasetInfo
        The data set that the file belongs to.
    path : Path
        The file.
    recompute : bool
        Read the whole file, even if the digest is remembered for its size and time of change.

    Returns
    -------
    {"matches", "differs", "not recorded"}
    """
    ours = info.sha256 if info.files and path.name == info.files[0][0] else None
    recorded = {ours, _digest_beside(path)} - {None}
    if not recorded:
        return "not recorded"
    digest = files.sha256(path) if recompute else _remembered_sha256(path)
    return "matches" if digest in recorded else "differs"


def checksum_file(path: Path) -> Path:
    """Where the checksum of a file is kept: NAME.sha256 beside it."""
    return path.with_name(f"{path.name}.sha256")


def _digest_beside(path: Path) -> str | None:
    with suppress(OSError, UnicodeDecodeError):
        return checksum_file(path).read_text(encoding="utf-8")[:64]
    return None


def _remembered_sha256(path: Path) -> str:
    memory, key = user_cache() / "checksums.json", str(path.resolve())
    stamp = [path.stat().st_size, path.stat().st_mtime_ns]
    known: dict[str, list] = {}
    with suppress(OSError, json.JSONDecodeError, UnicodeDecodeError):
        content = files.read_json(memory)
        known = content if isinstance(content, dict) else {}
    if known.get(key, [])[:2] == stamp:
        return known[key][2]
    digest = files.sha256(path)
    with suppress(OSError, OutputError):  # a cache that cannot be written only costs time
        memory.parent.mkdir(parents=True, exist_ok=True)
        files.write_json(memory, known | {key: [*stamp, digest]})
    return digest


def _differences(info: DatasetInfo, source: Source) -> list[str]:
    """How these rows differ from the data set that the catalogue describes."""
    notes = []
    for path in source.paths:
        if compare_checksum(info, path) == "differs":
            notes.append(f"{path} is not the file whose checksum is recorded: scores may differ from ours")
            warnings.warn(f"{notes[-1]} (prodsc data show {info.name} --check).", stacklevel=4)
    first_axis = 0 if source.split == "all" else 1
    if source.X.shape[first_axis:] != info.shape[first_axis:]:
        shape = " x ".join(f"{n:,}" for n in source.X.shape)
        notes.append(f"these rows are {shape}, the known set is {info.size}: this is not the published data")
    n_classes = None if source.y is None else len(np.unique(source.y))
    if n_classes != info.classes:
        notes.append(f"these rows have {n_classes or 'no'} classes, the known set has {info.classes}")
    return notes


# ---- reading ---------------------------------------------------------------------------------------------------------


def file_part(source: Source, split: Split) -> Source:
    """The rows of one split of a file; `source` holds all of them."""
    return source if split == "all" else _select(source, split)


def _read_parts(info: DatasetInfo, paths: tuple[Path, ...], split: Split) -> tuple[Any, np.ndarray | None]:
    """X and y of a data set that is computed, consists of two files, is text, or has its labels changed."""
    if info.make is not None:
        if split != "all":
            raise _no_split_error(info.name)
        return info.make()
    if len(paths) == 2:
        return _stacked({"all": paths, "train": paths[:1], "test": paths[1:]}[split])
    X, y = _read_one(paths[0])
    y = info.relabel(y) if info.relabel and y is not None else y
    part = _select(Source(info.name, X, y, info=info, paths=paths), split)
    return part.X, part.y


def _read_one(path: Path) -> tuple[Any, np.ndarray | None]:
    if path.suffix == ".txt":
        return read_uci_har(path)
    source = read(path)
    return source.X, source.y


def _stacked(paths: tuple[Path, ...]) -> tuple[Any, np.ndarray | None]:
    """One file as it is; a train and a test file below each other, in memory."""
    parts = [_read_one(path) for path in paths]
    if len(parts) == 1:
        return parts[0]
    (X, y), (X_test, y_test) = parts
    if X.shape[1:] != X_test.shape[1:]:
        raise InputError(
            f"{paths[0]} has rows of {X.shape[1:]} and {paths[1]} of {X_test.shape[1:]}; they are not of one set."
        )
    if y is None or y_test is None:
        return np.concatenate([X, X_test]), None
    if len(np.unique(y)) != len(np.unique(y_test)):  # each file has its own codes, which must mean the same
        raise InputError(
            f"{paths[0]} has {len(np.unique(y))} classes and {paths[1]} has {len(np.unique(y_test))}; "
            "their labels cannot be matched: load split='train' or 'test' alone."
        )
    return np.concatenate([X, X_test]), np.concatenate([y, y_test])


def _select(source: Source, split: Split) -> Source:
    """The rows of one split: as the array 'split' of the file marks them, else by the rule of the catalogue."""
    if split == "all" or (source.info is not None and source.info.split == "whole"):
        return replace(source, split=split)
    rows = _split_rows(source, split)
    ids = source.read_ids
    return replace(
        source,
        X=source.X[rows],
        y=None if source.y is None else source.y[rows],
        split=split,
        read_ids=lambda: None if (names := ids()) is None else np.array(names, dtype=object)[rows].tolist(),
    )


def _split_rows(source: Source, split: Split) -> slice | np.ndarray:
    info, path, n = source.info, source.paths[0], len(source.X)
    marks = read_array(path, "split")
    if marks is not None:
        rows = np.flatnonzero(marks == {"train": TRAIN, "test": TEST}[split])
        if not len(rows):
            raise InputError(f"the array 'split' of {path} marks no row as {split} ({TRAIN} train, {TEST} test).")
        contiguous = rows[-1] - rows[0] + 1 == len(rows)  # a slice of a memory map stays on disk
        return slice(int(rows[0]), int(rows[-1]) + 1) if contiguous else rows
    if info is None or not isinstance(info.split, int):
        raise _no_split_error(source.name if info is None else info.name)
    if n != info.shape[0]:
        raise InputError(
            f"{info.name} is split after row {info.split:,} of {info.shape[0]:,}, and {path} has {n:,} rows; "
            "use split='all', or a file with all rows or a 'split' array (0 train, 1 test)."
        )
    return slice(0, info.split) if split == "train" else slice(info.split, n)


class NoSplitError(InputError):
    """The data set has no train and test part."""


def _no_split_error(name: str) -> NoSplitError:
    return NoSplitError(f"{name} has no train and test part here; use split='all' (see `prodsc data show {name}`).")
