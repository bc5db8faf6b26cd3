"""Images sorted into one folder per cluster, as links or copies. Names of images are untrusted."""

import csv
import os
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from prodsc import files
from prodsc.errors import InputError, OutputError
from prodsc.export.targets import check_labels
from prodsc.extract.inputs import image_names, printable
from prodsc.sources.door import open_source
from prodsc.spreadsheet import without_formula

INDEX = "index.csv"  # lists the files of an export; only a folder that holds these alone is ever replaced
COLUMNS = ["file", "row", "id", "cluster"]  # of the index; a column `confidence` may follow

ImageWriter = Callable[[Path], None]  # writes one image to a path that does not exist yet


def folders(
    out: str | Path,
    images: str | Path | np.ndarray,
    labels: ArrayLike,
    confidence: ArrayLike | None = None,
    ids: Sequence[str] | None = None,
    *,
    copy: bool = False,
    force: bool = False,
) -> Path:
    """Write one folder of images per cluster, and index.csv with file, row, id, cluster and confidence.

    Parameters
    ----------
    out : path
        The folder to make: out/cluster_0/000042_name.jpg and so on.
    images : path, name of a data set, or array
        A folder of images, or images as an array, file or named data set, which are written as PNG.
    labels : array of shape (n,)
        The cluster of each row.
    confidence : array of shape (n,), optional
        Confidence of each label.
    ids : sequence of str, optional
        The path of each row's image below the folder `images`; without them, the order of the paths.
    copy : bool, default=False
        Copy the images of a folder instead of linking to them.
    force : bool, default=False
        Replace a folder that an earlier export made.

    Returns
    -------
    Path
        The folder.

    Raises
    ------
    OutputError
        If the folder is not empty.
    InputError
        If there is not one image for each row.
    """
    out = check_folder(out, force)
    clusters, confidences = check_labels(labels, confidence)
    names, writers, suffixes = _image_writers(images, len(clusters), ids, copy)
    wide, digits = len(str(clusters.max())), max(6, len(str(len(clusters) - 1)))
    with files.atomic_folder(out) as part:
        lines = [COLUMNS + ([] if confidences is None else ["confidence"])]
        for row, (name, cluster) in enumerate(zip(names, clusters, strict=True)):
            folder = f"cluster_{cluster:0{wide}d}"
            (part / folder).mkdir(exist_ok=True)
            stem = "_".join([f"{row:0{digits}d}", *filter(None, [safe_name(name)])])
            file = f"{folder}/{stem}{suffixes[row]}"
            writers[row](part / file)
            lines.append(
                [file, str(row), without_formula(name), str(cluster)]
                + ([] if confidences is None else [f"{confidences[row]:.4f}"])
            )
        with (part / INDEX).open("w", encoding="utf-8", newline="") as file_:
            csv.writer(file_, lineterminator="\n").writerows(lines)
    return out


def safe_name(name: str, max_length: int = 80) -> str:
    """Letters, digits, dash and underscore of a name without its ending: no separators, dots, spaces or controls.

    The row number comes before it in a file name, so it may be empty, reserved by a system, or not unique.
    """
    stem = re.sub(r"\.[A-Za-z0-9]{1,5}$", "", name)
    return re.sub(r"[^\w-]+", "_", stem.replace("/", "__"), flags=re.ASCII)[-max_length:].strip("_")


def check_folder(out: str | Path, force: bool) -> Path:
    """Check a folder that is to be written: it must not exist, be empty, or (with `force`) come from an export."""
    out = Path(out)
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise OutputError(f"{out} is a file or a link. Name a folder that does not exist yet.")
    if not out.is_dir() or not any(out.iterdir()):
        return out
    if not force:
        raise OutputError(f"{out} exists and is not empty. Choose another folder, or give --force (force=True).")
    ours = _listed_files(out)
    foreign = sorted(name for name in _files_below(out) if name not in ours)
    if foreign or not ours:
        held = (
            f"{INDEX} does not list {printable(foreign[0])}" if foreign and ours else f"it has no {INDEX} of an export"
        )
        raise OutputError(
            f"{out} was not made by an export alone ({held}), so it is not replaced. Choose another folder."
        )
    return out


