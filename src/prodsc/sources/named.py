"""Data sets by name: found in a data directory, checked once, read lazily where the format allows.

name --> About (prodsc.sources.catalogue) --> its files in the first directory that has them --> X, y
"""

import json
import os
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from prodsc import files
from prodsc.errors import InputError, OutputError, ParameterError, did_you_mean
from prodsc.sources.archives import TEST, TRAIN, read_uci_har
from prodsc.sources.catalogue import DATASETS, About
from prodsc.sources.formats import OPENERS
from prodsc.sources.readers import read, read_array
from prodsc.sources.stored import user_cache

Split = Literal["all", "train", "test"]
Check = Literal["matches", "differs", "not recorded"]
ENVIRONMENT = "PRODSC_DATA"  # one directory, or several as in PATH
PathOrNone = str | os.PathLike[str] | None


@dataclass(frozen=True)
class Dataset:
    """A data set that was read. X may be a memory map; y is for scoring only."""

    name: str
    X: np.ndarray
    y: np.ndarray | None  # int64 codes from 0
    about: About
    split: Split = "all"
    paths: tuple[Path, ...] = ()  # none when it was computed
    notes: tuple[str, ...] = ()  # what a reader of its numbers must know, including how it differs from what is known


def load_dataset(name: str | os.PathLike[str], split: Split = "all", *, data_dir: PathOrNone = None) -> Dataset:
    """The data set of that name, or the file at that path; all rows, or the train or test part."""
    if split not in get_args(Split):
        raise ParameterError(
            f"split={split!r} must be one of {', '.join(get_args(Split))}{did_you_mean(str(split), get_args(Split))}"
        )
    about = about_set(name)
    if about is None:
        return _load_path(Path(name), split)
    paths = find(about, data_dir)
    if paths is None:
        raise missing(about, data_dir)
    X, y = _rows(about, paths, split)
    notes = (*about.notes, *_differences(about, paths, X, y, split))
    return Dataset(about.name, X, y, about, split, paths, notes)


def locate(name: str | os.PathLike[str], *, data_dir: PathOrNone = None) -> Path | Dataset:
    """What a command that takes a file can use: the path of one readable file, else the rows themselves.

    A path stays as it is. A name gives the path of its file, or a Dataset when it is computed, has two files, is text
    or has its labels changed.
    """
    about = about_set(name)
    if about is None:
        return Path(name)
    paths = find(about, data_dir)
    if paths is not None and len(paths) == 1 and about.relabel is None:
        return paths[0]
    return load_dataset(about.name, data_dir=data_dir)


def about_set(name: str | os.PathLike[str]) -> About | None:
    """What is known of a named set; None for a path. A word that is neither is an error with a suggestion."""
    if isinstance(name, str) and name in DATASETS:
        return DATASETS[name]
    path = Path(name)
    if os.path.exists(path) or len(path.parts) > 1 or path.suffix.lower() in OPENERS:
        return None
    hint = did_you_mean(str(name).lower().replace("_", "-"), list(DATASETS))
    raise InputError(
        f"there is no data set '{name}'{hint or '.'} `prodsc data list` names them all; a file is given by its path."
    )


# ---- where the files are ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Place:
    """A directory to look in, and why."""

    path: Path
    why: str


def search_path(data_dir: PathOrNone = None) -> list[Place]:
    """The directories in the order they are searched; the first that has the file wins."""
    asked = [Place(Path(data_dir).expanduser(), "--data-dir")] if data_dir else []
    named = [Place(Path(p).expanduser(), ENVIRONMENT) for p in os.environ.get(ENVIRONMENT, "").split(os.pathsep) if p]
    here = Path.cwd()
    beside = [Place(here / "data", "beside you"), Place(here.parent / "shared" / "data", "beside your project")]
    return [*asked, *named, *beside, Place(user_cache() / "data", "your cache")]


def home(data_dir: PathOrNone = None) -> Path:
    """Where new files go: --data-dir, else the first of PRODSC_DATA, else the cache; never a folder beside you."""
    return next(place.path for place in search_path(data_dir) if not place.why.startswith("beside"))


def find(about: About, data_dir: PathOrNone = None) -> tuple[Path, ...] | None:
    """The file or files of a set in the first directory that has them; None when no directory does.

    A computed set is always here and has no files.
    """
    if about.make is not None:
        return ()
    for place in search_path(data_dir):
        for names in about.files:
            paths = tuple(place.path / name for name in names)
            if all(os.path.isfile(path) for path in paths):
                return paths
    return None


def missing(about: About, data_dir: PathOrNone = None) -> InputError:
    """One sentence: what was looked for where, how to get it, where to put it."""
    wanted = " or ".join(" and ".join(names) for names in about.files)
    places = ", ".join(str(place.path) for place in search_path(data_dir))
    way = f"get it with `prodsc data fetch {about.name}`" if about.remotes else about.obtain
    return InputError(
        f"{about.name} is not here: {wanted} (X {about.size}; {about.holds}) is in none of {places}; "
        f"{way}; it belongs in {home(data_dir)}."
    )


# ---- is it the file we know? -----------------------------------------------------------------------------------------


