"""The data of many trials: a source that every process can open, read once by the parent."""

import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from prodsc import files
from prodsc.errors import InputError
from prodsc.sources.door import canonical_name, open_source
from prodsc.sources.named import NoSplitError, dataset_info, find_files
from prodsc.sources.source import RowsInput


@dataclass(frozen=True)
class TrialData:
    """A name or path for the trials, and the same rows for the parent process."""

    source: str
    X: np.ndarray
    y: np.ndarray | None

    def scored_rows(self) -> np.ndarray:
        """The rows that trials score: the test rows, or all rows where there is no split."""
        try:
            return open_source(self.source, split="test").X
        except NoSplitError:
            return self.X


def open_trial_data(X: RowsInput, y: Any, folder: Path) -> TrialData:
    """Open the data of a comparison or search.

    Parameters
    ----------
    X : array-like, path or name of a data set
        A path or name without `y` is what the trials open; anything else is copied into the folder.
    y : array-like or None
        Known classes.
    folder : Path
        Where a copy goes.

    Returns
    -------
    TrialData
    """
    if isinstance(X, (str, Path)) and y is None:
        source = canonical_name(str(X))
        data = open_source(source)
        return TrialData(source, data.X, data.y)
    array = open_source(str(X) if isinstance(X, Path) else X).X
    classes = None if y is None else np.asarray(y)
    if classes is not None and len(classes) != len(array):
        raise InputError(f"y has {len(classes)} labels for {len(array)} rows of X. Give one label per row.")
    path = folder / "data.npz"
    with files.atomic(path) as part, part.open("wb") as file:
        np.savez(file, X=array, **({} if classes is None else {"y": classes}))  # type: ignore[arg-type]
    return TrialData(str(path.resolve()), array, classes)


def content_digest(dataset: str) -> str:
    """A digest of the content of a data set.

    Parameters
    ----------
    dataset : str
        A name or a path.

    Returns
    -------
    str
        Of all files that hold its rows; empty if there are none, because the set is computed or missing.
    """
    try:
        info = dataset_info(dataset)
    except InputError:
        return ""
    path = Path(os.path.expanduser(dataset))
    paths: Sequence[Path] = [path] if info is None else find_files(info) or ()
    if info is None and path.is_dir():
        paths = sorted(each for each in path.rglob("*") if each.is_file())
    digest = hashlib.sha256()
    for each in paths:
        with suppress(OSError):
            state = each.stat()
            digest.update(f"{each.name} {_file_digest(str(each), state.st_size, state.st_mtime_ns)}\n".encode())
    return digest.hexdigest() if paths else ""


@lru_cache(maxsize=256)
def _file_digest(path: str, size: int, mtime: int) -> str:
    """Within one process, a file is read again only when its size or time has changed."""
    return files.sha256(Path(path))


@contextmanager
def results_folder(out: str | Path | None, prefix: str) -> Iterator[Path]:
    """The folder `out`, or a temporary one that is removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix=prefix)) if out is None else Path(out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        yield folder
    finally:
        if out is None:
            shutil.rmtree(folder, ignore_errors=True)
