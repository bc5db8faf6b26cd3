"""Images or texts to encode, from wherever they are, loaded one at a time.

folder, array, file of images, data set, file of texts --> Items: names of the rows, and a way to load each
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from prodsc.errors import InputError, ParameterError, did_you_mean, reason_of, require
from prodsc.sources.arrays import listed
from prodsc.sources.arrow import pa
from prodsc.sources.fingerprint import fingerprint
from prodsc.sources.readers import read

Kind = Literal["images", "texts"]
Source = str | os.PathLike[str] | np.ndarray | Sequence[str]

IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm")
TEXT_SUFFIXES = (".txt", ".csv", ".tsv", ".parquet")
CSV_BLOCK = 2**26  # bytes: pyarrow wants every row whole inside one


@dataclass(frozen=True)
class Items:
    """What is to be encoded; `load(i)` gives item i, or raises an InputError that names it."""

    kind: Kind
    ids: list[str]
    load: Callable[[int], Any]  # a Pillow image, or a text
    fingerprint: str  # of the content: an interrupted extraction goes on only with the same items
    y: np.ndarray | None = None  # int64 codes from 0
    classes: list[str] | None = None  # the names of the codes

    def __len__(self) -> int:
        return len(self.ids)


def open_items(source: Source, *, column: str | None = None, labels_from_folders: bool = False) -> Items:
    """A folder of images, an array or file of uint8 images, a data set by name, a file of texts, or a list of texts."""
    if isinstance(source, np.ndarray):
        return image_array(source, "the array")
    if not isinstance(source, (str, os.PathLike)):
        return texts(list(source), "the list")
    path = Path(source).expanduser()
    folder = path.is_dir()
    table = path.suffix.lower() in TEXT_SUFFIXES[1:]
    if labels_from_folders and not folder:
        raise ParameterError(f"labels from folders need a folder with one sub-folder per class; {path} is not.")
    if column is not None and not table:
        raise ParameterError(f"column='{column}' is for texts in a .csv or .parquet file; leave it out.")
    if folder:
        return image_folder(path, labels_from_folders)
    if path.suffix.lower() in TEXT_SUFFIXES:
        if not path.is_file():
            raise InputError(f"{path} does not exist; check the path.")
        return texts(text_column(path, column) if table else text_lines(path), str(path))
    if path.exists():
        data = read(path)
        return image_array(data.X, str(path), data.y)
    from prodsc.sources.named import load_dataset  # knows every data set; a folder or file needs none of that

    named = load_dataset(str(source))
    return image_array(named.X, f"the data set {named.name}", named.y)


# ---- images ----------------------------------------------------------------------------------------------------------


def image_folder(root: Path, labels: bool = False) -> Items:
    """Every image below a folder, in the order of their paths; the paths, relative to it, are the ids."""
    names = image_names(root)
    stamps = ((name, *_stamp(root / name)) for name in names)
    classes, y = _folder_labels(names, root) if labels else (None, None)
    ids = [printable(name) for name in names]
    return Items("images", ids, lambda i: _open_image(root / names[i]), _digest(stamps), y, classes)


def image_names(root: Path) -> list[str]:
    """The path of every image below a folder, relative to it, in the order of rows."""
    names = sorted(_found(root))
    if not names:
        raise InputError(f"{root} holds no images ({', '.join(IMAGE_SUFFIXES)}); name a folder that does.")
    return names


def _found(root: Path) -> Iterable[str]:
    seen = set()
    for folder, inside, names in os.walk(root, followlinks=True):
        if (real := os.path.realpath(folder)) in seen:
            inside.clear()  # a link back: go no further, or it never ends
            continue
        seen.add(real)
        inside[:] = [name for name in inside if not name.startswith(".")]
        for name in names:
            if name.lower().endswith(IMAGE_SUFFIXES) and not name.startswith("."):
                yield Path(folder, name).relative_to(root).as_posix()


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:  # a link to nowhere; named when its turn comes
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _folder_labels(names: list[str], root: Path) -> tuple[list[str], np.ndarray]:
    """The first folder of each path is its class; codes in the order of the names."""
    loose = [name for name in names if "/" not in name]
    if loose:
        raise InputError(
            f"labels from folders need every image of {root} inside a sub-folder named after its class; "
            f"{printable(loose[0])} is in none: move it, or do without the labels."
        )
    classes, y = np.unique([printable(name.split("/")[0]) for name in names], return_inverse=True)
    return classes.tolist(), y.astype(np.int64)


def _open_image(path: Path) -> Any:
    Image = require("PIL.Image", extra="features", caller="prodsc extract")
    try:
        with Image.open(path) as image:
            image.load()
            return image
    except Exception as error:  # a damaged image makes Pillow raise nearly anything
        reason = "it is damaged or not an image" if isinstance(error, SyntaxError) else str(error) or repr(error)
        raise InputError(f"{printable(str(path))} cannot be read as an image ({reason}).") from error


def image_array(X: np.ndarray, where: str, y: np.ndarray | None = None) -> Items:
    """n x height x width (x channels), or n x channels x height x width; bytes. The ids are the row numbers."""
    if X.dtype != np.uint8 or X.ndim not in (3, 4):
        raise InputError(
            f"{where} has type {X.dtype} and shape {X.shape}; extract takes images, uint8 and n x height x width "
            "(x 1 or 3 channels): scale to 0..255 and convert with .astype('uint8')."
        )
    channels_last = X.ndim == 3 or X.shape[-1] in (1, 3)
    if not channels_last and X.shape[1] not in (1, 3):
        raise InputError(
            f"{where} has shape {X.shape}; images have 1 or 3 channels, last or second: cut off the others."
        )
    load = partial(_array_image, X, channels_last)
    return Items("images", [str(i) for i in range(len(X))], load, fingerprint(X), y)


def _array_image(X: np.ndarray, channels_last: bool, i: int) -> Any:
    Image = require("PIL.Image", extra="features", caller="prodsc extract")
    x = X[i] if channels_last else X[i].transpose(1, 2, 0)
    return Image.fromarray(np.ascontiguousarray(x[..., 0] if x.shape[2:] == (1,) else x))


# ---- texts -----------------------------------------------------------------------------------------------------------


def texts(values: list[str], where: str) -> Items:
    """The ids are the row numbers, from 0; a blank text cannot be encoded."""
    if not values:
        raise InputError(f"{where} holds no texts.")

    def load(i: int) -> str:
        if not isinstance(values[i], str) or not values[i].strip():
            raise InputError(f"row {i} of {where} is blank.")
        return values[i]

    return Items("texts", [str(i) for i in range(len(values))], load, _digest(values))


def text_lines(path: Path) -> list[str]:
    """One text per line."""
    try:
        content = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8; convert it, one text per line.") from error
    return content.removesuffix("\n").split("\n") if content else []


def text_column(path: Path, column: str | None) -> list[str]:
    """One column of a table with a header; the only column of text when none is named."""
    try:
        table = pa.parquet.read_table(path) if path.suffix.lower() == ".parquet" else _read_csv(path, column)
    except (pa.ArrowException, OSError) as error:
        raise InputError(
            f"{path} cannot be read as {path.suffix.lower()} ({reason_of(error)}); write it again."
        ) from error
    textual = [f.name for f in table.schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
    if column is None and len(textual) != 1:
        raise InputError(
            f"{path} has {len(textual)} columns of text ({listed(textual) or 'none'}); say which with --column NAME."
        )
    name = textual[0] if column is None else column
    if name not in textual:
        raise InputError(
            f"{path} has no column of text '{name}' (it has {listed(textual) or 'none'})"
            f"{did_you_mean(name, textual) or '; name one of its columns.'}"
        )
    return table.column(name).to_pylist()


def _read_csv(path: Path, column: str | None) -> pa.Table:
    delimiter = "\t" if path.suffix.lower() == ".tsv" else ","
    return pa.csv.read_csv(
        path,
        pa.csv.ReadOptions(block_size=CSV_BLOCK),
        pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        pa.csv.ConvertOptions(column_types={} if column is None else {column: pa.string()}),  # a text may be a number
    )


# ---- names and fingerprints ------------------------------------------------------------------------------------------


def _digest(values: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for value in values:
        digest.update(f"{value!r}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def printable(name: str) -> str:
    """One line of UTF-8, even for a file name that is neither."""
    return name.replace("\n", "\\n").encode("utf-8", "backslashreplace").decode()
