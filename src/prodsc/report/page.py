"""One self-contained HTML page: facts, tables, pictures and a map in a file that opens from disk without a network.

Text from the data reaches the page in two ways only: through templates that escape it, and as JSON that the script of
the page inserts as text. The security policy of the page allows no other script and no request.
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


@dataclass(frozen=True)
class PageTable:
    """A caption, column names, and rows of cells as text; the first cell names the row."""

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
    """A figure with a heading and a caption."""

    figure: Figure | Path  # a matplotlib figure, or a PNG file
    heading: str
    caption: str
    heat: bool = False  # whether light and dark in it have a meaning, so that a dark page must not turn them

    @property
    def alternative_text(self) -> str:
        """The label of the figure, else the heading."""
        label = self.figure.get_label() if isinstance(self.figure, Figure) else _description(self.figure)
        return str(label or self.heading)


@dataclass(frozen=True)
class PageSection:
    """A section with a name to link to; consecutive figures stand side by side where there is room."""

    name: str
    heading: str
    lead: str
    items: Sequence["PageItem"]
    folded: bool = False  # for readers who want to know more


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
    """The page as text.

    Parameters
    ----------
    title : str
        Title of the page.
    facts : mapping of str to str
        Shown under the title.
    tables : sequence of PageTable, optional
        Before the sections.
    figures : sequence of (figure, heading, caption), optional
        Before the sections.
    sections : sequence of PageSection, optional
        The content.
    data : mapping, optional
        What the map shows; see `map_data`.

    Returns
    -------
    str
    """
    loose = [*map(_render, tables), *(_render(PageFigure(*figure)) for figure in figures)]
    script = _file("page.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode("ascii")
    page = _environment().get_template("page.html.jinja").render(
        title=title,
        facts=facts,
        loose=loose,
        sections=[
            {"name": s.name, "heading": s.heading, "lead": s.lead, "parts": _rendered_items(s), "folded": s.folded}
            for s in sections
        ],
        css=Markup(_file("page.css")),
        data=None if data is None else Markup(_json(data)),
        script=Markup(script),
        script_hash=f"sha256-{digest}",
    )  # fmt: skip
    # A file name that is not UTF-8 reaches Python as lone surrogates, which cannot be written.
    return page.encode("utf-8", errors="replace").decode("utf-8")


def component(name: str, *values: Any, **named: Any) -> Markup:
    """Fill in one of the macros of components.html.jinja."""
    return Markup(getattr(_environment().get_template("components.html.jinja").module, name)(*values, **named))


def _rendered_items(section: PageSection) -> list[Markup]:
    rendered: list[Markup] = []
    pictures: list[Markup] = []
    for item in [*section.items, Markup("")]:
        if isinstance(item, PageFigure):
            pictures.append(_render(item, card=False))
            continue
        if pictures:
            rendered.append(Markup('<div class="pictures">') + Markup("").join(pictures) + Markup("</div>"))
            pictures = []
        rendered.append(_render(item, card=False))
    return rendered


def _render(item: PageItem, card: bool = True) -> Markup:
    if isinstance(item, PageTable):
        return component("table", item, card=card)
    if isinstance(item, PageFigure):
        return component("picture", item, _png(item.figure), card=card)
    return item


def _json(data: Mapping[str, Any]) -> str:
    """JSON that is safe inside a script element: nothing in it can end the element or start another."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("prodsc.report", "."), autoescape=True, undefined=StrictUndefined, trim_blocks=True,
        lstrip_blocks=True,
    )  # fmt: skip
    environment.filters["percent"] = percent
    return environment


def percent(share: float) -> str:
    """Whole percentages, with more digits near 100: a row at 99.98 % may be a border row of its cluster."""
    return f"{share:.0%}" if share < 0.99 else f"{share:.2%}" if share < 0.9999 else ">99.99%"


def _file(name: str) -> str:
    return resources.files("prodsc.report").joinpath(name).read_text(encoding="utf-8")


def _description(png: Path) -> str:
    with Image.open(png) as image:
        return str(image.info.get("Description", ""))


def _png(figure: Figure | Path, dpi: int = 120) -> str:
    """A figure as PNG in base64; at 120 dpi a page of ten figures stays below 1 MB and takes four seconds."""
    if isinstance(figure, Path):
        return base64.b64encode(figure.read_bytes()).decode("ascii")
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=dpi)
    # 256 colours make a heat map four times smaller, and no pixel is off by more than a tenth. Saving again also drops
    # matplotlib's version from the file, so that the same figure gives the same bytes.
    full = Image.open(buffer).convert("RGB")
    small = io.BytesIO()
    few = full.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE)
    few.save(small, format="png", optimize=True)
    return base64.b64encode(small.getvalue()).decode("ascii")
