"""What the page's script needs to know of the rows, compact: arrays of numbers as base64, words as JSON."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodsc.report import drawing
from prodsc.report.looks import ACROSS, SHEET, TEXT_BYTES, Looks, Sprites, short, sprites
from prodsc.report.style import COLOURS, COLOURS_ON_DARK

KINDS = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "f32": np.float32}
EDGE = 0.02  # of the map that stays empty all around


@dataclass(frozen=True)
class Shown:
    """The rows on the page: all of them, or a sample. Everything else on the page numbers them 0 to len(rows) - 1."""

    rows: NDArray[np.intp]  # their numbers in X
    places: drawing.Floats
    labels: NDArray[np.intp]
    confidence: drawing.Floats
    second: NDArray[np.intp]  # the cluster a row would go to otherwise
    sizes: Sequence[int]  # of the clusters, all rows counted
    looks: Looks  # numbered as X
    truth: NDArray[np.intp] | None = None
    classes: Sequence[str] = ()
    elsewhere: NDArray[np.intp] | None = None  # the cluster of another fit, by the names of this one

    def name(self, i: int) -> str:
        return self.looks.name(int(self.rows[i]))

    def texts(self) -> list[str] | None:
        return None if self.looks.texts is None else [short(self.looks.texts[row]) for row in self.rows]


def map_data(shown: Shown, needed: Sequence[int]) -> tuple[dict[str, Any], list[str]]:
    """The data, and what a reader must know of what was left out; rows in `needed` have their picture and text."""
    plane = unit_square(shown.places)
    k, n = len(shown.sizes), len(shown.rows)
    notes = []
    texts: list[str | None] | None = list(shown.texts() or []) or None
    if texts is not None and sum(len(t or "") for t in texts) > TEXT_BYTES:
        mean = sum(len(t or "") for t in texts) / n
        kept = {*needed, *np.random.default_rng(0).permutation(n)[: int(TEXT_BYTES / mean)].tolist()}
        texts = [text if i in kept else None for i, text in enumerate(texts)]
        notes.append(f"Texts are shown for {len(kept):,} of {n:,} rows, to keep this file small.")
    found: Sprites | None = None
    if shown.looks.image is not None:
        load, rows = shown.looks.image, shown.rows
        found = sprites(lambda i: load(int(rows[i])), needed, n)
        if len(found.rows) < n:
            notes.append(f"Thumbnails are shown for {len(found.rows):,} of {n:,} rows, to keep this file small.")
    data = {
        "k": k,
        "sizes": [int(size) for size in shown.sizes],
        "x": packed(np.round(plane[:, 0] * 65535), "u16"),
        "y": packed(np.round(plane[:, 1] * 65535), "u16"),
        "centres": packed(_centres(plane, shown.labels, k).reshape(-1), "f32"),
        "label": packed(shown.labels, _narrow(k)),
        "second": packed(shown.second, _narrow(k)),
        "confidence": packed(np.round(np.clip(shown.confidence, 0, 1) * 255), "u8"),
        "rows": None if (shown.rows == np.arange(n)).all() else packed(shown.rows, "u32"),
        "ids": None if shown.looks.ids is None else [shown.name(i) for i in range(n)],
        "texts": texts,
        "columns": [_column(name, values[shown.rows]) for name, values in shown.looks.columns.items()],
        "truth": None if shown.truth is None else packed(shown.truth, _narrow(len(shown.classes))),
        "classes": list(shown.classes),
        "elsewhere": None if shown.elsewhere is None else packed(shown.elsewhere, _narrow(k + 1)),
        "sprites": None if found is None else _sprite_data(found),
        "colours": COLOURS,
        "coloursOnDark": COLOURS_ON_DARK,
    }
    return data, notes


def packed(values: NDArray[Any], kind: str) -> dict[str, str]:
    """Little-endian numbers as base64; the script knows the kinds by the same names."""
    array = np.ascontiguousarray(values).astype(np.dtype(KINDS[kind]).newbyteorder("<"))
    return {"kind": kind, "data": base64.b64encode(array.tobytes()).decode("ascii")}


def unit_square(places: drawing.Floats) -> drawing.Floats:
    """The plane moved and scaled into the unit square with a margin, its proportions kept."""
    low, high = places.min(axis=0), places.max(axis=0)
    span = float((high - low).max()) or 1.0
    return 0.5 + (places - (low + high) / 2) / span * (1 - 2 * EDGE)


def _centres(plane: drawing.Floats, labels: NDArray[np.intp], k: int) -> drawing.Floats:
    """Where the number of each cluster stands: the row nearest the median, so that it is never beside a crescent."""
    centres = np.full((k, 2), -1.0)
    for c in np.unique(labels):
        mine = plane[labels == c]
        centres[c] = mine[np.argmin(np.square(mine - np.median(mine, axis=0)).sum(axis=1))]
    return centres


def _column(name: str, values: NDArray[Any]) -> dict[str, Any]:
    if values.dtype.kind in "biuf" and np.isfinite(values.astype(np.float64)).all():
        return {"name": name, "numbers": packed(values, "f32")}
    return {"name": name, "words": [short(str(value)) for value in values.tolist()]}


def _sprite_data(found: Sprites) -> dict[str, Any]:
    return {
        "rows": packed(np.array(found.rows), "u32"),
        "count": len(found.rows),
        "tile": found.tile,
        "across": ACROSS,
        "perSheet": SHEET,
        "sheets": [(kind, base64.b64encode(content).decode("ascii")) for kind, content in found.sheets],
    }


def _narrow(k: int) -> str:
    return "u8" if k <= 256 else "u16"
