"""Encode items batch by batch into a file of features. After an interruption the same call continues.

OUT.part holds the rows so far and OUT.part.json their number; the finished file is renamed to OUT.
"""

import io
import json
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch

from prodsc import files, ranks
from prodsc.errors import InputError, Interrupted, OutputError, ParameterError, RankError
from prodsc.extract.batches import Batch, Dtype, encoded
from prodsc.extract.encoders import Encoder, find_loader, load_encoder
from prodsc.extract.inputs import Items, ItemSource, open_items
from prodsc.extract.ray_extraction import EncodingRequest, encoded_with_ray
from prodsc.progress import ProgressFunction
from prodsc.sources.readers import read
from prodsc.training.checkpoint import SECONDS

OUT_SUFFIXES = (".npy", ".npz", ".safetensors")
PART_VERSION = 1  # of OUT.part.json


@dataclass(frozen=True)
class Features:
    """Extracted features.

    Parameters
    ----------
    X : ndarray of shape (n, d)
        A read-only memory map if it was written to an .npy file.
    ids : list of str
        Names of the rows.
    y : ndarray or None
        Labels as int64 codes from 0.
    classes : list of str or None
        Names of the codes.
    skipped : dict of str
        Names of items that could not be read, and the reasons.
    files : list of Path
        The files that were written, the features first.
    texts : list of str or None
        The texts, if they were texts.
    folder : Path or None
        The folder of the images, if they were in one.
    """

    X: np.ndarray
    ids: list[str]
    y: np.ndarray | None = None
    classes: list[str] | None = None
    skipped: dict[str, str] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    texts: list[str] | None = None
    folder: Path | None = None


def extract(
    source: ItemSource,
    encoder: str | Encoder,
    out: str | os.PathLike[str] | None = None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    column: str | None = None,
    id: str | None = None,
    labels_from_folders: bool = False,
    skip_bad: bool = False,
    dtype: Dtype = "float32",
    batch_size: int = 64,
    workers: int = 4,
    device: str = "auto",
    overwrite: bool = False,
    restart: bool = False,
    engine: str = "local",
    processes: int = 1,
    progress: ProgressFunction | None = None,
) -> Features:
    """Encode images or texts with a pre-trained encoder.

    On several ranks each encodes a part, the first one writes, and all return the result.

    Parameters
    ----------
    source : path, array, list of str, or name of a data set
        Images: a folder, an array, or a file or data set of uint8 images. Texts: a .txt with one text per line, a
        table, or a list.
    encoder : str or Encoder
        A short name, LIBRARY:MODEL, or a loaded encoder.
    out : path or None
        A .npy, .npz or .safetensors file to write. An interrupted extraction into it is continued.
    checkpoint : path or None
        Weights to use instead of those of the library.
    column : str or None
        The column of texts in a .csv or .parquet file, or several separated by commas.
    id : str or None
        The column of such a file with the name of each text.
    labels_from_folders : bool
        Whether the sub-folder of an image is its label.
    skip_bad : bool
        Leave out items that cannot be read, instead of raising an error.
    dtype : {"float32", "float16"}
        Of the features.
    batch_size : int
        Items encoded together.
    workers : int
        Threads that load items.
    device : str
        "auto", "cpu", "cuda", ...
    overwrite : bool
        Replace an existing file.
    restart : bool
        Do not continue an interrupted extraction.
    engine : {"local", "ray"}
        What runs the work: this process (or, under torchrun, all ranks), or Ray.
    processes : int
        Processes of Ray.
    progress : callable or None
        Called with the items done and the items in total.

    Returns
    -------
    Features

    Raises
    ------
    InputError
        If an item cannot be read, or its features are not finite.
    OutputError
        If `out` exists or cannot be written.
    """
    if dtype not in get_args(Dtype):
        raise ParameterError(f"dtype={dtype!r} must be one of {', '.join(get_args(Dtype))}.")
    if batch_size < 1 or workers < 1:
        raise ParameterError(f"batch_size={batch_size} and workers={workers} must be at least 1.")
    if engine not in ("local", "ray"):
        raise ParameterError(f"engine={engine!r} must be one of local, ray.")
    if engine == "ray" and not (isinstance(source, (str, os.PathLike)) and isinstance(encoder, str)):
        raise ParameterError("engine='ray' opens the source in every process; give a path and the name of an encoder.")
    if isinstance(encoder, str):
        find_loader(encoder)  # find a misspelt name before a large folder is searched
    target = None if out is None else _checked_out(Path(out).expanduser(), overwrite, [source, checkpoint])
    items = open_items(source, column=column, labels_from_folders=labels_from_folders, id=id)
    if not skip_bad:
        check_items(items)
    if progress is not None:
        progress(0, len(items))  # the time left is known from the first batch on

    def batches(start: int) -> Iterator[Batch]:
        if engine == "ray":
            options = {"column": column, "labels_from_folders": labels_from_folders, "id": id}
            request = EncodingRequest(
                str(source),
                str(encoder),
                None if checkpoint is None else str(checkpoint),
                options,
                device,
                batch_size,
                workers,
                dtype,
                skip_bad,
            )
            return encoded_with_ray(request, len(items), start, processes)
        model = encoder
        if isinstance(model, str):
            model = load_encoder(model, items.kind, checkpoint=checkpoint, device=device)
        return encoded(items, model, start, batch_size, workers, dtype, skip_bad)

    if target is None:
        return _in_memory(items, batches(0), progress)
    about = {
        "items": items.fingerprint,
        "encoder": encoder if isinstance(encoder, str) else encoder.name,
        "checkpoint": None if checkpoint is None else _sha256(Path(checkpoint)),
        "dtype": dtype,
    }
    return _into_file(target, items, about, batches, progress, restart)


