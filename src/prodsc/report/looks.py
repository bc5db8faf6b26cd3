"""What a row looks like to a person: its id, its picture, its text, its columns. All of it untrusted text or pixels."""

import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps

from prodsc.errors import InputError, did_you_mean
from prodsc.extract.inputs import Items, open_items
from prodsc.sources.catalogue import DATASETS
from prodsc.sources.readers import read_array
from prodsc.sources.source import Source

MOST_TEXT = 240  # characters of a text that are shown
TEXT_BYTES = 4_000_000  # of all texts on a page; beyond, only a sample of rows has one
SHEET_BYTES = 5_000_000  # of all thumbnails, before base64 makes them a third larger
SHEET = 1024  # thumbnails in one sheet
ACROSS = 32  # thumbnails in a line of a sheet


@dataclass(frozen=True)
class Looks:
    """Every part is optional; a row has at least its number."""

    ids: Sequence[str] | None = None
    image: Callable[[int], Image.Image] | None = None
    texts: Sequence[str] | None = None
    columns: dict[str, NDArray[Any]] = field(default_factory=dict)

    def check(self, n: int) -> None:
        parts = {"ids": self.ids, "texts": self.texts, **self.columns}
        for name, values in parts.items():
            if values is not None and len(values) != n:
                raise InputError(f"{name} must have one entry per row: {n} rows, {len(values)} entries.")

    def name(self, row: int) -> str:
        return str(row) if self.ids is None else str(self.ids[row])


def open_looks(
    source: Source,
    *,
    images: str | None = None,
    texts: str | None = None,
    columns: Sequence[str] = (),
) -> Looks:
    """What can be shown of the rows: images when the rows are images or some are named, texts and columns when named.

    `images` is a folder, file or data set, `texts` a file, as `prodsc extract` takes.
    """
    X, n, ids = source.X, len(source.X), source.ids
    shape = None if source.info is None else source.info.image
    image = pictures(X, shape) if X.ndim > 2 or shape is not None else None
    if images is not None:
        found = _images(images)
        order = _rows_of(found, ids, n, "--images", images)
        image, ids = lambda row: found.load(order[row]), ids or (found.ids if found.ids[0] != "0" else None)
    words = None
    if texts is not None:
        said = open_items(texts)
        if said.kind != "texts":
            raise InputError(f"--texts {texts} holds {said.kind}; give a .txt, .csv or .parquet, or use --images.")
        order = _rows_of(said, ids, n, "--texts", texts)
        words = [_text(said, i) for i in order]
    return Looks(ids, image, words, {name: _column_of(source, name) for name in columns})


def _images(source: str) -> Items:
    about = DATASETS.get(source)
    if about is not None and about.image is not None and about.make is not None:  # a set of flat rows that are pictures
        flat = about.make()[0]
        return Items("images", [str(i) for i in range(len(flat))], pictures(flat, about.image), "")
    found = open_items(source)
    if found.kind != "images":
        raise InputError(f"--images {source} holds {found.kind}; give a folder or file of images, or use --texts.")
    return found


def _rows_of(found: Items, ids: Sequence[str] | None, n: int, option: str, source: str) -> list[int]:
    """Which item belongs to each row: by name when the file has names that match, else by position."""
    if ids is not None:
        places = {name: i for i, name in enumerate(found.ids)}
        if all(name in places for name in ids):
            return [places[name] for name in ids]
    if len(found) != n:
        raise InputError(
            f"{option} {source} has {len(found):,} {found.kind} for {n:,} rows; give one for each row, in their order, "
            "or fit a file that `prodsc extract` made, which knows the names."
        )
    return list(range(n))


def _text(found: Items, i: int) -> str:
    try:
        return str(found.load(i))
    except InputError:  # a blank text: there is nothing to show
        return ""


def _column_of(source: Source, name: str) -> NDArray[Any]:
    """A column of X by its name or number, or another array or column of the file."""
    X, names, path = source.X, source.columns, source.path
    if names is not None and name in names:
        return np.asarray(X[:, names.index(name)])
    if name.isdecimal() and X.ndim == 2 and int(name) < X.shape[1]:
        return np.asarray(X[:, int(name)])
    found = read_array(path, name) if path is not None and path.is_file() else None
    if found is None or found.shape != (len(X),):
        known = list(names or ())
        there = f"it has {len(known)} named columns" if known else f"its columns are 0 to {X[0].size - 1}"
        raise InputError(
            f"{source.location} has no column '{name}' with one value per row ({there})"
            f"{did_you_mean(name, known) or '.'}"
        )
    return found


