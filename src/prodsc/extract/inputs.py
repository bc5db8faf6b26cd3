"""Images or texts to encode, loaded one at a time.

folder, array, file of images, data set, file of texts --> Items: names of the rows, and a function that loads each
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np

from prodsc.errors import InputError, ParameterError, did_you_mean, reason_of, require
from prodsc.sources.arrays import listed
from prodsc.sources.arrow import pa
from prodsc.sources.choice import joined_texts
from prodsc.sources.contents import utf8_text
from prodsc.sources.csv_format import csv_format
from prodsc.sources.door import open_source
from prodsc.sources.fingerprint import fingerprint
from prodsc.sources.formats import existing
from prodsc.sources.limits import check_size
from prodsc.sources.parquet import is_text, parquet_file, read_column, text_values

ItemKind = Literal["images", "texts"]
ItemSource = str | os.PathLike[str] | np.ndarray | Sequence[str]

HEIC_SUFFIXES = (".heic", ".heif")  # photos of telephones; they need the extra `heic`
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff", ".ppm", ".pgm", *HEIC_SUFFIXES)
TEXT_SUFFIXES = (".txt", ".csv", ".tsv", ".parquet")


@dataclass(frozen=True)
class Items:
    """Images or texts to encode.

    Parameters
    ----------
    kind : {"images", "texts"}
    ids : list of str
        Name of each item.
    load : callable
        Returns item i, a Pillow image or a text, or raises an InputError that names it.
    fingerprint : str
        Digest of the content: an interrupted extraction continues only with the same items.
    y : ndarray or None
        Labels as int64 codes from 0.
    classes : list of str or None
        Names of the codes.
    check : callable or None
        Raises an InputError if item i is no image or text; it reads as little as it needs.
    folder : Path or None
        The folder of the images.
    """

    kind: ItemKind
    ids: list[str]
    load: Callable[[int], Any]
    fingerprint: str
    y: np.ndarray | None = None
    classes: list[str] | None = None
    check: Callable[[int], Any] | None = None  # reads as little of an item as tells whether it is one
    folder: Path | None = None  # the folder of the images

    def problem(self, i: int) -> str:
        """Why item i cannot be read; empty if it seems that it can."""
        try:
            if self.check is not None:
                self.check(i)
        except InputError as error:
            return str(error)
        return ""

    def __len__(self) -> int:
        return len(self.ids)


def open_items(
    source: ItemSource,
    *,
    column: str | None = None,
    labels_from_folders: bool = False,
    join_columns: bool = False,
    id: str | None = None,
) -> Items:
    """Open images or texts.

    Parameters
    ----------
    source : path, array, list of str, or name of a data set
        Images: a folder, an array, or a file or data set of uint8 images. Texts: a .txt with one text per line, a
        table, or a list.
    column : str or None
        The column of texts in a .csv or .parquet file.
    labels_from_folders : bool
        Whether the sub-folder of an image is its label.
    join_columns : bool
        Whether several columns of text, without a `column` that chooses one, are one text.
    id : str or None
        The column of a table with the name of each text.

    Returns
    -------
    Items

    Raises
    ------
    InputError
        If it holds no images or texts.
    """
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
        existing(path)
        if not table:
            return texts(text_lines(path), str(path))
        values, ids = text_column(path, column, join_columns, id)
        return texts(values, str(path), ids)
    opened = open_source(source)
    return image_array(opened.X, opened.location if opened.info is None else f"the data set {opened.name}", opened.y)


# ---- images ----------------------------------------------------------------------------------------------------------


def image_folder(root: Path, labels: bool = False) -> Items:
    """All images below a folder, sorted by their relative paths, which are the ids."""
    names = image_names(root)
    stamps = ((name, *_stamp(root / name)) for name in names)
    classes, y = _folder_labels(names, root) if labels else (None, None)
    ids = [printable(name) for name in names]
    load, check = (lambda i: _open_image(root / names[i])), (lambda i: _open_image(root / names[i], whole=False))
    return Items("images", ids, load, _digest(stamps), y, classes, check, root.resolve())


def image_names(root: Path) -> list[str]:
    """Relative paths of all images below a folder, sorted."""
    names = sorted(_image_paths(root))
    if not names:
        raise InputError(f"{root} holds no images ({', '.join(IMAGE_SUFFIXES)}); name a folder that does.")
    return names


def _image_paths(root: Path) -> Iterable[str]:
    seen = set()
    for folder, inside, names in os.walk(root, followlinks=True):
        if (real := os.path.realpath(folder)) in seen:
            inside.clear()  # a link to a folder above would be followed for ever
            continue
        seen.add(real)
        inside[:] = [name for name in inside if not name.startswith(".")]
        for name in names:
            if name.lower().endswith(IMAGE_SUFFIXES) and not name.startswith("."):
                yield Path(folder, name).relative_to(root).as_posix()


def _stamp(path: Path) -> tuple[int, int]:
    try:
        status = path.stat()
    except OSError:  # a broken link; `load` will name it
        return 0, 0
    return status.st_size, status.st_mtime_ns


def _folder_labels(names: list[str], root: Path) -> tuple[list[str], np.ndarray]:
    """The first folder of each path is its class; codes follow the order of the class names."""
    loose = [name for name in names if "/" not in name]
    if loose:
        raise InputError(
            f"labels from folders need every image of {root} inside a sub-folder named after its class; "
            f"{printable(loose[0])} is in none: move it, or leave the labels out."
        )
    classes, y = np.unique([printable(name.split("/")[0]) for name in names], return_inverse=True)
    return classes.tolist(), y.astype(np.int64)


def _open_image(path: Path, whole: bool = True) -> Any:
    """An image, turned as its camera was held; not `whole`: only its header is read."""
    Image = require("PIL.Image", extra="features", caller="prodsc extract")
    if path.exists() and not path.is_file():
        raise InputError(f"{printable(str(path))} is a pipe, socket or device, not an image; remove it.")
    if path.suffix.lower() in HEIC_SUFFIXES:
        require("pillow_heif", extra="heic", caller=f"reading {printable(path.name)}").register_heif_opener()
    try:
        with Image.open(path) as image:
            if not whole:
                return image
            image.load()
            return require("PIL.ImageOps", extra="features", caller="prodsc extract").exif_transpose(image)
    except Exception as error:  # damaged images raise many kinds of errors
        reason = "it is damaged or not an image" if isinstance(error, SyntaxError) else str(error) or repr(error)
        raise InputError(f"{printable(str(path))} cannot be read as an image ({reason}).") from error


def image_array(X: np.ndarray, where: str, y: np.ndarray | None = None) -> Items:
    """Images of an array: uint8, n x height x width (x channels), or n x channels x height x width.

    The ids are the row numbers.
    """
    if X.dtype != np.uint8 or X.ndim not in (3, 4):
        raise InputError(
            f"{where} has type {X.dtype} and shape {X.shape}; extract takes images, uint8 and n x height x width "
            "(x 1 or 3 channels): scale to 0..255 and convert with .astype('uint8')."
        )
    channels_last = X.ndim == 3 or X.shape[-1] in (1, 3)
    if not channels_last and X.shape[1] not in (1, 3):
        raise InputError(
            f"{where} has shape {X.shape}; images have 1 or 3 channels, last or second: remove the others."
        )
    load = partial(_array_image, X, channels_last)
    return Items("images", [str(i) for i in range(len(X))], load, fingerprint(X), y)


def _array_image(X: np.ndarray, channels_last: bool, i: int) -> Any:
    Image = require("PIL.Image", extra="features", caller="prodsc extract")
    x = X[i] if channels_last else X[i].transpose(1, 2, 0)
    return Image.fromarray(np.ascontiguousarray(x[..., 0] if x.shape[2:] == (1,) else x))


# ---- texts -----------------------------------------------------------------------------------------------------------


def texts(values: list[str], where: str, ids: list[str] | None = None) -> Items:
    """Texts of a list. The ids are the row numbers, unless given; a blank text cannot be encoded."""
    if not values:
        raise InputError(f"{where} holds no texts.")

    def load(i: int) -> str:
        if not isinstance(values[i], str) or not values[i].strip():
            raise InputError(f"row {i} of {where} is blank.")
        return values[i]

    return Items("texts", ids or [str(i) for i in range(len(values))], load, _digest(values), check=load)


def text_lines(path: Path) -> list[str]:
    """Read one text per line."""
    content = utf8_text(path, "convert it, one text per line")
    return content.removesuffix("\n").split("\n") if content else []


def text_column(
    path: Path, column: str | None, join: bool = False, id: str | None = None
) -> tuple[list[str], list[str] | None]:
    """Read the texts of a table with a header, and the names of its rows.

    Parameters
    ----------
    path : Path
        A .csv, .tsv or .parquet file.
    column : str or None
        The column of texts, or several separated by commas; None for the only column of text.
    join : bool
        Whether several columns of text, of which none is named, are one text.
    id : str or None
        The column with the name of each row.

    Returns
    -------
    texts : list of str
    ids : list of str or None
    """
    try:
        return _text_column(path, column, join, id)
    except InputError:
        raise
    except (pa.ArrowException, OSError, ValueError, MemoryError) as error:
        raise InputError(
            f"{path} cannot be read as {path.suffix.lower()} ({reason_of(error)}); write it again."
        ) from error


def _text_column(path: Path, column: str | None, join: bool, id: str | None) -> tuple[list[str], list[str] | None]:
    with ExitStack() as stack:
        if path.suffix.lower() == ".parquet":
            file = stack.enter_context(parquet_file(path))
            schema = file.metadata.schema.to_arrow_schema()
            read = partial(read_column, file, path=path)
        else:
            table = _read_csv(path, column)
            schema, read = table.schema, table.column
        if id is not None and id not in schema.names:
            raise InputError(f"--id: {path} has no column '{id}'{did_you_mean(id, schema.names) or '.'}")
        ids = None if id is None else [str(name) for name in read(id).to_pylist()]
        textual = [field.name for field in schema if is_text(field.type) and field.name != id]
        chosen = textual if join and column is None else _chosen_texts(path, textual, column)
        twice = [name for name in chosen if schema.names.count(name) > 1]
        if twice:
            raise InputError(f"{path} has several columns '{printable(twice[0])}'; give each a name of its own.")
        columns = [text_values(read(name), path, "its text") for name in chosen]
        return (columns[0] if len(columns) == 1 else joined_texts(columns)), ids


def _chosen_texts(path: Path, textual: list[str], column: str | None) -> list[str]:
    """The columns of text that are meant; each must be there once."""
    if column is None and len(textual) != 1:
        raise InputError(
            f"{path} has {len(textual)} columns of text ({listed(textual) or 'none'}); say which with --text NAME."
        )
    whole = column is None or column in textual
    names = [textual[0] if column is None else column] if whole else [word.strip() for word in str(column).split(",")]
    for name in names:
        if textual.count(name) != 1:
            raise InputError(
                f"{path} has {textual.count(name) or 'no'} {'columns' if name in textual else 'column'} of text "
                f"'{name}' (it has {listed(textual) or 'none'}){did_you_mean(name, textual) or '; name one of them.'}"
            )
    return names


def _read_csv(path: Path, column: str | None) -> pa.Table:
    check_size(4 * path.stat().st_size, path, "its table")
    form = csv_format(path)
    return pa.csv.read_csv(
        path,
        pa.csv.ReadOptions(block_size=2**26, encoding=form.read.encoding),  # bytes; a row must fit in a block
        pa.csv.ParseOptions(delimiter=form.parse.delimiter, newlines_in_values=True),
        pa.csv.ConvertOptions(column_types={name: pa.string() for name in (column or "").split(",") if name}),
    )


# ---- names and fingerprints ------------------------------------------------------------------------------------------


def _digest(values: Iterable[object]) -> str:
    digest = hashlib.sha256()
    for value in values:
        digest.update(f"{value!r}\n".encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def printable(name: str) -> str:
    """A file name as one line of valid UTF-8."""
    return name.replace("\n", "\\n").encode("utf-8", "backslashreplace").decode()
