"""What a page shows of a row: its id, image, text and columns. All of them are untrusted."""

import io
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from prodsc.core.naming import are_words
from prodsc.errors import InputError, did_you_mean
from prodsc.extract.inputs import Items, open_items
from prodsc.sources.catalogue import DATASETS
from prodsc.sources.readers import read_array
from prodsc.sources.source import Source


@dataclass(frozen=True)
class PreviewLimits:
    """What keeps a page small."""

    text_length: int = 240  # characters of one text on a card
    searched_length: int = 1000  # characters of one text that the map shows and searches
    text_bytes: int = 5_000_000  # all texts; beyond, only a sample of the rows has a text
    column_bytes: int = 4_000_000  # all columns, 4 bytes for each row of each
    n_columns: int = 24  # of the input, without being asked for
    n_words: int = 20  # characters by which a column of words counts
    image_bytes: int = 5_000_000  # all thumbnails, before base64 makes them a third larger
    large_bytes: int = 2_000_000  # large images of the rows on the cards
    large_side: int = 224  # pixels of the longer side of those
    per_sheet: int = 1024  # thumbnails in one image
    per_line: int = 32  # thumbnails side by side in it


PREVIEW_LIMITS = PreviewLimits()


@dataclass(frozen=True)
class RowPreviews:
    """What is known about the rows of X; each field is optional."""

    ids: Sequence[str] | None = None
    image: Callable[[int], Image.Image] | None = None
    texts: Sequence[str] | None = None
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)

    def check(self, n: int) -> None:
        """Raise InputError unless there is one entry for each of `n` rows."""
        for name, values in {"ids": self.ids, "texts": self.texts, **self.columns}.items():
            if values is not None and len(values) != n:
                raise InputError(f"{name} must have one entry per row: {n} rows, {len(values)} entries.")

    def name(self, row: int) -> str:
        """The id of a row, or its number, short enough for a page."""
        return str(row) if self.ids is None else short(self.ids[row])

    def replaced(self, **fields: Any) -> "RowPreviews":
        """The same with other fields."""
        return replace(self, **fields)


def with_columns(previews: RowPreviews, columns: dict[str, NDArray[Any]]) -> RowPreviews:
    """Previews with further columns, as many as a page can hold.

    Parameters
    ----------
    previews : RowPreviews
    columns : dict from name to array of shape (n,)

    Returns
    -------
    RowPreviews
    """
    every = previews.columns | columns
    kept: dict[str, NDArray[Any]] = {}
    left = PREVIEW_LIMITS.column_bytes
    for name, values in every.items():
        left -= len(values) * (4 if values.dtype.kind in "biuf" else PREVIEW_LIMITS.n_words)
        if left >= 0:
            kept[name] = values
    return replace(previews, columns=kept)


def open_previews(
    source: Source,
    *,
    images: str | None = None,
    texts: str | None = None,
    columns: Sequence[str] = (),
) -> RowPreviews:
    """What a page can show of the rows of a source.

    Parameters
    ----------
    source : Source
        The rows; images among them are shown.
    images : str, optional
        A folder, file or data set with the image of each row.
    texts : str, optional
        A file with the text of each row, as `prodsc extract` takes.
    columns : sequence of str, optional
        Columns of the input, by name or number.

    Returns
    -------
    RowPreviews
    """
    X, n, ids = source.X, len(source.X), source.ids
    shape = None if source.info is None else source.info.image
    image = row_images(X, shape) if X.ndim > 2 or shape is not None else None
    images = images if images is not None or image is not None else _folder_beside(source)
    if images is not None:
        items = _open_images(images)
        order = _item_of_each_row(items, ids, n, "--images", images)
        image, ids = lambda row: items.load(order[row]), ids or (items.ids if items.ids[0] != "0" else None)
    row_texts = source.texts
    if texts is not None:
        text_items = open_items(texts, join_columns=True)
        if text_items.kind != "texts":
            raise InputError(
                f"--texts {texts} holds {text_items.kind}; give a .txt, .csv or .parquet, or use --images."
            )
        row_texts = [_text(text_items, i) for i in _item_of_each_row(text_items, ids, n, "--texts", texts)]
    previews = RowPreviews(ids, image, row_texts, {name: _column_of(source, name) for name in columns})
    return previews if columns or image is not None else with_columns(previews, _own_columns(source))


