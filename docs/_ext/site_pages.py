"""Pages that are made or moved when the site is built: tables from measurements, and the documents of the root."""

import os
import re
import runpy
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1]
ROOT = DOCS.parent
GENERATED = DOCS / "_generated"  # included by pages; not .md, since these files are not written by people
ROOT_PAGES = {  # page of the site -> document of the root that it shows
    "project/contributing": "CONTRIBUTING.md",
    "project/architecture": "ARCHITECTURE.md",
    "project/changelog": "CHANGELOG.md",
    "project/conduct": "CODE_OF_CONDUCT.md",
    "project/security": "SECURITY.md",
}
PAGE_OF = {document: page for page, document in ROOT_PAGES.items()} | {"README.md": "index"}
GALLERY_SECTIONS = ("start", "data", "trust", "methods", "share")


def by_section(folder: str) -> int:
    """The place of a section of the gallery."""
    return GALLERY_SECTIONS.index(Path(folder).name)


def write_tables(app: Any) -> None:
    """Tables and plots that come from measurements, so that a page never disagrees with its file."""
    choosing = runpy.run_path(str(ROOT / "benchmarks" / "choosing.py"))
    GENERATED.mkdir(exist_ok=True)
    (GENERATED / "which_when.txt").write_text(choosing["which_when"]() + "\n", encoding="utf-8")
    history = runpy.run_path(str(ROOT / "benchmarks" / "history.py"))
    text = history["page"](GENERATED, "../_generated")
    (GENERATED / "speed_over_time.txt").write_text(text, encoding="utf-8")


def show_root_document(app: Any, docname: str, source: list[str]) -> None:
    """Put the text of a document of the root into its page, and turn links to such documents into links to pages."""
    folder = DOCS / Path(docname).parent
    text, home = source[0], folder
    if docname in ROOT_PAGES:
        text, home = (ROOT / ROOT_PAGES[docname]).read_text(encoding="utf-8"), ROOT
    text = re.sub(r"\]\(([^)\s]+)\)", lambda match: f"]({moved_link(match[1], home, folder)})", text)
    source[0] = text.replace("```layers\n", "```text\n") + (notes_menu() if docname == "notes/README" else "")


def notes_menu() -> str:
    """A hidden list of all notes, which the menu beside the page shows."""
    names = sorted(path.stem for path in (DOCS / "notes").glob("*.md") if path.stem != "README")
    return "\n\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n"


def moved_link(link: str, home: Path, folder: Path) -> str:
    """A link of a document in `home`, as a page in `folder` has to write it."""
    target, mark, anchor = link.partition("#")
    if re.match(r"[a-z]+:", link) or not target:
        return link
    path = (home / target).resolve()
    name = path.relative_to(ROOT).as_posix()
    if name in PAGE_OF:
        path = DOCS / f"{PAGE_OF[name]}.md"
    return os.path.relpath(path, folder).replace(os.sep, "/") + mark + anchor


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("builder-inited", write_tables)
    app.connect("source-read", show_root_document)
    return {"parallel_read_safe": True}
