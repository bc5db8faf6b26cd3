"""Checks of what an export writes and of the labels it is given, before anything is computed."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from prodsc import files
from prodsc.errors import InputError, OutputError


def check_target(path: str | Path, suffixes: Sequence[str], force: bool, sources: Sequence[object] = ()) -> Path:
    """Check a file that is to be written.

    Parameters
    ----------
    path : path
        The file.
    suffixes : sequence of str
        Allowed endings.
    force : bool
        Allow an existing file.
    sources : sequence, optional
        Inputs, which are never replaced.

    Returns
    -------
    Path

    Raises
    ------
    OutputError
        If the file must not be written.
    """
    path = Path(path)
    if path.suffix.lower() not in suffixes:
        raise OutputError(f"{path} must end in {', '.join(suffixes)}; the ending decides the format.")
    if path.is_dir():
        raise OutputError(f"{path} is a folder. Name a file.")
    if path.exists() or path.is_symlink():
        if files.is_one_of(path, sources):
            raise OutputError(f"{path} is what is read. Choose another name; an input is never replaced.")
        if not force:
            raise OutputError(f"{path} exists. Choose another name, or give --force (force=True) to replace it.")
    return path


def check_labels(labels: ArrayLike, confidence: ArrayLike | None) -> tuple[np.ndarray, np.ndarray | None]:
    """Labels as integers from 0, and the confidence of each, if given."""
    array = np.asarray(labels)
    if array.ndim != 1 or not len(array) or array.dtype.kind not in "iu" or array.min() < 0:
        raise InputError(f"labels must be whole numbers from 0, one per row; got {array.dtype} of shape {array.shape}.")
    confidences = None if confidence is None else np.asarray(confidence, dtype=np.float64)
    if confidences is not None and confidences.shape != array.shape:
        raise InputError(f"confidence must have one number per label: {len(array)} labels, shape {confidences.shape}.")
    return array.astype(np.int64), confidences
