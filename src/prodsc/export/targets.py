"""Where an export goes: refused when something is there, before anything is computed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from prodsc.errors import InputError, OutputError


def check_target(path: str | Path, suffixes: Sequence[str], force: bool, sources: Sequence[object] = ()) -> Path:
    """A file that may be written: of a known kind, not there yet (or `force`), and never one of our own inputs."""
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise OutputError(f"{path} must end in {', '.join(suffixes)}; the ending says what is written.")
    if path.is_dir():
        raise OutputError(f"{path} is a folder. Name a file.")
    if path.exists() or path.is_symlink():
        if any(isinstance(source, (str, Path)) and _same(path, Path(source)) for source in sources):
            raise OutputError(f"{path} is what is read. Choose another name; an input is never replaced.")
        if not force:
            raise OutputError(f"{path} exists. Choose another name, or give --force (force=True) to replace it.")
    return path


def _same(path: Path, source: Path) -> bool:
    return source.exists() and path.exists() and path.samefile(source)


def check_labels(labels: ArrayLike, confidence: ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Labels as whole numbers from 0, and one confidence for each where there are any."""
    found = np.asarray(labels)
    if found.ndim != 1 or not len(found) or found.dtype.kind not in "iu" or found.min() < 0:
        raise InputError(f"labels must be whole numbers from 0, one per row; got {found.dtype} of shape {found.shape}.")
    sure = None if confidence is None else np.asarray(confidence, dtype=np.float64)
    if sure is not None and sure.shape != found.shape:
        raise InputError(f"confidence must have one number per label: {len(found)} labels, shape {sure.shape}.")
    return found.astype(np.int64), sure
