"""Cells that spreadsheets would run."""

import re

# What spreadsheets take for a formula: wide signs too, which some versions for East Asia treat as the usual ones.
FORMULA = re.compile(
    r"[=@\t\r\uff1d\uff20\uff0b\uff0d].*|\n.+|[+-](?!(\d[\d.,]*([eE][+-]?\d+)?|[.,]\d+([eE][+-]?\d+)?|inf|nan)$).+",
    re.DOTALL,
)


def without_formula(cell: str) -> str:
    """Text for a cell of CSV that no spreadsheet takes for a formula: one that would be gets an apostrophe before it.

    Parameters
    ----------
    cell : str
        The text; numbers such as -1.5 stay as they are.

    Returns
    -------
    str
    """
    return f"'{cell}" if FORMULA.fullmatch(cell) else cell
