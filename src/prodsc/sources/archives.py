"""Converters of published archives: IDX (.gz), CIFAR's binary version (.tar.gz), the text files of UCI HAR. No pickles.

Each takes the downloaded files and returns the arrays X, y and split (0 = train, 1 = test), in the published order.
"""

import gzip
import io
import math
import tarfile
import warnings
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import numpy as np

from prodsc.errors import InputError, reason_of
from prodsc.sources.limits import LIMITS

TRAIN, TEST = 0, 1
CIFAR_RECORD = 1 + 3 * 32 * 32  # a label, then red, green and blue
CIFAR_BATCH = 10_000 * CIFAR_RECORD  # each of the six files


def idx_images(paths: Sequence[Path]) -> dict[str, np.ndarray]:
    """Train images, train labels, test images, test labels, each a gzipped IDX file of bytes."""
    X_train, y_train, X_test, y_test = (_idx(path) for path in paths)
    return _joined([X_train, X_test], [y_train, y_test], paths[0])


def _idx(path: Path) -> np.ndarray:
    """Two zero bytes, the type (8: unsigned byte), the number of axes, their lengths (big-endian int32), the values."""
    with _readable(path), gzip.open(path) as file:
        start = file.read(4)
        lengths = file.read(4 * start[3]) if start[:3] == b"\0\0\x08" and len(start) == 4 else b""
        shape = [int.from_bytes(lengths[i : i + 4], "big") for i in range(0, len(lengths), 4)]
        whole = math.prod(shape or [0]) > 0 and len(lengths) == 4 * start[3]
        content = file.read(_within_limits(math.prod(shape), path) + 1) if whole else b""
    if not whole or len(content) != math.prod(shape):
        raise InputError(f"{path} is not an IDX file of bytes, or is cut short; download it again.")
    return np.frombuffer(content, np.uint8).reshape(shape)


def cifar10_images(paths: Sequence[Path]) -> dict[str, np.ndarray]:
    """All 60,000 images, n x 32 x 32 x 3: the five training batches, then the test batch."""
    *train, (X_test, y_test) = _cifar_batches(
        paths[0], [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    )
    X, y = zip(*train, strict=True)
    return _joined([np.concatenate(X), X_test], [np.concatenate(y), y_test], paths[0])


def cifar10_test_images(paths: Sequence[Path]) -> dict[str, np.ndarray]:
    """The 10,000 test images alone."""
    [(X, y)] = _cifar_batches(paths[0], ["test_batch.bin"])
    return {"X": X, "y": y.astype(np.int16)}


def _cifar_batches(path: Path, names: Sequence[str]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Images and labels of the named members, found in one pass; nothing is unpacked to disk."""
    with _readable(path), tarfile.open(path) as archive:
        content = {
            Path(member.name).name: file.read(CIFAR_BATCH + 1)
            for member in archive  # a link is no batch, and may point to itself
            if Path(member.name).name in names and member.isreg() and (file := archive.extractfile(member)) is not None
        }
    return [_cifar_records(content.get(name, b""), path, name) for name in names]


def _cifar_records(content: bytes, path: Path, name: str) -> tuple[np.ndarray, np.ndarray]:
    if not content or len(content) % CIFAR_RECORD or len(content) > CIFAR_BATCH:
        raise InputError(
            f"{path} is not CIFAR-10's binary version: {name} has {len(content)} bytes, no multiple of {CIFAR_RECORD}; "
            "download cifar-10-binary.tar.gz again."
        )
    records = np.frombuffer(content, np.uint8).reshape(-1, CIFAR_RECORD)
    return np.ascontiguousarray(records[:, 1:].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)), records[:, 0]


def uci_har(paths: Sequence[Path]) -> dict[str, np.ndarray]:
    """The 561 features of the zip of the UCI repository, which holds the zip with the files."""
    parts = []
    with _readable(paths[0]), zipfile.ZipFile(paths[0]) as outer:
        inner = [name for name in outer.namelist() if name.endswith("UCI HAR Dataset.zip") and "__MACOSX" not in name]
        _within_limits(sum(info.file_size for info in outer.infolist()), paths[0])
        archive = zipfile.ZipFile(io.BytesIO(outer.read(inner[0]))) if inner else outer
        _within_limits(sum(info.file_size for info in archive.infolist()), paths[0])
        for part in ("train", "test"):
            names = [f"UCI HAR Dataset/{part}/{what}_{part}.txt" for what in "Xy"]
            missing = [name for name in names if name not in archive.namelist()]
            if missing:
                raise InputError(f"{paths[0]} is not the UCI HAR archive: it has no {missing[0]}; download it again.")
            with archive.open(names[0]) as X, archive.open(names[1]) as y:
                parts.append(_har_rows(X, y, f"{paths[0]}: {names[0]}"))
    return _joined([X for X, _ in parts], [y for _, y in parts], paths[0])


def read_uci_har(path: Path) -> tuple[np.ndarray, np.ndarray]:
    """One part of the unpacked archive: X_train.txt (or X_test.txt) and the y_*.txt beside it."""
    labels = path.with_name(path.name.replace("X_", "y_", 1))
    with _readable(path), path.open("rb") as X, labels.open("rb") as y:
        return _har_rows(X, y, str(path))


def _har_rows(X: IO[bytes], y: IO[bytes], where: str) -> tuple[np.ndarray, np.ndarray]:
    """One row per line, numbers separated by spaces; labels 1 to 6 become 0 to 5."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty file is an error below
        features, labels = np.loadtxt(X, np.float32, ndmin=2), np.loadtxt(y, np.int64, ndmin=1)
    if not len(features) or len(features) != len(labels):
        raise InputError(f"{where} has {len(features)} rows and {len(labels)} labels; unpack the archive again.")
    return features, labels - 1


def _joined(X: Sequence[np.ndarray], y: Sequence[np.ndarray], path: Path) -> dict[str, np.ndarray]:
    """The rows of both parts below each other; `path` is for the error message."""
    if len({part.shape[1:] for part in X}) > 1 or [part.shape for part in y] != [(len(part),) for part in X]:
        raise InputError(
            f"{path}: training and test rows of shapes {', '.join(str(part.shape) for part in X)} with labels of "
            f"shapes {', '.join(str(part.shape) for part in y)} do not belong together; download the files again."
        )
    split = np.repeat([TRAIN, TEST], [len(part) for part in X])
    return {"X": np.concatenate(X), "y": np.concatenate(y).astype(np.int16), "split": split.astype(np.int8)}


def _within_limits(n_bytes: int, path: Path) -> int:
    if n_bytes > LIMITS.largest(path):
        raise ValueError(f"it declares {n_bytes:,} bytes, more than {LIMITS.ratio} times its size")
    return n_bytes


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Any error that a damaged archive causes becomes an InputError of one sentence."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # damaged archives raise many kinds of errors
        reason = reason_of(error)
        raise InputError(f"{path} cannot be read ({reason}); it is damaged or incomplete: get it again.") from error