def check(about: About, path: Path, *, afresh: bool = False) -> Check:
    """Compare a file with the recorded sha256: ours, or the one beside it in NAME.sha256 (as sha256sum writes it).

    The digest is remembered by size and time of change, so only the first look reads the whole file.
    """
    ours = about.sha256 if about.files and path.name == about.files[0][0] else None
    recorded = {ours, _beside(path)} - {None}
    if not recorded:
        return "not recorded"
    digest = files.sha256(path) if afresh else _remembered_sha256(path)
    return "matches" if digest in recorded else "differs"


def checksum_file(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _beside(path: Path) -> str | None:
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


def _differences(about: About, paths: tuple[Path, ...], X: np.ndarray, y: np.ndarray | None, split: Split) -> list[str]:
    """What sets these rows apart from the set as it is known, in words."""
    found = []
    for path in paths:
        if check(about, path) == "differs":
            found.append(f"{path} is not the file whose checksum is recorded: numbers may differ from ours")
            warnings.warn(f"{found[-1]} (prodsc data show {about.name} --check).", stacklevel=3)
    skip = 0 if split == "all" else 1
    if X.shape[skip:] != about.shape[skip:]:
        shape = " x ".join(f"{n:,}" for n in X.shape)
        found.append(f"these rows are {shape}, the known set is {about.size}: this is not the published data")
    classes = None if y is None else len(np.unique(y))
    if classes != about.classes:
        found.append(f"these rows have {classes or 'no'} classes, the known set has {about.classes}")
    return found


# ---- reading ---------------------------------------------------------------------------------------------------------

Rows = tuple[np.ndarray, np.ndarray | None]


def _load_path(path: Path, split: Split) -> Dataset:
    data = read(path)
    classes = None if data.y is None else len(np.unique(data.y))
    about = About(path.stem, path.name, data.X.shape, classes, str(data.path), "yours to know", files=((path.name,),))
    X, y = _part(about, data.path, data.X, data.y, split)
    return Dataset(about.name, X, y, about, split, (data.path,))


def _rows(about: About, paths: tuple[Path, ...], split: Split) -> Rows:
    if about.make is not None:
        if split != "all":
            raise _without_split(about.name)
        return about.make()
    if len(paths) == 2:
        return _stacked({"all": paths, "train": paths[:1], "test": paths[1:]}[split])
    X, y = _read(paths[0])
    return _part(about, paths[0], X, about.relabel(y) if about.relabel and y is not None else y, split)


def _read(path: Path) -> Rows:
    if path.suffix == ".txt":
        return read_uci_har(path)
    data = read(path)
    return data.X, data.y


def _stacked(paths: tuple[Path, ...]) -> Rows:
    """One file as it is; a train and a test file below each other, in memory."""
    parts = [_read(path) for path in paths]
    if len(parts) == 1:
        return parts[0]
    (X, y), (X_test, y_test) = parts
    if X.shape[1:] != X_test.shape[1:]:
        raise InputError(
            f"{paths[0]} has rows of {X.shape[1:]} and {paths[1]} of {X_test.shape[1:]}; they are not of one set."
        )
    if y is None or y_test is None:
        return np.concatenate([X, X_test]), None
    if len(np.unique(y)) != len(np.unique(y_test)):  # each file's labels were numbered by themselves
        raise InputError(
            f"{paths[0]} has {len(np.unique(y))} classes and {paths[1]} has {len(np.unique(y_test))}; "
            "their labels cannot be matched: load split='train' or 'test' alone."
        )
    return np.concatenate([X, X_test]), np.concatenate([y, y_test])


def _part(about: About, path: Path, X: np.ndarray, y: np.ndarray | None, split: Split) -> Rows:
    """All rows, or those of one part: as the file's own 'split' array says, else by the set's rule."""
    if split == "all" or about.split == "whole":
        return X, y
    rows = _part_rows(about, path, len(X), split)
    return X[rows], None if y is None else y[rows]


def _part_rows(about: About, path: Path, n: int, split: Split) -> slice | np.ndarray:
    marks = read_array(path, "split")
    if marks is not None:
        rows = np.flatnonzero(marks == {"train": TRAIN, "test": TEST}[split])
        if not len(rows):
            raise InputError(f"the array 'split' of {path} marks no row as {split} ({TRAIN} train, {TEST} test).")
        in_one_piece = rows[-1] - rows[0] + 1 == len(rows)  # then a view of a memory map stays on disk
        return slice(int(rows[0]), int(rows[-1]) + 1) if in_one_piece else rows
    if not isinstance(about.split, int):
        raise _without_split(about.name)
    if n != about.shape[0]:
        raise InputError(
            f"{about.name} is split after row {about.split:,} of {about.shape[0]:,}, and {path} has {n:,} rows; "
            "use split='all', or a file with all rows or a 'split' array (0 train, 1 test)."
        )
    return slice(0, about.split) if split == "train" else slice(about.split, n)


class NoSplitError(InputError):
    """The set has no train and test part."""


def _without_split(name: str) -> NoSplitError:
    return NoSplitError(f"{name} has no train and test part here; use split='all' (see `prodsc data show {name}`).")