def check_items(items: Items, most: int = 5) -> None:
    """Raise an InputError if items cannot be read, before an encoder is loaded and the first batch is encoded.

    Parameters
    ----------
    items : Items
        Of images the headers are read; a damaged body is found when the image is encoded.
    most : int
        Items that the message names.
    """
    bad = [reason for i in range(len(items)) if (reason := items.problem(i))]
    if bad:
        more = f" and {len(bad) - most} more" if len(bad) > most else ""
        raise InputError(
            f"{len(bad)} of {len(items):,} {items.kind} cannot be read: {' '.join(bad[:most])}{more} Repair or remove "
            "them, or leave such items out: --skip-bad."
        )


def _checked_out(out: Path, overwrite: bool, inputs: list[object]) -> Path:
    if out.suffix not in OUT_SUFFIXES:
        raise OutputError(f"{out} must end in one of {', '.join(OUT_SUFFIXES)}; choose another name.")
    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists. Choose another -o, or give --overwrite.")
    if files.is_one_of(out, inputs):
        raise OutputError(f"{out} is an input of this command and is never replaced. Choose another -o.")
    return out


def _sha256(path: Path) -> str:
    if not path.is_file():
        raise InputError(f"the checkpoint {path} does not exist; check the path.")
    return files.sha256(path)


# ---- into memory, into a file ----------------------------------------------------------------------------------------


def _in_memory(items: Items, batches: Iterator[Batch], progress: ProgressFunction | None) -> Features:
    rows: list[np.ndarray] = []
    bad: dict[int, str] = {}
    for batch in batches:
        rows += [batch.X] if len(batch.X) else []
        bad |= batch.bad
        if progress is not None:
            progress(batch.stop, len(items))
    if not rows:
        raise _nothing(bad)
    return _features(items, np.concatenate(rows), bad)