def _listed_files(out: Path) -> set[str]:
    """The files that an earlier export wrote, by its index; none if there is no such index."""
    try:
        with (out / INDEX).open(encoding="utf-8", newline="") as file:
            lines = [*csv.reader(file)]
    except (OSError, UnicodeDecodeError, csv.Error):
        return set()
    if not lines or lines[0][:4] != COLUMNS:
        return set()
    return {line[0] for line in lines[1:] if line} | {INDEX}


def _files_below(out: Path) -> Iterator[str]:
    """Everything below a folder but the folders of clusters."""
    for folder, inside, names in os.walk(out):
        links = [name for name in inside if os.path.islink(os.path.join(folder, name))]
        here = Path(folder).relative_to(out)
        if here != Path() and not re.fullmatch(r"cluster_\d+", str(here)):
            yield here.as_posix()
        yield from ((here / name).as_posix() for name in (*names, *links))


# ---- where the images come from --------------------------------------------------------------------------------------


def _image_writers(
    images: str | Path | np.ndarray, n: int, ids: Sequence[str] | None, copy: bool
) -> tuple[list[str], list[ImageWriter], list[str]]:
    """Of each row: its name, a function that writes its image, and the ending of the file."""
    if isinstance(images, (str, Path)) and Path(images).is_dir():
        return _from_folder(Path(images), n, ids, copy)
    X, what = (images, "the array") if isinstance(images, np.ndarray) else (image_array(images), str(images))
    if len(X) != n:
        raise InputError(f"{what} holds {len(X)} images for {n} labels; give the images of the rows that were fitted.")
    if X.ndim not in (3, 4):
        raise InputError(f"{what} holds rows, not images; name the images that they came from with --images.")
    from prodsc.report.previews import row_images  # needs an extra, and only here

    picture = row_images(X)
    names = [str(i) for i in ids] if ids is not None and len(ids) == n else [""] * n
    return names, [lambda path, row=row: picture(row).save(path) for row in range(n)], [".png"] * n  # type: ignore[misc]


def _from_folder(
    root: Path, n: int, ids: Sequence[str] | None, copy: bool
) -> tuple[list[str], list[ImageWriter], list[str]]:
    """By id where the ids are paths below the folder, else by their order."""
    paths = {printable(name): root / name for name in image_names(root)}
    if ids is not None and not paths.keys().isdisjoint(ids):
        missing = [name for name in ids if name not in paths]
        if missing:
            raise InputError(
                f"{root} has no image {missing[0]} ({len(missing)} of {n} are missing). Name the right folder."
            )
        names = list(ids)
    else:
        names = list(paths)
    if len(names) != n:
        raise InputError(
            f"{root} holds {len(names)} images for {n} rows, and the rows carry no paths to match them by. "
            "Name the folder that the features came from."
        )
    if copy:
        _check_links(root, [paths[name] for name in names])
    place: Callable[[Path, Path], Any] = shutil.copyfile if copy else _link
    writers: list[ImageWriter] = [lambda path, name=name: place(paths[name], path) for name in names]  # type: ignore[misc]
    return names, writers, [paths[name].suffix.lower() for name in names]


def _check_links(root: Path, paths: Sequence[Path]) -> None:
    """Raise an InputError if an image is a link to something outside its folder: a copy would publish it."""
    inside = root.resolve()
    for path in paths:
        if not path.resolve().is_relative_to(inside):
            raise InputError(
                f"{printable(str(path))} is a link out of {root}, which --copy (copy=True) does not follow. Put the "
                "file itself there, or leave out --copy to link to it."
            )


def _link(source: Path, path: Path) -> None:
    os.symlink(os.path.abspath(source), path)


def image_array(images: str | Path) -> np.ndarray:
    """Images of a file or a named data set, also of one whose rows are known to be flattened images."""
    source = open_source(str(images))
    shape = None if source.info is None else source.info.image
    return source.X if shape is None else source.X.reshape(len(source.X), *shape)
