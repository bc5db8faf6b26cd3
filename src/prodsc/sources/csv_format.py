"""How a file of text must be read: delimiter, decimal point and header, judged by its first rows."""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

from prodsc.errors import InputError
from prodsc.sources.arrays import LABEL_NAMES, listed
from prodsc.sources.arrow import pa

DECIMAL_COMMA = re.compile(r"[+-]?\d+,\d+([eE][+-]?\d+)?")
ROWS_LOOKED_AT = 100  # for decimal commas: the first numbers may be whole


@dataclass(frozen=True)
class CsvFormat:
    """How pyarrow must read a file of text, judged by its first rows."""

    read: pa.csv.ReadOptions
    parse: pa.csv.ParseOptions
    decimal_point: str
    header: bool
    notes: tuple[str, ...] = ()


def csv_format(path: Path) -> CsvFormat:
    """How pyarrow must read a file of text: delimiter, decimal point, header.

    Parameters
    ----------
    path : Path
        The file; its first rows decide.

    Returns
    -------
    CsvFormat
    """
    text = _check_text(path)
    with path.open(encoding="utf-8-sig" if text.encoding == "utf-8" else text.encoding, newline="") as file:
        first = file.readline()
        file.seek(0)
        delimiter = "\t" if path.suffix.lower() == ".tsv" else _delimiter(first)
        looked_at = list(islice((row for row in csv.reader(file, delimiter=delimiter) if row), ROWS_LOOKED_AT))
    if not looked_at:
        raise InputError(f"{path} holds no rows, only blank lines; write it again.")
    cells = (cell.strip() for row in looked_at for cell in row)
    decimal_comma = delimiter != "," and any(DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    rows = [[cell.replace(",", ".") if decimal_comma else cell for cell in row] for row in looked_at[:2]]
    counted = _counts_up(rows)
    header = counted or _has_header(rows)
    names = None if header else [f"f{j}" for j in range(len(rows[0]))]
    block = max(2**20, 4 * sum(len(cell) + 1 for row in rows for cell in row))  # pyarrow wants whole rows in a block
    note = (
        f"the first row of {path} ({listed(rows[0], 3)}) counts up, so that it is taken for the names of the columns; "
        "if it is data, write names above it."
    )
    return CsvFormat(
        pa.csv.ReadOptions(column_names=names, block_size=block, encoding=text.encoding),
        pa.csv.ParseOptions(delimiter=delimiter, newlines_in_values=text.quoted),
        "," if decimal_comma else ".",
        header,
        (*text.notes, *((note,) if counted else ())),
    )


@dataclass(frozen=True)
class _TextFacts:
    """What a file of text is like."""

    encoding: str
    quoted: bool  # only then can a cell have a line end in it
    notes: tuple[str, ...] = ()


def _check_text(path: Path) -> _TextFacts:
    """A NUL would be taken for a part of a number or name. What is not UTF-8 is taken for what Excel writes."""
    position, quoted, utf8 = 0, False, True
    decoder = codecs.getincrementaldecoder("utf-8")()
    with path.open("rb") as file:
        while block := file.read(2**20):
            if (at := block.find(b"\0")) >= 0:
                raise InputError(
                    f"{path} has a NUL byte at position {position + at}, so that it is not text in UTF-8; "
                    "save it as CSV in UTF-8 again."
                )
            position += len(block)
            quoted = quoted or b'"' in block
            utf8 = utf8 and _decodes(decoder, block)
    if utf8:
        return _TextFacts("utf-8", quoted)
    note = f"{path} is not UTF-8 and is read as Windows-1252, as Excel writes; save it as 'CSV UTF-8' if it looks odd."
    return _TextFacts("cp1252", quoted, (note,))


def _decodes(decoder: codecs.IncrementalDecoder, block: bytes) -> bool:
    try:
        decoder.decode(block)
    except UnicodeDecodeError:
        return False
    return True


def _delimiter(first: str) -> str:
    """A semicolon if it divides the first line; commas beside it must then be decimal commas."""
    cells = [cell.strip() for cell in first.split(";")]
    numbers = all("," not in cell or DECIMAL_COMMA.fullmatch(cell) for cell in cells)
    return ";" if len(cells) > 1 and numbers else ","


def _counts_up(rows: Sequence[Sequence[str]]) -> bool:
    """Is the first row names that are numbers: 1,2,3 or years? The second must not be such a row too.

    Zero is left to `_has_header`: pandas writes 0,1,2 above an array.
    """

    def counts(row: Sequence[str]) -> bool:
        cells = [cell.strip() for cell in row]
        if len(cells) < 3 or not all(cell.isdecimal() and len(cell) < 10 for cell in cells):
            return False
        numbers = [int(cell) for cell in cells]
        steps = {after - before for before, after in pairwise(numbers)}
        years = numbers[0] >= 1900 and numbers[-1] <= 2100 and min(steps) > 0
        return numbers[0] > 0 and (steps == {1} or years)

    return len(rows) > 1 and counts(rows[0]) and not counts(rows[1])


def _has_header(rows: Sequence[Sequence[str]]) -> bool:
    """Is the first row names? It is if it names labels, has text above a number, has only text, or counts 0, 1, 2..."""
    first = [cell.strip() for cell in rows[0]]
    below = [cell.strip() for cell in rows[-1]] if len(rows) > 1 else []
    counted = [str(i) for i in range(len(first))]  # the header that pandas gives to an array
    if first == counted:
        return len(first) > 2 or any("." in cell for cell in below)  # 0,1 alone may well be data
    return (
        first == ["", *counted[:-1]]
        or any(cell in LABEL_NAMES for cell in first)
        or any(not _is_number(a) and _is_number(b) and b for a, b in zip(first, below, strict=False))
        or (len(first) > 1 and not any(_is_number(cell) for cell in first))
    )


def _is_number(cell: str) -> bool:
    with suppress(ValueError):
        return cell in ("", "NA", "null") or float(cell) is not None
    return False