def _into_file(
    out: Path,
    items: Items,
    about: dict[str, Any],
    batches: Callable[[int], Iterator[Batch]],
    progress: ProgressFunction | None,
    restart: bool,
) -> Features:
    if not ranks.first():
        return _help_first_rank(out, items, batches)
    part = PartialFile.open(out, about, restart)
    part.save()  # fail before the encoder is loaded if this cannot be written
    ranks.texts(str(part.position.done))
    try:
        if part.position.done < len(items):
            for batch in batches(part.position.done):
                part.append(batch)
                if progress is not None:
                    progress(batch.stop, len(items))
        part.save()
        if not part.position.rows:
            raise _nothing(part.position.bad())
    except BaseException as stop:
        part.leave()
        if isinstance(stop, RankError):
            raise RankError(f"{stop} Continue with the same command.") from stop
        if isinstance(stop, KeyboardInterrupt):
            at = f"stopped at {part.position.done} of {len(items)}"
            raise Interrupted(f"{at}; continue with the same command.") from None
        raise
    features = _features(items, part.array(), part.position.bad())
    written = _write(out, features, part)
    part.remove()
    ranks.texts(json.dumps(part.position.skipped))
    X = np.load(out, mmap_mode="r") if out.suffix == ".npy" else features.X
    return replace(features, X=X, files=written)


def _help_first_rank(out: Path, items: Items, batches: Callable[[int], Iterator[Batch]]) -> Features:
    """Encode this rank's batches, and read what the first rank has written."""
    done = int(ranks.texts("")[0])
    if done < len(items):
        for _ in batches(done):
            pass
    bad = {int(i): reason for i, reason in json.loads(ranks.texts("")[0]).items()}
    return replace(_features(items, read(out).X, bad), files=[out])


def _features(items: Items, X: np.ndarray, bad: dict[int, str]) -> Features:
    kept = [i for i in range(len(items)) if i not in bad]
    y = None if items.y is None else np.asarray(items.y)[kept]
    skipped = {items.ids[i]: reason for i, reason in bad.items()}
    texts = [str(items.load(i)) for i in kept] if items.kind == "texts" else None
    ids = [items.ids[i] for i in kept]
    return Features(X, ids, y, items.classes, skipped, texts=texts, folder=items.folder)


def _nothing(bad: dict[int, str]) -> InputError:
    return InputError(f"none of the {len(bad)} items could be read; the first: {next(iter(bad.values()))}")


def _write(out: Path, features: Features, part: "PartialFile") -> list[Path]:
    """Write names and labels (inside an .npz, else beside it), then the features, so that these imply the others."""
    named: dict[str, Any] = {} if features.classes is None else {"classes": np.array(features.classes)}
    labels: dict[str, Any] = {} if features.y is None else {"y": features.y}
    lines = {"skipped": [f"{name}\t{reason}" for name, reason in features.skipped.items()]} if features.skipped else {}
    if out.suffix != ".npz":
        lines["ids"] = features.ids
    if features.texts is not None:
        lines["texts"] = [" ".join(text.split()) for text in features.texts]
    if features.folder is not None:
        lines["folder"] = [str(features.folder)]
    if out.suffix == ".npy" and features.y is not None:
        lines["labels"] = [
            str(label) for label in (features.y if features.classes is None else named["classes"][features.y])
        ]
    beside = {out.with_name(f"{out.stem}.{name}.txt"): content for name, content in lines.items()}
    for path, content in beside.items():
        files.write_text(path, "".join(f"{line}\n" for line in content))
    if out.suffix == ".npy":
        os.replace(part.path, out)
    elif out.suffix == ".npz":
        with files.atomic(out) as path, path.open("wb") as file:
            np.savez(file, X=features.X, ids=np.array(features.ids), **labels, **named)
    else:
        files.write_tensors(out, {name: torch.from_numpy(array) for name, array in {"X": features.X, **labels}.items()})
    return [out, *beside]


