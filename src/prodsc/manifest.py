"""manifest.json: the digest of every file that prodsc wrote into a folder.

It is how a damaged file is recognised and how our files are told from the user's. Files that belong together are
written under temporary names, then the manifest is replaced, then they are renamed. So a kill at any moment leaves
the old files or the new ones, and a reader finds either by their digests.
"""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from prodsc import files
from prodsc.errors import ModelFileError, OutputError, ProdscError

MANIFEST = "manifest.json"
FORMAT, VERSION = "prodsc-manifest", 1
NEXT = ".prodsc-next"  # ending of a file that waits for the manifest that lists it


@dataclass(frozen=True)
class Manifest:
    """The content of manifest.json."""

    digests: dict[str, str] = field(default_factory=dict)  # name of a file -> sha256
    leaving: tuple[str, ...] = ()  # files of an earlier run that are being removed

    @property
    def ours(self) -> set[str]:
        """Names of all files in the folder that prodsc wrote."""
        return {*self.digests, *self.leaving, MANIFEST}


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a folder.

    Parameters
    ----------
    folder : Path
        The folder.

    Returns
    -------
    Manifest or None
        None if there is none, as in folders that version 0.1 wrote.

    Raises
    ------
    ModelFileError
        If it is damaged, newer, or not ours.
    """
    path = folder / MANIFEST
    try:
        content = files.read_json(path)
        if content["format"] != FORMAT:
            raise ModelFileError(f"{path} is not a manifest of prodsc. Name another folder.")
        if content["version"] > VERSION:
            raise ModelFileError(f"{path} was written by a newer prodsc. Upgrade prodsc.")
        digests, leaving = content["files"], content["leaving"]
        if not all(_plain_name(name) for name in (*digests, *leaving)):
            raise ValueError("it names a file of another folder")
        return Manifest({str(name): str(digest) for name, digest in digests.items()}, tuple(leaving))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ModelFileError(
            f"{path} is damaged ({type(error).__name__}: {error}). Copy the whole folder again from where it was made."
        ) from error


def verified(folder: Path, name: str) -> Path:
    """The path of a file whose content is what the manifest says.

    Parameters
    ----------
    folder : Path
        The folder.
    name : str
        Name of the file in it.

    Returns
    -------
    Path
        In a folder without a manifest, which nothing is known about, the file as it is.

    Raises
    ------
    ModelFileError
        If the file is missing or has another content.
    """
    path, manifest = folder / name, read_manifest(folder)
    if manifest is None:
        return path
    if name not in manifest.digests:
        raise ModelFileError(f"{folder} holds no {name} that prodsc wrote ({MANIFEST} does not list it).")
    for candidate in (path, _next(path), path):  # at last again: a writer may have renamed it in the meantime
        with suppress(OSError):
            if files.sha256(candidate) == manifest.digests[name]:
                return _in_place(candidate, path)
    state = "does not match its digest in" if path.exists() else "is missing, although listed in"
    raise ModelFileError(f"{path} {state} {MANIFEST}. Copy the whole folder again from where it was made.")


def _in_place(candidate: Path, path: Path) -> Path:
    """Give a file its own name if a killed writer did not; where that is not allowed it is read as it is."""
    try:
        return candidate if candidate == path else candidate.replace(path)
    except OSError:
        return candidate


@contextmanager
def replaced(folder: Path, removing: Collection[str] = ()) -> Iterator[Callable[[str], Path]]:
    """Write files of a folder together: all of them are replaced, or none.

    Parameters
    ----------
    folder : Path
        The folder; it is made if it does not exist.
    removing : collection of str
        Files of ours that are removed when the others are in place.

    Yields
    ------
    callable(name) -> Path
        Gives the path to write a file to.

    Raises
    ------
    OutputError
        If the folder cannot be written, or its manifest.json is not ours.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        recover(folder)
        before = read_manifest(folder) or Manifest()
    except ModelFileError as error:
        raise OutputError(f"cannot write to {folder}: {error}") from error
    except OSError as error:
        raise files.unwritable(folder, error) from error
    paths: dict[str, Path] = {}

    def path_of(name: str) -> Path:
        paths[name] = _next(folder / name)
        return paths[name]

    try:
        yield path_of
        digests = {name: files.sha256(path) for name, path in paths.items()}
        kept = {name: digest for name, digest in before.digests.items() if name not in removing}
        _write(folder, Manifest(kept | digests, tuple(sorted({*removing} - {MANIFEST, *digests}))))
    except BaseException:
        with suppress(OSError, ProdscError):
            recover(folder)
        raise
    try:
        recover(folder)
    except OSError as error:
        raise files.unwritable(folder, error) from error


def recover(folder: Path) -> None:
    """Finish what a killed writer has begun: rename files that the manifest lists, remove those that leave.

    Parameters
    ----------
    folder : Path
        The folder.
    """
    manifest = read_manifest(folder) or Manifest()
    for waiting in folder.glob(f".*{NEXT}"):
        name = waiting.name.removeprefix(".").removesuffix(NEXT)
        with suppress(FileNotFoundError):  # a reader has just renamed it
            if files.sha256(waiting) == manifest.digests.get(name):
                waiting.replace(folder / name)
            else:
                waiting.unlink()
        files.remove_orphans(folder, name, waiting.name)
    if manifest.leaving:
        for name in manifest.leaving:
            (folder / name).unlink(missing_ok=True)
        _write(folder, Manifest(manifest.digests))
    files.sync(folder)


def _write(folder: Path, manifest: Manifest) -> None:
    content = {"format": FORMAT, "version": VERSION, "files": manifest.digests, "leaving": list(manifest.leaving)}
    files.write_json(folder / MANIFEST, content)


def _next(path: Path) -> Path:
    """Where the next content of a file waits for the manifest that lists it."""
    return path.with_name(f".{path.name}{NEXT}")


def _plain_name(name: object) -> bool:
    return isinstance(name, str) and Path(name).name == name
