"""Docstrings are plain text with numpydoc sections; here they become reStructuredText that Sphinx can read."""

import re
from typing import Any

from sphinx.util.inspect import safe_getattr

SECTION = re.compile(r"^-{3,}$")


def as_markup(lines: list[str]) -> list[str]:
    """Escape what only looks like markup, and show indented equations as they are written."""
    done: list[str] = []
    for number, line in enumerate(lines):
        begins = bool(line[:4] == "    " and line.strip()) and not (number and lines[number - 1].strip())
        if begins and not _inside_section(lines, number) and not _in_block(done):
            done += ["::", ""]
        done.append(line if _in_block([*done, line]) else escaped(line))
    return done


def escaped(line: str) -> str:
    """A line whose bars, asterisks and final underscores are no markup, outside of code."""
    parts = re.split(r"(`[^`\n]+`)", line)
    return "".join(part if part.startswith("`") else re.sub(r"([|*]|(?<=\w)_(?!\w))", r"\\\1", part) for part in parts)


def _inside_section(lines: list[str], number: int) -> bool:
    """Below a heading such as Parameters, where indented text describes the item before it."""
    return any(SECTION.match(line.strip()) for line in lines[:number])


def _in_block(lines: list[str]) -> bool:
    """Whether the last line belongs to a literal block."""
    for line in reversed(lines):
        if line == "::":
            return True
        if line.strip() and not line.startswith("    "):
            return False
    return False


def process(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Called for every docstring, before numpydoc."""
    lines[:] = as_markup(lines)


def own_members(fullname: str, names: list[str]) -> list[str]:
    """Those members of a class that prodsc defines, and not scikit-learn or torch."""
    module, _, cls = fullname.rpartition(".")
    owner = getattr(__import__(module, fromlist=[cls]), cls)
    found = [(name, safe_getattr(owner, name, None)) for name in names if not name.startswith("_")]
    return [n for n, member in found if str(getattr(member, "__module__", "")).startswith("prodsc")]


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("autodoc-process-docstring", process, priority=100)
    app.config.autosummary_context = {"own_members": own_members}
    return {"parallel_read_safe": True}
