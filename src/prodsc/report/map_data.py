"""The rows as the script of the page reads them: arrays of numbers as base64, texts as JSON."""

import base64
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from prodsc.report import drawing
from prodsc.report.previews import PREVIEW_LIMITS, RowPreviews, Sprites, large_images, make_sprites, short
from prodsc.report.style import COLOURS, COLOURS_ON_DARK

KINDS = {"u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "f32": np.float32}


@dataclass(frozen=True)
class PageRows:
    """The rows on the page: all of them, or a sample. The page numbers them 0 to len(rows) - 1."""

    rows: NDArray[np.intp]  # row numbers in X
    places: drawing.Floats
    labels: NDArray[np.intp]
    confidence: drawing.Floats
    second: NDArray[np.intp]  # the second most probable cluster of each row
    sizes: Sequence[int]  # of the clusters, over all rows of X
    previews: RowPreviews  # of all rows of X
    truth: NDArray[np.intp] | None = None
    classes: Sequence[str] = ()
    names: Sequence[str] = ()  # of the clusters
    outlier: drawing.Floats | None = None
    elsewhere: NDArray[np.intp] | None = None  # the cluster of another fit, as the matching cluster of this one

    def titles(self) -> list[str]:
        """The name of each cluster."""
        return list(self.names) or [f"cluster {c}" for c in range(len(self.sizes))]

    def name(self, i: int) -> str:
        return self.previews.name(int(self.rows[i]))

    def texts(self, length: int = PREVIEW_LIMITS.text_length) -> list[str] | None:
        return None if self.previews.texts is None else [short(self.previews.texts[row], length) for row in self.rows]


def map_data(
    page_rows: PageRows, needed: Sequence[int], exemplars: Sequence[int] = ()
) -> tuple[dict[str, Any], list[str]]:
    """What the script of the page reads.

    Parameters
    ----------
    page_rows : PageRows
        The rows on the page.
    needed : sequence of int
        Rows that must have their image and text; others have them as far as space allows.
    exemplars : sequence of int, optional
        The most typical row of each cluster, -1 where there is none.

    Returns
    -------
    data : dict
        JSON values.
    notes : list of str
        Sentences about what was left out.
    """
    plane = unit_square(page_rows.places)
    k, n = len(page_rows.sizes), len(page_rows.rows)
    notes = []
    texts: list[str | None] | None = list(page_rows.texts(PREVIEW_LIMITS.searched_length) or []) or None
    if texts is not None and sum(len(t or "") for t in texts) > PREVIEW_LIMITS.text_bytes:
        mean = sum(len(t or "") for t in texts) / n
        kept = {*needed, *np.random.default_rng(0).permutation(n)[: int(PREVIEW_LIMITS.text_bytes / mean)].tolist()}
        texts = [text if i in kept else None for i, text in enumerate(texts)]
        notes.append(f"Texts are shown for {len(kept):,} of {n:,} rows, to keep this file small.")
    thumbnails: Sprites | None = None
    large: dict[int, Any] = {}
    if page_rows.previews.image is not None:
        load, rows = page_rows.previews.image, page_rows.rows
        thumbnails = make_sprites(lambda i: load(int(rows[i])), needed, n)
        large = large_images(lambda i: load(int(rows[i])), needed, thumbnails.tile)
        if len(thumbnails.rows) < n:
            notes.append(f"Thumbnails are shown for {len(thumbnails.rows):,} of {n:,} rows, to keep this file small.")
    data = {
        "k": k,
        "sizes": [int(size) for size in page_rows.sizes],
        "exemplars": list(exemplars) or [-1] * k,
        "names": page_rows.titles(),
        "outlier": None if page_rows.outlier is None else packed(np.round(page_rows.outlier * 255), "u8"),
        "large": {
            str(row): (kind, base64.b64encode(content).decode("ascii")) for row, (kind, content) in large.items()
        },
        "x": packed(np.round(plane[:, 0] * 65535), "u16"),
        "y": packed(np.round(plane[:, 1] * 65535), "u16"),
        "centres": packed(_centres(plane, page_rows.labels, k).reshape(-1), "f32"),
        "label": packed(page_rows.labels, _narrow(k)),
        "second": packed(page_rows.second, _narrow(k)),
        "confidence": packed(np.round(np.clip(page_rows.confidence, 0, 1) * 255), "u8"),
        "rows": None if (page_rows.rows == np.arange(n)).all() else packed(page_rows.rows, "u32"),
        "ids": None if page_rows.previews.ids is None else [page_rows.name(i) for i in range(n)],
        "texts": texts,
        "columns": [_column(name, values[page_rows.rows]) for name, values in page_rows.previews.columns.items()],
        "truth": None if page_rows.truth is None else packed(page_rows.truth, _narrow(len(page_rows.classes))),
        "classes": [short(name) for name in page_rows.classes],
        "elsewhere": None if page_rows.elsewhere is None else packed(page_rows.elsewhere, _narrow(k + 1)),
        "sprites": None if thumbnails is None else _sprite_data(thumbnails),
        "colours": COLOURS,
        "coloursOnDark": COLOURS_ON_DARK,
    }
    return data, notes


def packed(values: NDArray[Any], kind: str) -> dict[str, str]:
    """Little-endian numbers as base64; the script of the page uses the same names of kinds."""
    array = np.ascontiguousarray(values).astype(np.dtype(KINDS[kind]).newbyteorder("<"))
    return {"kind": kind, "data": base64.b64encode(array.tobytes()).decode("ascii")}


def unit_square(places: drawing.Floats, margin: float = 0.02) -> drawing.Floats:
    """The plane moved and scaled into the unit square with a margin; proportions are kept."""
    low, high = places.min(axis=0), places.max(axis=0)
    span = float((high - low).max()) or 1.0
    return 0.5 + (places - (low + high) / 2) / span * (1 - 2 * margin)


def _centres(plane: drawing.Floats, labels: NDArray[np.intp], k: int) -> drawing.Floats:
    """Where the number of each cluster is written: at the row nearest the median, so that it is always on a row."""
    centres = np.full((k, 2), -1.0)
    for c in np.unique(labels):
        members = plane[labels == c]
        centres[c] = members[np.argmin(np.square(members - np.median(members, axis=0)).sum(axis=1))]
    return centres


def _column(name: str, values: NDArray[Any]) -> dict[str, Any]:
    if values.dtype.kind in "biuf" and np.isfinite(values.astype(np.float64)).all():
        return {"name": name, "numbers": packed(values, "f32")}
    return {"name": name, "words": [short(str(value)) for value in values.tolist()]}


def _sprite_data(thumbnails: Sprites) -> dict[str, Any]:
    return {
        "rows": packed(np.array(thumbnails.rows), "u32"),
        "count": len(thumbnails.rows),
        "tile": thumbnails.tile,
        "across": PREVIEW_LIMITS.per_line,
        "perSheet": PREVIEW_LIMITS.per_sheet,
        "sheets": [(kind, base64.b64encode(content).decode("ascii")) for kind, content in thumbnails.sheets],
    }


def _narrow(k: int) -> str:
    """The smallest kind for numbers below k."""
    return "u8" if k <= 256 else "u16"
