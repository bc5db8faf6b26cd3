"""Items through an encoder into a file of features, batch by batch; stopped at any moment, it goes on where it was.

OUT.part holds the rows so far and OUT.part.json says how many; the finished file is renamed into place.
"""

import io
import json
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import torch

from prodsc import files, ranks
from prodsc.errors import InputError, Interrupted, OutputError, ParameterError, RankError
from prodsc.extract.encoders import Encoder, load_encoder, resolved
from prodsc.extract.inputs import Items, Source, open_items
from prodsc.sources.readers import read
from prodsc.training.checkpoint import SECONDS

Dtype = Literal["float32", "float16"]
Progress = Callable[[int, int], None]  # items done, items in all
OUT_SUFFIXES = (".npy", ".npz", ".safetensors")
VERSION = 1


@dataclass(frozen=True)
class Features:
    """What was extracted: row i of X is the item ids[i]."""

    X: np.ndarray  # n x d; a read-only memory map when it is an .npy file
    ids: list[str]
    y: np.ndarray | None = None  # int64 codes from 0
    classes: list[str] | None = None
    skipped: dict[str, str] = field(default_factory=dict)  # id -> why
    files: list[Path] = field(default_factory=list)  # written, the features first


def extract(
    source: Source,
    encoder: str | Encoder,
    out: str | os.PathLike[str] | None = None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    column: str | None = None,
    labels_from_folders: bool = False,
    skip_bad: bool = False,
    dtype: Dtype = "float32",
    batch_size: int = 64,
    workers: int = 4,
    device: str = "auto",
    overwrite: bool = False,
    restart: bool = False,
    progress: Progress | None = None,
) -> Features:
    """Encode images (folder, array, file, data set) or texts (file, list); with `out`, resumable and into that file.

    On several ranks each encodes a part, the first one writes, and all get the result.
    """
    if dtype not in get_args(Dtype):
        raise ParameterError(f"dtype={dtype!r} must be one of {', '.join(get_args(Dtype))}.")
    if batch_size < 1 or workers < 1:
        raise ParameterError(f"batch_size={batch_size} and workers={workers} must be at least 1.")
    if isinstance(encoder, str):
        resolved(encoder)  # a misspelt name shows before a large folder is searched
    target = None if out is None else _checked_out(Path(out).expanduser(), overwrite)
    items = open_items(source, column=column, labels_from_folders=labels_from_folders)

    def batches(start: int) -> Iterator[Batch]:
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


def _checked_out(out: Path, overwrite: bool) -> Path:
    if out.suffix not in OUT_SUFFIXES:
        raise OutputError(f"{out} must end in one of {', '.join(OUT_SUFFIXES)}; choose another name.")
    if out.exists() and not overwrite:
        raise OutputError(f"{out} exists. Choose another -o, or give --overwrite.")
    return out


def _sha256(path: Path) -> str:
    if not path.is_file():
        raise InputError(f"the checkpoint {path} does not exist; check the path.")
    return files.sha256(path)


# ---- batches ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """Items up to `stop` are done; those that could not be loaded have no row."""

    stop: int
    X: np.ndarray
    bad: dict[int, str]


def encoded(
    items: Items, encoder: Encoder, start: int, batch_size: int, workers: int, dtype: Dtype, skip_bad: bool
) -> Iterator[Batch]:
    """From item `start` on. The first item that cannot be loaded is an error, unless bad ones are to be skipped.

    On several ranks each encodes one batch of every round, and all get all of them, in order.
    """
    for first, loaded in _prepared(items, encoder.prepare, start, batch_size, workers):
        bad = {first + i: str(item) for i, item in enumerate(loaded) if isinstance(item, InputError)}
        if bad and not skip_bad:
            raise InputError(f"{next(iter(bad.values()))} Mend or remove it, or go on without such rows: --skip-bad.")
        good = [item for item in loaded if not isinstance(item, InputError)]
        ids = [items.ids[first + i] for i in range(len(loaded)) if first + i not in bad]
        X = _finite(encoder.embed(good), dtype, ids) if good else np.empty((0, 0), dtype)
        yield _of_all_ranks(Batch(first + len(loaded), X, bad), batch_size)


