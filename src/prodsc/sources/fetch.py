"""Download the data sets that have a public address: resumed where cut, checked, converted, and only then named.

addresses --> downloads/ (.part until the checksum holds) --> X, y, split --> NAME.npz and its checksum beside it
"""

import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path

import numpy as np

from prodsc import files
from prodsc._version import __version__
from prodsc.errors import InputError
from prodsc.sources.named import PathOrNone, about_set, checksum_file, home

Progress = Callable[[str, int, int | None], None]  # name of the file, bytes so far, bytes in all if the server says so
ATTEMPTS = 4
FIRST_WAIT = 1.0  # seconds, doubled at every further attempt
TIMEOUT = 30.0  # seconds without a byte
CHUNK_BYTES = 2**18
PASSING = (408, 425, 429)  # and all from 500: worth another attempt


class _Cut(Exception):
    """The transfer ended early for a reason that may pass."""


def fetch(name: str, *, data_dir: PathOrNone = None, progress: Progress | None = None) -> Path:
    """Download and convert a named set; returns the file that `load_dataset` then finds.

    An archive that is already in downloads/ is not downloaded again, so it may be put there by hand.
    """
    about = about_set(name)
    if about is None or not about.remotes or about.convert is None:
        raise InputError(_no_address(name))
    place = home(data_dir)
    target = place / about.files[0][0]
    if target.is_file():
        return target
    archives = [
        download(each.url, place / "downloads" / each.folder / each.name, sha256=each.sha256, progress=progress)
        for each in about.remotes
    ]
    arrays = about.convert(archives)
    with files.atomic(target) as part:
        with part.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the arrays for its own option
        digest = files.sha256(part)
    files.write_text(checksum_file(target), f"{digest}  {target.name}\n")
    return target


def _no_address(name: str) -> str:
    about = about_set(name)
    if about is None:
        return f"{name} is a file, not a named data set; only named sets can be fetched (prodsc data list)."
    if about.make is not None:
        return f"{name} is computed here and needs no download."
    return f"{name} has no public address to download from: {about.obtain}; it belongs in {home()}."


def download(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    progress: Progress | None = None,
    attempts: int = ATTEMPTS,
    first_wait: float = FIRST_WAIT,
) -> Path:
    """Download to `target`, which appears whole and checked or not at all.

    What came before a cut stays in `target`.part and is continued, but only when a checksum can prove that the pieces
    belong together.
    """
    if target.is_file() and (sha256 is None or files.sha256(target) == sha256):
        return target
    part = target.with_name(f"{target.name}.part")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise files.unwritable(target.parent, error) from error
    reason = ""
    for attempt in range(attempts):
        if attempt:
            time.sleep(first_wait * 2 ** (attempt - 1))
        start = part.stat().st_size if sha256 is not None and part.is_file() else 0
        try:
            _transfer(url, part, start, progress)
        except _Cut as cut:
            reason = str(cut)
            continue
        if sha256 is None or (found := files.sha256(part)) == sha256:
            os.replace(part, target)
            return target
        part.unlink()
        reason = f"its sha256 is {found}, expected {sha256}"
        if not start:  # when continued, the first piece may have been of another version: once more from the start
            raise InputError(f"{url} is not the file that is known: {reason}. Nothing was kept; get it elsewhere.")
    kept = f"; what came is kept in {part} and continued next time" if part.is_file() and sha256 is not None else ""
    raise InputError(
        f"{url} could not be downloaded in {attempts} attempts ({reason}){kept}. Try again later, or get the file "
        f"elsewhere and put it at {target}."
    )


def _transfer(url: str, part: Path, start: int, progress: Progress | None) -> None:
    """Append from byte `start` on, or write anew when the server sends the whole file all the same."""
    headers = {"User-Agent": f"prodsc/{__version__}"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as response:
            begin = start if response.status == http.HTTPStatus.PARTIAL_CONTENT else 0
            length = response.headers.get("Content-Length")
            total = begin + int(length) if length else None
            done = _copy(response, part, begin, lambda n: progress(part.stem, n, total) if progress else None)
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
            return  # nothing is left to send: the checksum decides
        if error.code in PASSING or error.code >= 500:
            raise _Cut(f"the server answered {error.code} {error.reason}") from error
        raise InputError(
            f"{url} cannot be downloaded: the server answered {error.code} {error.reason}. Get the file elsewhere and "
            f"put it at {part.with_suffix('')}."
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise _Cut(f"{getattr(error, 'reason', None) or error or type(error).__name__}") from error
    if total is not None and done < total:
        raise _Cut(f"the connection was cut after {done:,} of {total:,} bytes")


def _copy(response: http.client.HTTPResponse, part: Path, begin: int, tell: Callable[[int], None]) -> int:
    """Write what comes; returns the size of the file. A disk that cannot take it is told apart from the network."""
    done = begin
    try:
        file = part.open("r+b" if begin else "wb")
    except OSError as error:
        raise files.unwritable(part, error) from error
    with file:
        file.seek(begin)
        tell(done)
        while chunk := response.read(CHUNK_BYTES):
            try:
                file.write(chunk)
            except OSError as error:
                raise files.unwritable(part, error) from error
            done += len(chunk)
            tell(done)
    return done
