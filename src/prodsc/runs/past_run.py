"""A finished run, read from its folder: request, result, labels, and on demand its rows and its model."""

import csv
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from prodsc import files, manifest
from prodsc.errors import InputError, ModelFileError, reason_of
from prodsc.estimators.naming import are_names, renamed
from prodsc.manifest import verified
from prodsc.registry import load
from prodsc.runs.run import (
    LABELS,
    NAMES,
    REQUEST,
    RESULT,
    FitRequest,
    RowNames,
    is_finished,
    rows_of,
    write_labels,
)
from prodsc.sources.fingerprint import fingerprint
from prodsc.sources.source import Source


@dataclass(frozen=True)
class PastRun:
    """A finished run; rows and model are read when they are first used."""

    folder: Path
    request: FitRequest
    result: dict[str, Any]  # result.json
    labels: np.ndarray  # the cluster of each row
    confidence: np.ndarray

    @cached_property
    def data(self) -> Source:
        """The rows the run was fitted on. Raises InputError for other rows, which have other labels."""
        try:
            data = rows_of(self.request)
        except InputError as error:
            raise InputError(
                f"the rows of {self.folder} cannot be read: {error} If they were moved, give --data FILE."
            ) from error
        if fingerprint(data.X) != self.result["data"]["fingerprint"]:
            raise InputError(
                f"{self.request.file} does not hold the rows that {self.folder} was fitted on (their fingerprints "
                "differ). Name the file as it was then with --data, or fit again."
            )
        return data

    @cached_property
    def model(self) -> Any:
        return load(self.folder)

    @cached_property
    def names(self) -> list[str] | None:
        """The names of the clusters, if they say more than numbers: those that were given, else those of the fit."""
        if (self.folder / NAMES).is_file():
            return renamed(self.model.cluster_names_, verified(self.folder, NAMES))
        names = self.result["clusters"].get("names")  # version 0.1 has none
        return names if names is not None and are_names(names) else None

    def keep_names(self, names: list[str]) -> None:
        """Write names of clusters to names.json and labels.csv of the run."""
        with (self.folder / LABELS).open(encoding="utf-8", newline="") as file:
            rows = list(csv.DictReader(file))
        numbers = [name for name in ("confidence", "outlier") if name in rows[0]]
        columns = (np.array([float(row[name]) for row in rows]) for name in numbers)
        kept = np.array([int(row["row"]) for row in rows])
        about = RowNames([row["id"] for row in rows] if "id" in rows[0] else None, kept, names)
        with manifest.replaced(self.folder) as path_of:
            files.write_json(path_of(NAMES), {"names": {str(c): name for c, name in enumerate(names)}})
            write_labels(path_of(LABELS), [(self.labels, *columns)], about)

    @cached_property
    def ids(self) -> list[str] | None:
        """The names of the rows in the file, if it has any."""
        return self.data.ids

    @cached_property
    def classes(self) -> np.ndarray:
        """What figures sort rows by: known labels where there are any, else the clusters."""
        return self.labels if self.data.y is None else self.data.y


def names_of_run(folder: Path, model: Any) -> list[str] | None:
    """The names of the clusters of the model in a folder, if they say more than numbers.

    Parameters
    ----------
    folder : Path
        The folder of a run, or of a model alone.
    model : estimator
        The model in it.
    """
    given = folder / NAMES
    names = renamed(model.cluster_names_, verified(folder, NAMES)) if given.is_file() else model.cluster_names_
    return list(names) if are_names(names) else None


def open_run(folder: str | Path, data: str | Path | None = None) -> PastRun:
    """Open the run in a folder that `prodsc fit` wrote.

    Parameters
    ----------
    folder : path
        The folder of the run.
    data : path, optional
        Where its rows are now, if they were moved.

    Returns
    -------
    PastRun

    Raises
    ------
    ModelFileError
        If the folder holds no finished run, or a damaged one.
    """
    folder = Path(folder)
    if not is_finished(folder):
        unfinished = (folder / REQUEST).is_file()
        way = f"Finish it: prodsc fit --resume {folder}" if unfinished else "Name a folder that `prodsc fit` wrote"
        raise ModelFileError(f"{folder} holds no finished run ({RESULT} is not there). {way}.")
    try:
        request = FitRequest.from_json(files.read_json(verified(folder, REQUEST)), folder)
        result = files.read_json(verified(folder, RESULT))
        labels, confidence = _labels(verified(folder, LABELS))
        if not isinstance(result["data"]["fingerprint"], str):
            raise TypeError("the fingerprint of the data is not text")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ModelFileError(
            f"the run in {folder} is damaged ({type(error).__name__}: {reason_of(error)}). Copy it again, or fit again."
        ) from error
    return PastRun(folder, request if data is None else replace(request, file=Path(data)), result, labels, confidence)


def _labels(path: Path) -> tuple[np.ndarray, np.ndarray]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = [(int(row["label"]), float(row["confidence"])) for row in csv.DictReader(file)]
    labels, confidence = np.array([row[0] for row in rows], dtype=np.intp), np.array([row[1] for row in rows])
    if not len(rows) or labels.min() < 0 or not (np.isfinite(confidence).all()):
        raise ValueError(f"{path.name} holds no labels, or labels below 0")
    return labels, confidence