def _of_all_ranks(batch: Batch, batch_size: int) -> Batch:
    """The batches of a round as one; a rank that has nothing left to do brings an empty one."""
    if ranks.size() == 1:
        return batch
    about = {"stop": batch.stop, "shape": batch.X.shape, "bad": batch.bad}
    all_ = [json.loads(text) for text in ranks.texts(json.dumps(about))]
    padded = np.zeros((batch_size, max(one["shape"][1] for one in all_)), batch.X.dtype)
    padded[: len(batch.X), : batch.X.shape[1]] = batch.X
    X = ranks.gather(torch.from_numpy(padded), batch_size * len(all_)).numpy()
    kept = [X[i * batch_size : i * batch_size + one["shape"][0]] for i, one in enumerate(all_)]
    bad = {int(item): why for one in all_ for item, why in one["bad"].items()}
    return Batch(max(one["stop"] for one in all_), np.concatenate(kept), bad)


def _prepared(
    items: Items, prepare: Callable[[Any], Any], start: int, batch_size: int, workers: int
) -> Iterator[tuple[int, list[Any]]]:
    """Loaded and prepared in threads; the next batch while the encoder is busy with this one.

    On several ranks only every so many-th batch, and as many of them on each rank, the last perhaps empty.
    """

    def one(i: int) -> Any:
        try:
            return prepare(items.load(i))
        except InputError as error:
            return error

    pool = ThreadPoolExecutor(workers)

    def submitted(first: int) -> list[Future[Any]]:
        return [pool.submit(one, i) for i in range(first, min(first + batch_size, len(items)))]

    rounds = range(start, len(items), batch_size * ranks.size())
    before = batch_size * ranks.rank()  # of this rank's batch in a round
    try:
        ahead = submitted(start + before)
        for first in rounds:
            now, ahead = ahead, submitted(first + rounds.step + before)
            yield min(first + before, len(items)), [future.result() for future in now]
    finally:
        pool.shutdown(cancel_futures=True)


def _finite(X: torch.Tensor, dtype: Dtype, ids: list[str]) -> np.ndarray:
    X = X.to(getattr(torch, dtype))
    bad = ~torch.isfinite(X).all(1)
    if bad.any():
        way = "; use float32" if dtype == "float16" else "; look at that item, and at the checkpoint if you gave one"
        raise InputError(f"the features of {ids[int(bad.int().argmax())]} are not finite in {dtype}{way}.")
    return X.numpy()


# ---- into memory, into a file ----------------------------------------------------------------------------------------


def _in_memory(items: Items, batches: Iterator[Batch], progress: Progress | None) -> Features:
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
    progress: Progress | None,
    restart: bool,
) -> Features:
    if not ranks.first():
        return _for_another(out, items, batches)
    part = Part.open(out, about, restart)
    part.save()  # a place that cannot be written to shows before the encoder is loaded
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
            raise RankError(f"{stop} Go on with the same command.") from stop
        if isinstance(stop, KeyboardInterrupt):
            at = f"stopped at {part.position.done} of {len(items)}"
            raise Interrupted(f"{at}; go on with the same command.") from None
        raise
    found = _features(items, part.array(), part.position.bad())
    written = _write(out, found, part)
    part.remove()
    ranks.texts(json.dumps(part.position.skipped))
    X = np.load(out, mmap_mode="r") if out.suffix == ".npy" else found.X
    return replace(found, X=X, files=written)


def _for_another(out: Path, items: Items, batches: Callable[[int], Iterator[Batch]]) -> Features:
    """Help the first rank, which writes, and read what it has written."""
    done = int(ranks.texts("")[0])
    if done < len(items):
        for _ in batches(done):
            pass
    bad = {int(i): why for i, why in json.loads(ranks.texts("")[0]).items()}
    return replace(_features(items, read(out).X, bad), files=[out])


def _features(items: Items, X: np.ndarray, bad: dict[int, str]) -> Features:
    kept = [i for i in range(len(items)) if i not in bad]
    y = None if items.y is None else np.asarray(items.y)[kept]
    return Features(X, [items.ids[i] for i in kept], y, items.classes, {items.ids[i]: why for i, why in bad.items()})


def _nothing(bad: dict[int, str]) -> InputError:
    return InputError(f"none of the {len(bad)} items could be read; the first: {next(iter(bad.values()))}")