def _folder_beside(source: Source) -> str | None:
    """The folder of images that `prodsc extract` read, from NAME.folder.txt, if it still holds the images."""
    beside = None if source.path is None else source.path.with_name(f"{source.path.stem}.folder.txt")
    with suppress(OSError, UnicodeDecodeError):
        folder = Path(beside.read_text(encoding="utf-8").strip()) if beside is not None else None
        if (
            folder is not None
            and source.ids
            and (folder / source.ids[0]).is_file()
            and (folder / source.ids[-1]).is_file()
        ):
            return str(folder)
    return None


def _own_columns(source: Source) -> dict[str, NDArray[Any]]:
    """Columns that a reader of the page may want to see: further columns of the input, then its features by name."""
    columns = {name: load() for name, load in list(source.others.items())[: PREVIEW_LIMITS.n_columns]}
    columns = {name: values for name, values in columns.items() if values.shape == (len(source.X),)}
    names = source.columns if source.X.ndim == 2 and are_words(source.columns) else None
    room = PREVIEW_LIMITS.n_columns - len(columns)
    if names is not None and len(source.X) * 4 * min(room, len(names)) <= PREVIEW_LIMITS.column_bytes:
        some = np.asarray(source.X[:, :room]) if room > 0 else np.empty((0, 0))
        columns |= {name: some[:, j] for j, name in enumerate(names[:room])}
    return columns


def _open_images(source: str) -> Items:
    info = DATASETS.get(source)
    if info is not None and info.image is not None and info.make is not None:  # its rows are flattened images
        flat = info.make()[0]
        return Items("images", [str(i) for i in range(len(flat))], row_images(flat, info.image), "")
    items = open_items(source)
    if items.kind != "images":
        raise InputError(f"--images {source} holds {items.kind}; give a folder or file of images, or use --texts.")
    return items


def _item_of_each_row(items: Items, ids: Sequence[str] | None, n: int, option: str, source: str) -> list[int]:
    """Which item belongs to each row: by name when the file has names that match, else by position."""
    if ids is not None:
        places = {name: i for i, name in enumerate(items.ids)}
        if all(name in places for name in ids):
            return [places[name] for name in ids]
    if len(items) != n:
        raise InputError(
            f"{option} {source} has {len(items):,} {items.kind} for {n:,} rows; give one for each row, in their order, "
            "or fit a file that `prodsc extract` made, which knows the names."
        )
    return list(range(n))


def _text(items: Items, i: int) -> str:
    try:
        return str(items.load(i))
    except InputError:  # a blank text: there is nothing to show
        return ""


def _column_of(source: Source, name: str) -> NDArray[Any]:
    """A column of X by its name or number, or another array or column of the file."""
    X, names, path = source.X, source.columns, source.path
    if names is not None and name in names:
        return np.asarray(X[:, names.index(name)])
    if name.isdecimal() and X.ndim == 2 and int(name) < X.shape[1]:
        return np.asarray(X[:, int(name)])
    column = source.others[name]() if name in source.others else None
    if column is None and path is not None and path.is_file():
        column = read_array(path, name)
    if column is None or column.shape != (len(X),):
        known = list(names or ())
        there = f"it has {len(known)} named columns" if known else f"its columns are 0 to {X[0].size - 1}"
        raise InputError(
            f"{source.location} has no column '{name}' with one value per row ({there})"
            f"{did_you_mean(name, known) or '.'}"
        )
    return column


