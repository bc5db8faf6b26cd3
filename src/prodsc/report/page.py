"""One self-contained HTML page: facts, tables, pictures and a map in a file that opens from disk without a network.

What comes from the data reaches the page in two ways only: through templates that escape it, and as JSON that the
page's script sets as text. The page's policy lets no other script run and nothing be fetched.
"""

import base64
import hashlib
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure
from PIL import Image  # comes with matplotlib

from prodsc.files import write_text

DPI = 150  # sharp on paper and on a dense screen, and a page of five figures stays below 1 MB


@dataclass(frozen=True)
class PageTable:
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


@dataclass(frozen=True)
class PageFigure:
    figure: Figure | Path  # or a PNG that is already there
    heading: str
    caption: str

    @property
    def words(self) -> str:
        """The alternative text: what the figure says of itself, else the heading."""
        said = self.figure.get_label() if isinstance(self.figure, Figure) else _description(self.figure)
        return str(said or self.heading)


@dataclass(frozen=True)
class PageSection:
    """A part of the page with a name to link to; several pictures in a row stand side by side where there is room."""

    name: str
    heading: str
    lead: str
    parts: Sequence["PageItem"]


PageItem = PageTable | PageFigure | Markup


def write_page(path: str | Path, **content: Any) -> None:
    """Write the page, whole or not at all; `content` is what `render_page` takes."""
    write_text(path, render_page(**content))


def render_page(
    *,
    title: str,
    facts: Mapping[str, str],
    tables: Sequence[PageTable] = (),
    figures: Sequence[tuple[Figure, str, str]] = (),
    sections: Sequence[PageSection] = (),
    data: Mapping[str, Any] | None = None,
) -> str:
    """The page as text. `figures` are (figure, heading, caption); `data` is what the map shows (see `fit_page`)."""
    loose = [*map(_part, tables), *(_part(PageFigure(*figure)) for figure in figures)]
    script = _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    page = _environment().get_template("page.html.jinja").render(
        title=title,
        facts=facts,
        loose=loose,
        sections=[
            {"name": s.name, "heading": s.heading, "lead": s.lead, "parts": _parts_of(s)} for s in sections
        ],
        css=Markup(_file("page.css")),
        data=None if data is None else Markup(_json(data)),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )  # fmt: skip
    # A file name that is not UTF-8 reaches Python as lone surrogates, which cannot be written.
    return page.encode("utf-8", errors="replace").decode("utf-8")


def component(name: str, *values: Any, **named: Any) -> Markup:
    """One of the macros in components.html.jinja, filled in."""
    return Markup(getattr(_environment().get_template("components.html.jinja").module, name)(*values, **named))


def _parts_of(section: PageSection) -> list[Markup]:
    made: list[Markup] = []
    pictures: list[Markup] = []
    for part in [*section.parts, Markup("")]:
        if isinstance(part, PageFigure):
            pictures.append(_part(part, card=False))
            continue
        if pictures:
            made.append(Markup('<div class="pictures">') + Markup("").join(pictures) + Markup("</div>"))
            pictures = []
        made.append(_part(part, card=False))
    return made


def _part(part: PageItem, card: bool = True) -> Markup:
    if isinstance(part, PageTable):
        return component("table", part, card=card)
    if isinstance(part, PageFigure):
        return component("picture", part, _png(part.figure), card=card)
    return part


def _json(data: Mapping[str, Any]) -> str:
    """JSON that can stand inside a script element: nothing in it can end the element or begin another."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("prodsc.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    made.filters["percent"] = percent
    return made


def percent(share: float) -> str:
    """Whole percents, finer near certainty: a row at 99.98 % is a border case where the others are at 100."""
    return f"{share:.0%}" if share < 0.99 else f"{share:.2%}" if share < 0.9999 else ">99.99%"


def _file(name: str) -> str:
    return resources.files("prodsc.report").joinpath(name).read_text(encoding="utf-8")


def _description(png: Path) -> str:
    with Image.open(png) as image:
        return str(image.info.get("Description", ""))


def _png(figure: Figure | Path) -> str:
    if isinstance(figure, Path):
        return base64.b64encode(figure.read_bytes()).decode("ascii")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=DPI)
    # 256 colours make a heat map four times smaller, and no pixel is off by more than a tenth. Saving again also drops
    # matplotlib's version from the file, so that the same figure gives the same bytes.
    full = Image.open(buffer).convert("RGB")
    small = io.BytesIO()
    few = full.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(small, format="png", optimize=True)
    return base64.b64encode(small.getvalue()).decode("ascii")