def _write(out: Path, found: Features, part: "Part") -> list[Path]:
    """The features last, so that where they are, all is; names and labels inside an .npz, else beside."""
    named: dict[str, Any] = {} if found.classes is None else {"classes": np.array(found.classes)}
    labels: dict[str, Any] = {} if found.y is None else {"y": found.y}
    lines = {"skipped": [f"{name}\t{why}" for name, why in found.skipped.items()]} if found.skipped else {}
    if out.suffix != ".npz":
        lines["ids"] = found.ids
    if out.suffix == ".npy" and found.y is not None:
        lines["labels"] = [str(label) for label in (found.y if found.classes is None else named["classes"][found.y])]
    beside = {out.with_name(f"{out.stem}.{name}.txt"): content for name, content in lines.items()}
    for path, content in beside.items():
        files.write_text(path, "".join(f"{line}\n" for line in content))
    if out.suffix == ".npy":
        os.replace(part.path, out)
    elif out.suffix == ".npz":
        with files.atomic(out) as path, path.open("wb") as file:
            np.savez(file, X=found.X, ids=np.array(found.ids), **labels, **named)
    else:
        files.write_tensors(out, {name: torch.from_numpy(array) for name, array in {"X": found.X, **labels}.items()})
    return [out, *beside]


# ---- the part written so far -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Position:
    """How far an extraction is, and of what."""

    about: dict[str, Any]
    done: int = 0  # items
    rows: int = 0
    columns: int = 0
    skipped: dict[str, str] = field(default_factory=dict)  # item (JSON has only text for keys) -> why
    version: int = VERSION

    def after(self, batch: Batch) -> "Position":
        skipped = self.skipped | {str(i): why for i, why in batch.bad.items()}
        columns = batch.X.shape[1] or self.columns
        return replace(self, done=batch.stop, rows=self.rows + len(batch.X), columns=columns, skipped=skipped)

    def bad(self) -> dict[int, str]:
        return {int(i): why for i, why in self.skipped.items()}


class Part:
    """OUT.part, an .npy file whose rows are appended as they come, and OUT.part.json, its position.

    Rows are appended by plain writes, not through a memory map: on a full disk those raise, a map kills the process.
    """

    def __init__(self, out: Path, position: Position):
        self.out, self.position = out, position
        self.path, self.note = _part_paths(out)
        self.dtype = np.dtype(position.about["dtype"])
        self._saved = time.monotonic()

    @classmethod
    def open(cls, out: Path, about: dict[str, Any], restart: bool) -> "Part":
        """What an earlier extraction of the same left, else an empty one."""
        path, note = _part_paths(out)
        if restart or not (path.exists() and note.exists()):
            return cls(out, Position(about))
        try:
            position = Position(**files.read_json(note))
        except (ValueError, TypeError) as error:
            raise OutputError(f"{note} is damaged; give --restart to begin anew, or choose another -o.") from error
        if position.version != VERSION or position.about != about:
            changed = next((name for name in about if position.about.get(name) != about[name]), "version")
            raise OutputError(
                f"{path} is left of another extraction (other {changed}); give --restart to drop it, or another -o."
            )
        part = cls(out, position)
        if position.rows and path.stat().st_size < part._end():
            raise OutputError(f"{path} is shorter than {note.name} says; give --restart to begin anew.")
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
        self.position = self.position.after(batch)  # one assignment: an interrupt finds either the old or the new
        if time.monotonic() - self._saved >= SECONDS:
            self.save()

    def save(self) -> None:
        """Rows first, then the position, so that the position never promises rows that a power cut took."""
        if self.position.rows:
            with self.path.open("r+b") as file:
                file.truncate(self._end())  # without what an interrupt left half-written
                os.fsync(file.fileno())
        files.write_json(self.note, asdict(self.position))
        self._saved = time.monotonic()

    def leave(self) -> None:
        """Keep what there is for the next time; keep nothing when there is nothing."""
        if self.position.done:
            self.save()
        else:
            self.remove()

    def array(self) -> np.ndarray:
        """All rows, mapped; the header now tells their number."""
        with self.path.open("r+b") as file:
            file.write(_header(self.position.rows, self.position.columns, self.dtype))
            os.fsync(file.fileno())
        return np.load(self.path, mmap_mode="c")

    def remove(self) -> None:
        for path in (self.path, self.note):
            path.unlink(missing_ok=True)

    def _end(self) -> int:
        """Where the rows so far end, in bytes."""
        header = len(_header(0, self.position.columns, self.dtype))
        return header + self.position.rows * self.position.columns * self.dtype.itemsize


def _part_paths(out: Path) -> tuple[Path, Path]:
    return out.with_name(f"{out.name}.part"), out.with_name(f"{out.name}.part.json")


def _header(rows: int, columns: int, dtype: np.dtype) -> bytes:
    """Of an .npy file; as long for one row as for a billion, because NumPy leaves room for the first axis to grow."""
    buffer = io.BytesIO()
    what = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": (rows, columns)}
    np.lib.format.write_array_header_1_0(buffer, what)
    return buffer.getvalue()