def pictures(X: np.ndarray, shape: tuple[int, ...] | None = None) -> Callable[[int], Image.Image]:
    """Rows of X as images: bytes as they are, other numbers with the smallest black and the largest white."""
    whole = X.reshape(len(X), *shape) if shape is not None else X
    if whole.ndim not in (3, 4):
        raise InputError(f"rows of shape {whole.shape[1:]} are no images; they need height and width (and channels).")
    some = whole[:: max(1, len(whole) // 1000)]
    low, high = (0.0, 255.0) if X.dtype == np.uint8 else (float(some.min()), float(some.max()))

    def picture(row: int) -> Image.Image:
        x = np.asarray(whole[row], dtype=np.float64)
        if x.ndim == 3 and x.shape[0] in (1, 3) and x.shape[2] not in (1, 3):
            x = x.transpose(1, 2, 0)
        grey = np.clip((x - low) / ((high - low) or 1.0) * 255, 0, 255).astype(np.uint8)
        return Image.fromarray(grey[..., 0] if grey.shape[2:] == (1,) else grey)

    return picture


@dataclass(frozen=True)
class Sprites:
    """Thumbnails side by side in a few images: thumbnail i is of row rows[i], in sheet i // SHEET."""

    rows: list[int]
    tile: tuple[int, int]  # width and height
    sheets: list[tuple[str, bytes]]  # media type and content


def sprites(
    image: Callable[[int], Image.Image], first: Iterable[int], n: int, budget: int = SHEET_BYTES, seed: int = 0
) -> Sprites:
    """Thumbnails of the rows in `first`, then of others in random order until the budget is spent."""
    order = list(dict.fromkeys(first))
    known = set(order)
    order += [int(row) for row in np.random.default_rng(seed).permutation(n) if row not in known]
    tile = _tile(image(order[0]).size, n)
    sheets: list[tuple[str, bytes]] = []
    spent = 0
    for start in range(0, n, SHEET):
        rows = order[start : start + SHEET]
        sheet = _sheet([_fitted(image(row), tile) for row in rows], tile)
        if sheets and spent + len(sheet[1]) > budget:
            break
        sheets.append(sheet)
        spent += len(sheet[1])
    return Sprites(order[: len(sheets) * SHEET], tile, sheets)


def short(text: str) -> str:
    """A text as a page shows it: one line, not too long."""
    line = " ".join(str(text).split())
    return line if len(line) <= MOST_TEXT else line[: MOST_TEXT - 1] + "…"


def _tile(size: tuple[int, int], n: int) -> tuple[int, int]:
    """Never larger than the image; fewer rows may have larger pictures."""
    most = 64 if n <= 1000 else 32
    scale = min(1.0, most / max(size))
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _fitted(image: Image.Image, tile: tuple[int, int]) -> Image.Image:
    plain = image if image.mode in ("L", "RGB") else image.convert("RGB")
    return plain if plain.size == tile else ImageOps.pad(plain, tile, Image.Resampling.LANCZOS, color=0)


def _sheet(tiles: Sequence[Image.Image], tile: tuple[int, int]) -> tuple[str, bytes]:
    mode = "L" if all(t.mode == "L" for t in tiles) else "RGB"
    lines = -(-len(tiles) // ACROSS)
    sheet = Image.new(mode, (ACROSS * tile[0], lines * tile[1]))
    for i, each in enumerate(tiles):
        sheet.paste(each, (i % ACROSS * tile[0], i // ACROSS * tile[1]))
    kinds = {"image/png": {"format": "png", "optimize": True}, "image/jpeg": {"format": "jpeg", "quality": 80}}
    made = []
    for kind, how in kinds.items():  # line drawings are smaller and sharper as PNG, photographs as JPEG
        buffer = io.BytesIO()
        sheet.save(buffer, **how)  # type: ignore[arg-type]
        made.append((kind, buffer.getvalue()))
    return min(made, key=lambda pair: len(pair[1]))
