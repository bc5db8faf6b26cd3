"""Images sorted into one folder per cluster, as links or copies. Names are untrusted: none leads out of the target."""

import csv
import os
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from prodsc import files
from prodsc.errors import InputError, OutputError
from prodsc.export.targets import check_labels
from prodsc.extract.inputs import image_names, printable
from prodsc.sources.door import open_source

INDEX = "index.csv"  # what lies where; a folder that has it was made here, and only such a one is ever replaced
LONGEST = 80  # characters that are kept of a name

Put = Callable[[Path], None]  # makes one image at a path that does not exist yet


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
    """Make out/cluster_0/000042_name.jpg and so on, and out/index.csv with file, row, id, cluster and confidence.

    `images` is a folder (`ids` are paths below it; without them its images, in the order of their paths, are the rows),
    or images as an array, a file or a named data set, which are written as PNG. Images of a folder are linked, or
    copied with `copy`.
    """
    out = check_folder(out, force)
    clusters, sure = check_labels(labels, confidence)
    names, puts, suffixes = _pictures(images, len(clusters), ids, copy)
    wide, digits = len(str(clusters.max())), max(6, len(str(len(clusters) - 1)))
    with files.atomic_folder(out) as part:
        lines = [["file", "row", "id", "cluster"] + ([] if sure is None else ["confidence"])]
        for row, (name, cluster) in enumerate(zip(names, clusters, strict=True)):
            folder = f"cluster_{cluster:0{wide}d}"
            (part / folder).mkdir(exist_ok=True)
            words = [f"{row:0{digits}d}", *filter(None, [safe_name(name)])]
            file = f"{folder}/{'_'.join(words)}{suffixes[row]}"
            puts[row](part / file)
            lines.append([file, str(row), name, str(cluster)] + ([] if sure is None else [f"{sure[row]:.4f}"]))
        with (part / INDEX).open("w", encoding="utf-8", newline="") as file_:
            csv.writer(file_, lineterminator="\n").writerows(lines)
    return out


def safe_name(name: str) -> str:
    """Letters, digits, dash and underscore of a name without its ending: no separators, dots, spaces or controls.

    The row's number stands before it, so it may be empty, be a name that a system reserves, or be there twice.
    """
    stem = re.sub(r"\.[A-Za-z0-9]{1,5}$", "", name)
    return re.sub(r"[^\w-]+", "_", stem.replace("/", "__"), flags=re.ASCII)[-LONGEST:].strip("_")


def check_folder(out: str | Path, force: bool) -> Path:
    """A folder that may be made: not there, empty, or (with `force`) one that an earlier export left."""
    out = Path(out)
    if out.is_symlink() or (out.exists() and not out.is_dir()):
        raise OutputError(f"{out} is a file or a link. Name a folder that does not exist yet.")
    if not out.is_dir() or not any(out.iterdir()):
        return out
    if not force:
        raise OutputError(f"{out} exists and is not empty. Choose another folder, or give --force (force=True).")
    strange = [p.name for p in out.iterdir() if p.name != INDEX and not re.fullmatch(r"cluster_\d+", p.name)]
    if strange or not (out / INDEX).is_file():
        held = f"it holds {printable(sorted(strange)[0])}" if strange else f"it has no {INDEX}"
        raise OutputError(f"{out} was not made by an export ({held}), so it is not replaced. Choose another folder.")
    return out


# ---- where the images come from --------------------------------------------------------------------------------------


def _pictures(
    images: str | Path | np.ndarray, n: int, ids: Sequence[str] | None, copy: bool
) -> tuple[list[str], list[Put], list[str]]:
    """Of each row its name, a way to put its image somewhere, and the ending that the file gets."""
    if isinstance(images, (str, Path)) and Path(images).is_dir():
        return _from_folder(Path(images), n, ids, copy)
    X, what = (images, "the array") if isinstance(images, np.ndarray) else (image_array(images), str(images))
    if len(X) != n:
        raise InputError(f"{what} holds {len(X)} images for {n} labels; give the images of the rows that were fitted.")
    if X.ndim not in (3, 4):
        raise InputError(f"{what} holds rows, not images; name the images that they came from with --images.")
    from prodsc.report.looks import pictures  # needs an extra, and only here

    picture = pictures(X)
    names = [str(i) for i in ids] if ids is not None and len(ids) == n else [""] * n
    return names, [lambda path, row=row: picture(row).save(path) for row in range(n)], [".png"] * n  # type: ignore[misc]


def _from_folder(root: Path, n: int, ids: Sequence[str] | None, copy: bool) -> tuple[list[str], list[Put], list[str]]:
    """By id where the ids are paths below the folder, else by their order."""
    found = {printable(name): root / name for name in image_names(root)}
    if ids is not None and not found.keys().isdisjoint(ids):
        missing = [name for name in ids if name not in found]
        if missing:
            raise InputError(
                f"{root} has no image {missing[0]} ({len(missing)} of {n} are missing). Name the right folder."
            )
        names = list(ids)
    else:
        names = list(found)
    if len(names) != n:
        raise InputError(
            f"{root} holds {len(names)} images for {n} rows, and the rows carry no paths to match them by. "
            "Name the folder that the features came from."
        )
    place: Callable[[Path, Path], Any] = shutil.copyfile if copy else _link
    puts: list[Put] = [lambda path, name=name: place(found[name], path) for name in names]  # type: ignore[misc]
    return names, puts, [found[name].suffix.lower() for name in names]


def _link(source: Path, path: Path) -> None:
    os.symlink(os.path.abspath(source), path)


def image_array(images: str | Path) -> np.ndarray:
    """Images of a file or a named data set, also of one whose rows are known to be flattened images."""
    source = open_source(str(images))
    shape = None if source.info is None else source.info.image
    return source.X if shape is None else source.X.reshape(len(source.X), *shape)
