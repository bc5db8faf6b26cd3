"""The numbers that the paper prints, as facts: published.csv holds one row per number of its tables of results.

They are the authors' numbers, never ours, in the units they are printed in (ACC and NMI in percent). A cell that the
paper leaves empty has no row.
"""

import csv
import io
import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cache
from importlib import resources

from prodsc.errors import InputError, ParameterError, did_you_mean

UNITS = {"ACC": "%", "NMI": "%", "seconds": "s", "MiB": "MiB"}  # by metric
FAILURES = ("OOM", "OOT")  # out of memory, out of time
ORIGINS = ("run", "cited", "")  # by the authors, taken from elsewhere, not stated


@dataclass(frozen=True)
class PublishedNumber:
    """One number of the paper, or one failure in its place."""

    table: str  # our name of the table
    number: str  # its number in the paper: 1 to 3, B.3 to B.10
    label: str  # its LaTeX label
    dataset: str  # the name of our recipe
    method: str  # what gives the labels
    variant: str  # key=value, where a table shows one method in several forms: features, terms, k, backbone, version
    metric: str
    unit: str
    value: float | None  # None when the run failed
    std: float | None  # None when none is printed
    origin: str  # one of ORIGINS
    reference: str  # for a number not run by the authors, the bibliography key that the paper names beside it
    note: str = ""
    failure: str = ""  # one of FAILURES, else empty


COLUMNS = tuple(field.name for field in fields(PublishedNumber) if field.name != "failure")
REQUIRED_COLUMNS = ("table", "number", "label", "dataset", "method", "metric", "unit", "value")
KEY = ("table", "dataset", "method", "variant", "metric")  # names one number


def published(
    table: str | None = None, dataset: str | None = None, method: str | None = None, metric: str | None = None
) -> list[PublishedNumber]:
    """The published numbers that match every given name.

    Parameters
    ----------
    table, dataset, method, metric : str, optional
        Names as in published.csv.

    Returns
    -------
    list of PublishedNumber
        In the paper's order; empty when the paper has no number for a combination.

    Raises
    ------
    ParameterError
        If a name is unknown.
    """
    rows = _all()
    for column, wanted in (("table", table), ("dataset", dataset), ("method", method), ("metric", metric)):
        if wanted is None:
            continue
        known = _distinct(column)
        if wanted not in known:
            raise ParameterError(
                f"no published number has the {column} '{wanted}'{did_you_mean(wanted, known) or '.'} "
                f"Known: {', '.join(known)}."
            )
        rows = tuple(row for row in rows if getattr(row, column) == wanted)
    return list(rows)


def tables() -> list[str]:
    """Our names of the paper's tables of results, in the paper's order."""
    return _distinct("table")


def parse(text: str, origin: str) -> tuple[PublishedNumber, ...]:
    """The rows of a file of published numbers; `origin` names the file in errors."""
    lines = csv.reader(io.StringIO(text), strict=True)
    seen: dict[tuple[str, ...], int] = {}
    rows = []
    try:
        header = next(lines, [])
        if tuple(header) != COLUMNS:
            raise InputError(f"{origin}: the header must be {','.join(COLUMNS)}, got {','.join(header)}.")
        for cells in lines:
            row = _row(cells, f"{origin}, line {lines.line_num}")
            first = seen.setdefault(tuple(getattr(row, name) for name in KEY), lines.line_num)
            if first != lines.line_num:
                raise InputError(f"{origin}, line {lines.line_num}: repeats line {first}. Keep one, or set a variant.")
            rows.append(row)
    except csv.Error as error:
        raise InputError(f"{origin}, line {lines.line_num}: not valid CSV ({error}).") from error
    return tuple(rows)


def _row(cells: Sequence[str], where: str) -> PublishedNumber:
    if len(cells) != len(COLUMNS):
        raise InputError(f"{where}: {len(COLUMNS)} cells are needed, got {len(cells)}. Quote a cell with a comma.")
    cell = dict(zip(COLUMNS, cells, strict=True))
    for name, content in cell.items():
        if content != content.strip():
            raise InputError(f"{where}: {name} '{content}' begins or ends with a space. Remove it.")
        if name in REQUIRED_COLUMNS and not content:
            raise InputError(f"{where}: {name} is empty. Leave the whole row out if the paper gives no number.")
    if cell["metric"] not in UNITS:
        raise InputError(f"{where}: metric must be one of {', '.join(UNITS)}, got '{cell['metric']}'.")
    if cell["unit"] != UNITS[cell["metric"]]:
        raise InputError(f"{where}: {cell['metric']} is in {UNITS[cell['metric']]}, got '{cell['unit']}'.")
    if cell["origin"] not in ORIGINS:
        raise InputError(f"{where}: origin must be run, cited or empty, got '{cell['origin']}'.")
    failure = cell["value"] if cell["value"] in FAILURES else ""
    if failure and cell["std"]:
        raise InputError(f"{where}: a failed run ({failure}) has no std, got '{cell['std']}'. Leave it empty.")
    value = None if failure else _number("value", cell["value"], where)
    std = _number("std", cell["std"], where) if cell["std"] else None
    texts = {name: content for name, content in cell.items() if name not in ("value", "std")}
    return PublishedNumber(**texts, value=value, std=std, failure=failure)


def _number(name: str, content: str, where: str) -> float:
    try:
        number = float(content)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= 0):
        also = f", {' or '.join(FAILURES)}" if name == "value" else ""
        raise InputError(f"{where}: {name} must be a number of at least 0{also}, got '{content}'.")
    return number


def _distinct(column: str) -> list[str]:
    return list(dict.fromkeys(getattr(row, column) for row in _all()))


@cache
def _all() -> tuple[PublishedNumber, ...]:
    file = resources.files("prodsc.paper") / "published.csv"
    return parse(file.read_text(encoding="utf-8"), file.name)
