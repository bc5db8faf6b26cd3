"""The page of a fit as an object of Python: it shows itself in a notebook and saves itself."""

import html
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from prodsc.errors import InputError
from prodsc.estimators.naming import Namer, NamesInput
from prodsc.files import write_text
from prodsc.report.fit_page import render_fit_page
from prodsc.report.previews import RowPreviews, open_previews, with_columns
from prodsc.sources.door import array_1d, open_source
from prodsc.sources.source import RowsInput, Source

FRAME_HEIGHT = 900  # pixels of a notebook's cell: the map and the summary below it


@dataclass(frozen=True, repr=False)
class FitReport:
    """A page about a fit.

    Parameters
    ----------
    title : str
    html : str
        The whole page.
    names : list of str
        The names of the clusters.
    """

    title: str
    html: str
    names: list[str]

    def save(self, path: str | Path) -> Path:
        """Write the page.

        Parameters
        ----------
        path : path
            An .html file.

        Returns
        -------
        Path
        """
        write_text(path, self.html)
        return Path(path)

    def __repr__(self) -> str:
        size = f"{len(self.html) / 1e6:.1f} MB"
        return f"FitReport({self.title!r}, {len(self.names)} clusters, {size}; save(path) writes it)"

    def _repr_html_(self) -> str:
        """What a notebook shows: the page in a frame of its own."""
        page = html.escape(self.html, quote=True)
        return (
            f'<iframe srcdoc="{page}" width="100%" height="{FRAME_HEIGHT}" style="border:0" '
            f'sandbox="allow-scripts allow-downloads" title="{html.escape(self.title)}"></iframe>'
        )


def make_report(
    model: Any,
    X: RowsInput,
    *,
    texts: Sequence[str] | str | None = None,
    images: str | PathLike[str] | np.ndarray | Callable[[int], Any] | None = None,
    ids: Sequence[str] | None = None,
    columns: Mapping[str, Any] | Sequence[str] | None = None,
    y: Any = None,
    names: NamesInput | None = None,
    namer: Namer | None = None,
    title: str = "Clusters",
) -> FitReport:
    """The page of a fitted model.

    Parameters
    ----------
    model : PRODSC
        Fitted.
    X : array, tensor, frame, memory map, path or Source
        The rows of the fit. A Source may bring ids, texts and known labels.
    texts : sequence of str, path, or None
        The text of each row.
    images : folder, file, array of images, function from row to image, or None
        The image of each row.
    ids : sequence of str or None
        The name of each row.
    columns : mapping from name to values, sequence of names, or None
        What else to show with each row and to colour the map by; names are those of columns of X. A table with
        named columns shows them by default.
    y : array of shape (n,) or None
        Known classes, only to score.
    names : mapping, sequence of str, path or None
        Names of clusters, as `rename_clusters` takes them; else they follow from texts, columns or images.
    namer : callable or None
        A function from a `ClusterExemplars` to a name.
    title : str
        Title of the page.

    Returns
    -------
    FitReport
    """
    source = open_source(X)
    previews = _previews(source, texts, images, ids, columns)
    if names is None:
        model.name_clusters(
            source, texts=previews.texts, ids=previews.ids, images=previews.image, namer=namer, columns=source.columns
        )
    else:
        model.rename_clusters(names)
    known = source.y if y is None else _codes(y)
    facts = {"rows": f"{len(source.X):,}", "clusters": str(model.n_clusters_)}
    page = render_fit_page(
        title, model, source.X, facts=facts, previews=previews, columns=source.columns, y=known,
        classes=source.class_names,
    )  # fmt: skip
    return FitReport(title, page, list(model.cluster_names_))


def _previews(source: Source, texts: Any, images: Any, ids: Any, columns: Any) -> RowPreviews:
    n = len(source.X)
    in_files = {"images": images, "texts": texts}
    paths = {name: str(given) for name, given in in_files.items() if isinstance(given, (str, PathLike))}
    wanted = columns if columns is not None and not isinstance(columns, Mapping) else ()
    previews = open_previews(source, columns=list(wanted), **paths)
    if isinstance(columns, Mapping) or hasattr(columns, "items"):
        previews = with_columns(previews, {str(name): np.asarray(values) for name, values in columns.items()})
    if texts is not None and "texts" not in paths:
        previews = previews.replaced(texts=[str(text) for text in texts])
    if ids is not None:
        previews = previews.replaced(ids=[str(name) for name in ids])
    if images is not None and "images" not in paths:
        previews = previews.replaced(image=_image_function(images, n))
    previews.check(n)
    return previews


def _image_function(images: Any, n: int) -> Callable[[int], Any]:
    from prodsc.report.previews import row_images

    if callable(images):
        return images
    if isinstance(images, np.ndarray):
        if len(images) != n:
            raise InputError(f"images has {len(images)} images for {n} rows; give one for each.")
        return row_images(images)
    pictures = list(images)
    if len(pictures) != n:
        raise InputError(f"images has {len(pictures)} images for {n} rows; give one for each.")
    return lambda row: pictures[row]


def _codes(y: Any) -> np.ndarray:
    return np.unique(array_1d(y), return_inverse=True)[1]