def row_images(X: np.ndarray, shape: tuple[int, ...] | None = None) -> Callable[[int], Image.Image]:
    """A function from row number to image: bytes as they are, other numbers from black (smallest) to white."""
    whole = X.reshape(len(X), *shape) if shape is not None else X
    if whole.ndim not in (3, 4):
        raise InputError(f"rows of shape {whole.shape[1:]} are no images; they need height and width (and channels).")
    some = whole[:: max(1, len(whole) // 1000)]
    low, high = (0.0, 255.0) if X.dtype == np.uint8 else (float(some.min()), float(some.max()))

    def image(row: int) -> Image.Image:
        x = np.asarray(whole[row], dtype=np.float64)
        if x.ndim == 3 and x.shape[0] in (1, 3) and x.shape[2] not in (1, 3):
            x = x.transpose(1, 2, 0)
        grey = np.clip((x - low) / ((high - low) or 1.0) * 255, 0, 255).astype(np.uint8)
        return Image.fromarray(grey[..., 0] if grey.shape[2:] == (1,) else grey)

    return image


@dataclass(frozen=True)
class Sprites:
    """Thumbnails side by side in sheets of `PREVIEW_LIMITS.per_sheet`; thumbnail i is of row rows[i]."""

    rows: list[int]
    tile: tuple[int, int]  # width and height
    sheets: list[tuple[str, bytes]]  # media type and content


def make_sprites(
    image: Callable[[int], Image.Image],
    first: Iterable[int],
    n: int,
    budget: int = PREVIEW_LIMITS.image_bytes,
    seed: int = 0,
) -> Sprites:
    """Thumbnails of the rows in `first`, then of other rows in random order, up to `budget` bytes."""
    order = list(dict.fromkeys(first))
    known = set(order)
    order += [int(row) for row in np.random.default_rng(seed).permutation(n) if row not in known]
    tile = _tile([image(row) for row in order[:: max(1, n // 16)][:16]], n, budget)
    sheets: list[tuple[str, bytes]] = []
    spent = 0
    for start in range(0, n, PREVIEW_LIMITS.per_sheet):
        rows = order[start : start + PREVIEW_LIMITS.per_sheet]
        sheet = _sheet([_fitted(image(row), tile) for row in rows], tile)
        if sheets and spent + len(sheet[1]) > budget:
            break
        sheets.append(sheet)
        spent += len(sheet[1])
    return Sprites(order[: len(sheets) * PREVIEW_LIMITS.per_sheet], tile, sheets)


def large_images(image: Callable[[int], Image.Image], rows: Iterable[int], tile: tuple[int, int]) -> dict[int, Any]:
    """Large images of some rows, as far as `PREVIEW_LIMITS.large_bytes` go: media type and content by row.

    Parameters
    ----------
    image : callable
        From row to image.
    rows : iterable of int
        Those that are wanted, the most important first.
    tile : (int, int)
        Size of the thumbnails; an image that is no larger has no large form.
    """
    made: dict[int, Any] = {}
    left = PREVIEW_LIMITS.large_bytes
    for row in dict.fromkeys(rows):
        picture = image(row)
        if max(picture.size) <= max(tile):
            continue
        picture = picture if picture.mode in ("L", "RGB") else picture.convert("RGB")
        picture.thumbnail((PREVIEW_LIMITS.large_side, PREVIEW_LIMITS.large_side))
        made[row] = _encoded(picture)
        left -= len(made[row][1])
        if left < 0:
            break
    return made


def short(text: str, length: int = PREVIEW_LIMITS.text_length) -> str:
    """A text as a page shows it: on one line, cut to `length` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= length else line[: length - 1] + "…"


def _tile(samples: Sequence[Image.Image], n: int, budget: int) -> tuple[int, int]:
    """The size of a thumbnail: the largest at which all rows fit the budget, and never larger than the image."""
    size = samples[0].size
    for most in (128, 96, 64, 48, 32):
        scale = min(1.0, most / max(size))
        tile = max(1, round(size[0] * scale)), max(1, round(size[1] * scale))
        cost = len(_sheet([_fitted(sample, tile) for sample in samples], tile)[1]) / len(samples)
        if n * cost <= budget:
            break
    return tile


def _fitted(image: Image.Image, tile: tuple[int, int]) -> Image.Image:
    plain = image if image.mode in ("L", "RGB") else image.convert("RGB")
    return plain if plain.size == tile else ImageOps.pad(plain, tile, Image.Resampling.LANCZOS, color=0)


def _sheet(tiles: Sequence[Image.Image], tile: tuple[int, int]) -> tuple[str, bytes]:
    mode = "L" if all(t.mode == "L" for t in tiles) else "RGB"
    lines = -(-len(tiles) // PREVIEW_LIMITS.per_line)
    sheet = Image.new(mode, (PREVIEW_LIMITS.per_line * tile[0], lines * tile[1]))
    for i, each in enumerate(tiles):
        sheet.paste(each, (i % PREVIEW_LIMITS.per_line * tile[0], i // PREVIEW_LIMITS.per_line * tile[1]))
    return _encoded(sheet)


def _encoded(picture: Image.Image) -> tuple[str, bytes]:
    """Media type and content: line drawings are smaller and sharper as PNG, photographs as JPEG."""
    kinds = {"image/png": {"format": "png", "optimize": True}, "image/jpeg": {"format": "jpeg", "quality": 80}}
    made = []
    for kind, how in kinds.items():
        buffer = io.BytesIO()
        picture.save(buffer, **how)  # type: ignore[arg-type]
        made.append((kind, buffer.getvalue()))
    return min(made, key=lambda pair: len(pair[1]))
