"""One self-contained HTML page: facts, tables and pictures in a file that opens from disk without a network."""

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from jinja2 import Environment, StrictUndefined
from matplotlib.figure import Figure
from PIL import Image  # comes with matplotlib

from prodsc.files import write_text

DPI = 150  # sharp on paper and on a dense screen, and a page of five figures stays below 1 MB


@dataclass(frozen=True)
class Table:
    """A caption, the heads of the columns, and rows of cells that are already text; the first cell names the row."""

    caption: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    def __post_init__(self) -> None:
        for i, row in enumerate(self.rows):
            if len(row) != len(self.columns):
                raise ValueError(
                    f"table {self.caption!r}: row {i} has {len(row)} cells for {len(self.columns)} columns"
                )


def write_page(
    path: str | Path,
    *,
    title: str,
    facts: Mapping[str, str],
    tables: Sequence[Table] = (),
    figures: Sequence[tuple[Figure, str, str]] = (),
) -> None:
    """Write the page, whole or not at all. `figures` are (figure, heading, caption); all text is escaped."""
    write_text(path, render_page(title=title, facts=facts, tables=tables, figures=figures))


def render_page(
    *,
    title: str,
    facts: Mapping[str, str],
    tables: Sequence[Table] = (),
    figures: Sequence[tuple[Figure, str, str]] = (),
) -> str:
    """The page as text."""
    source = resources.files("prodsc.report").joinpath("page.html.jinja").read_text(encoding="utf-8")
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    pictures = [
        {"heading": heading, "caption": caption, "alt": figure.get_label() or heading, "png": _png(figure)}
        for figure, heading, caption in figures
    ]
    page = environment.from_string(source).render(title=title, facts=facts, tables=tables, pictures=pictures)
    # A file name that is not UTF-8 reaches Python as lone surrogates, which cannot be written.
    return page.encode("utf-8", errors="replace").decode("utf-8")


def _png(figure: Figure) -> str:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    # 256 colours make a heat map four times smaller, and no pixel is off by more than a tenth. Saving again also drops
    # matplotlib's version from the file, so that the same figure gives the same bytes.
    full = Image.open(buffer).convert("RGB")
    small = io.BytesIO()
    few = full.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=1, dither=Image.Dither.NONE)
    few.save(small, format="png", optimize=True)
    return base64.b64encode(small.getvalue()).decode("ascii")
