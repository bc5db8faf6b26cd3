"""Download the data sets that have a public address.

address --> downloads/NAME.part, until the checksum matches --> X, y, split --> NAME.npz and its checksum beside it
"""

import http.client
import os
import time
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import numpy as np

from prodsc import files
from prodsc._version import __version__
from prodsc.errors import InputError
from prodsc.sources.named import PathOrNone, checksum_file, dataset_info, download_folder

DownloadProgress: TypeAlias = Callable[[str, int, int | None], None]
"""Called with the name of the file, the bytes so far, and the bytes in total if the server tells them."""

TIMEOUT = 30.0  # seconds without a byte


class _TransferError(Exception):
    """The transfer failed for a reason that may be temporary."""


def fetch(name: str, *, data_dir: PathOrNone = None, progress: DownloadProgress | None = None) -> Path:
    """Download and convert a named data set.

    Parameters
    ----------
    name : str
        One of `prodsc data list`. An archive that is already in downloads/ is not downloaded again.
    data_dir : path or None
        Where to put it; see `prodsc.sources.named.download_folder`.
    progress : callable or None
        Called with file name, bytes so far and bytes in total.

    Returns
    -------
    Path
        The file that `load_dataset` finds from then on.

    Raises
    ------
    InputError
        If it has no public address, or the download fails.
    """
    info = dataset_info(name)
    if info is None or not info.remotes or info.convert is None:
        raise InputError(_no_address(name))
    folder = download_folder(data_dir)
    target = folder / info.files[0][0]
    if target.is_file():
        return target
    archives = [
        download(each.url, folder / "downloads" / each.folder / each.name, sha256=each.sha256, progress=progress)
        for each in info.remotes
    ]
    arrays = info.convert(archives)
    with files.atomic(target) as part:
        with part.open("wb") as file:
            np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy's stub takes the arrays for its own option
        digest = files.sha256(part)
    files.write_text(checksum_file(target), f"{digest}  {target.name}\n")
    return target


def _no_address(name: str) -> str:
    info = dataset_info(name)
    if info is None:
        return f"{name} is a file, not a named data set; only named sets can be fetched (prodsc data list)."
    if info.make is not None:
        return f"{name} is computed here and needs no download."
    return f"{name} has no public address to download from: {info.obtain}; it belongs in {download_folder()}."


def download(
    url: str,
    target: Path,
    *,
    sha256: str | None = None,
    progress: DownloadProgress | None = None,
    attempts: int = 4,
    first_wait: float = 1.0,
    max_bytes: int = 4 * 2**30,
) -> Path:
    """Download a file, which appears at its place only when it is complete and its checksum matches.

    Parameters
    ----------
    url : str
    target : Path
        Where it goes. After an interruption TARGET.part is continued if a checksum can prove that the pieces match.
    sha256 : str or None
        The expected checksum.
    progress : callable or None
        Called with file name, bytes so far and bytes in total.
    attempts : int
        Number of attempts.
    first_wait : float
        Seconds before the second attempt, doubled before every further one.
    max_bytes : int
        A larger file is refused, whatever the server sends. The largest file of the catalogue has 0.2 GB.

    Returns
    -------
    Path
        The target.

    Raises
    ------
    InputError
        If all attempts fail, the checksum is wrong, or the file is too large.
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
            _transfer(url, part, start, progress, max_bytes)
        except _TransferError as error:
            reason = str(error)
            continue
        if sha256 is None or (digest := files.sha256(part)) == sha256:
            os.replace(part, target)
            return target
        part.unlink()
        reason = f"its sha256 is {digest}, expected {sha256}"
        if not start:  # a continued file may begin with a piece of another version: try once more from the start
            raise InputError(f"{url} is not the file that is known: {reason}. Nothing was kept; get it elsewhere.")
    kept = f"; what came is kept in {part} and continued next time" if part.is_file() and sha256 is not None else ""
    raise InputError(
        f"{url} could not be downloaded in {attempts} attempts ({reason}){kept}. Try again later, or get the file "
        f"elsewhere and put it at {target}."
    )


def _transfer(url: str, part: Path, start: int, progress: DownloadProgress | None, max_bytes: int) -> None:
    """Append from byte `start` on, or write the whole file if the server sends it from the beginning."""
    headers = {"User-Agent": f"prodsc/{__version__}"} | ({"Range": f"bytes={start}-"} if start else {})
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers), timeout=TIMEOUT) as response:
            begin = start if response.status == http.HTTPStatus.PARTIAL_CONTENT else 0
            length = response.headers.get("Content-Length")
            total = begin + int(length) if length and length.isdecimal() else None
            if total is not None and total > max_bytes:
                raise _too_large(url, part, max_bytes)
            done = _copy(
                response, part, begin, lambda n: progress(part.stem, n, total) if progress else None, max_bytes
            )
    except urllib.error.HTTPError as error:
        if error.code == http.HTTPStatus.REQUESTED_RANGE_NOT_SATISFIABLE and start:
            return  # nothing is left to send: the checksum decides
        if error.code in (408, 425, 429) or error.code >= 500:  # may be temporary
            raise _TransferError(f"the server answered {error.code} {error.reason}") from error
        raise InputError(
            f"{url} cannot be downloaded: the server answered {error.code} {error.reason}. Get the file elsewhere and "
            f"put it at {part.with_suffix('')}."
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise _TransferError(f"{getattr(error, 'reason', None) or error or type(error).__name__}") from error
    if done > max_bytes:
        part.unlink()
        raise _too_large(url, part, max_bytes)
    if total is not None and done < total:
        raise _TransferError(f"the connection was cut after {done:,} of {total:,} bytes")


def _tell(progress: DownloadProgress | None, name: str, total: int | None, done: int) -> None:
    if progress is not None:
        progress(name, done, total)


def _too_large(url: str, part: Path, max_bytes: int) -> InputError:
    return InputError(
        f"{url} sends more than {max_bytes / 2**30:,.1f} GB, the most that is downloaded; get the file elsewhere and "
        f"put it at {part.with_suffix('')}."
    )


def _copy(
    response: http.client.HTTPResponse, part: Path, begin: int, tell: Callable[[int], None], max_bytes: int
) -> int:
    """Write what the server sends, up to a block more than `max_bytes`; returns the size of the file.

    Errors of the disk become an OutputError.
    """
    done = begin
    try:
        file = part.open("r+b" if begin else "wb")
    except OSError as error:
        raise files.unwritable(part, error) from error
    with file:
        file.seek(begin)
        tell(done)
        while done <= max_bytes and (chunk := response.read(2**18)):
            try:
                file.write(chunk)
            except OSError as error:
                raise files.unwritable(part, error) from error
            done += len(chunk)
            tell(done)
    return done
