"""A figure into a file: PNG, SVG or PDF by its ending, the same bytes for the same figure."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from prodsc import files
from prodsc.errors import OutputError
from prodsc.report.style import style

SUFFIXES = (".png", ".svg", ".pdf")
DPI = 200  # of a PNG, and of the heat maps inside the other two


def save_figure(figure: Figure, path: str | Path, dpi: int = DPI) -> Path:
    """Write the figure, whole or not at all; its alternative text travels in the file's metadata."""
    path = Path(path)
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise OutputError(f"{path} must end in {', '.join(SUFFIXES)}; the ending says what is written.")
    title, words = figure.get_suptitle(), str(figure.get_label())
    about: dict[str, Any] = {  # dates and versions are left out: they would make every file differ
        ".png": {"Title": title, "Description": words, "Software": None},
        ".svg": {"Title": title, "Description": words, "Date": None},
        ".pdf": {"Title": title, "Subject": words, "CreationDate": None},
    }[suffix]
    with style(), files.atomic(path) as part:
        figure.savefig(part, format=suffix[1:], dpi=dpi, metadata=about)
    return path