# ---- the file of an unfinished extraction ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Position:
    """How far an extraction is, and what it extracts."""

    about: dict[str, Any]
    done: int = 0  # items
    rows: int = 0
    columns: int = 0
    skipped: dict[str, str] = field(default_factory=dict)  # item number (text, as JSON keys are) -> reason
    version: int = PART_VERSION

    def after(self, batch: Batch) -> "Position":
        skipped = self.skipped | {str(i): reason for i, reason in batch.bad.items()}
        columns = batch.X.shape[1] or self.columns
        return replace(self, done=batch.stop, rows=self.rows + len(batch.X), columns=columns, skipped=skipped)

    def bad(self) -> dict[int, str]:
        return {int(i): reason for i, reason in self.skipped.items()}


class PartialFile:
    """OUT.part, an .npy file to which rows are appended, and OUT.part.json, its position.

    Rows are written without a memory map: on a full disk a write raises an error, a map kills the process.
    """

    def __init__(self, out: Path, position: Position):
        self.out, self.position = out, position
        self.path, self.note = _part_paths(out)
        self.dtype = np.dtype(position.about["dtype"])
        self._saved = time.monotonic()

    @classmethod
    def open(cls, out: Path, about: dict[str, Any], restart: bool) -> "PartialFile":
        """The file of an interrupted extraction of the same items, or an empty one."""
        path, note = _part_paths(out)
        if restart or not (path.exists() and note.exists()):
            return cls(out, Position(about))
        try:
            position = Position(**files.read_json(note))
        except (ValueError, TypeError) as error:
            raise OutputError(f"{note} is damaged; give --restart to start again, or choose another -o.") from error
        if position.version != PART_VERSION or position.about != about:
            changed = next((name for name in about if position.about.get(name) != about[name]), "version")
            raise OutputError(
                f"{path} is left of another extraction (other {changed}); give --restart to drop it, or another -o."
            )
        part = cls(out, position)
        if position.rows and path.stat().st_size < part._end():
            raise OutputError(f"{path} is shorter than {note.name} says; give --restart to start again.")
        return part

    def append(self, batch: Batch) -> None:
        if len(batch.X):
            try:
                with self.path.open("ab" if self.position.rows else "wb") as file:
                    if not self.position.rows:
                        file.write(_header(0, batch.X.shape[1], self.dtype))
                    file.write(np.ascontiguousarray(batch.X).data)
            except OSError as error:
                raise files.unwritable(self.path, error) from error
        self.position = self.position.after(
            batch
        )  # one assignment, so that an interrupt sees the old or the new position
        if time.monotonic() - self._saved >= SECONDS:
            self.save()

    def save(self) -> None:
        """Write the rows, then the position, so that after a power cut the position is never ahead of the rows."""
        if self.position.rows:
            with self.path.open("r+b") as file:
                file.truncate(self._end())  # removes a row that an interrupt left half-written
                os.fsync(file.fileno())
        files.write_json(self.note, asdict(self.position))
        self._saved = time.monotonic()

    def leave(self) -> None:
        """Keep the rows for the next call; remove the files if there are no rows."""
        if self.position.done:
            self.save()
        else:
            self.remove()

    def array(self) -> np.ndarray:
        """All rows, as a memory map; writes their number into the header."""
        with self.path.open("r+b") as file:
            file.write(_header(self.position.rows, self.position.columns, self.dtype))
            os.fsync(file.fileno())
        return np.load(self.path, mmap_mode="c")

    def remove(self) -> None:
        for path in (self.path, self.note):
            path.unlink(missing_ok=True)

    def _end(self) -> int:
        """The byte after the last row."""
        header = len(_header(0, self.position.columns, self.dtype))
        return header + self.position.rows * self.position.columns * self.dtype.itemsize


def _part_paths(out: Path) -> tuple[Path, Path]:
    return out.with_name(f"{out.name}.part"), out.with_name(f"{out.name}.part.json")


def _header(rows: int, columns: int, dtype: np.dtype) -> bytes:
    """Header of an .npy file; NumPy reserves space for the first axis, so its length does not depend on `rows`."""
    buffer = io.BytesIO()
    what = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows, columns)}
    np.lib.format.write_array_header_1_0(buffer, what)
    return buffer.getvalue()
