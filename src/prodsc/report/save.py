"""Write a figure as PNG, SVG or PDF; the same figure gives the same bytes."""

from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from prodsc import files
from prodsc.errors import OutputError
from prodsc.report.style import style


def save_figure(figure: Figure, path: str | Path, dpi: int = 200) -> Path:
    """Write a figure to a file, with its alternative text in the metadata.

    Parameters
    ----------
    figure : Figure
        What to write.
    path : path
        Ends in .png, .svg or .pdf. The file is written completely or not at all.
    dpi : int, default=200
        Resolution of a PNG, and of heat maps in the other formats.

    Returns
    -------
    Path
    """
    path = Path(path)
    suffix = path.suffix.lower()
    title, alternative = figure.get_suptitle(), str(figure.get_label())
    metadata: dict[str, Any] = {  # dates and versions are left out: they would make every file differ
        ".png": {"Title": title, "Description": alternative, "Software": None},
        ".svg": {"Title": title, "Description": alternative, "Date": None},
        ".pdf": {"Title": title, "Subject": alternative, "CreationDate": None},
    }
    if suffix not in metadata:
        raise OutputError(f"{path} must end in {', '.join(metadata)}; the ending decides the format.")
    with style(), files.atomic(path) as part:
        figure.savefig(part, format=suffix[1:], dpi=dpi, metadata=metadata[suffix])
    return path
