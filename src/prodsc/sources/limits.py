"""Limits on what a file may ask for: a few megabytes must not become many gigabytes.

Sizes are taken from the headers of a file and checked before memory is allocated.
"""

import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from prodsc.errors import InputError
from prodsc.memory import memory_left

GB = 2**30


@dataclass(frozen=True)
class Limits:
    """What the content of one file may take.

    Parameters
    ----------
    memory_share : float
        Share of the available memory that an array may take; the fit needs the rest.
    always_allowed : int
        Bytes that any file may unpack to. Small tables and images often compress a thousandfold.
    ratio : int
        Above that, how many times larger than the file the content may be. Measured features compress to a half or a
        tenth; a hundredfold is a matrix of one value, or damage.
    seconds, seconds_per_mb : float
        How long a reader in a process of its own may take, in total and for each megabyte of the file.
    process_bytes : int
        Memory that Python and the libraries need in such a process, beside the content.
    """

    memory_share: float = 0.9
    always_allowed: int = GB
    ratio: int = 100
    seconds: float = 20.0
    seconds_per_mb: float = 1.0
    process_bytes: int = 2 * GB

    def largest(self, path: Path) -> int:
        """Bytes that the content of a file may take, by its size on disk."""
        return max(self.always_allowed, self.ratio * size_on_disk(path))

    def patience(self, path: Path) -> float:
        """Seconds that a reader in a process of its own may take."""
        return self.seconds + self.seconds_per_mb * size_on_disk(path) / 2**20


LIMITS = Limits()


def check_size(n_bytes: int, path: Path, what: str = "its content") -> None:
    """Raise an InputError if content is too large for its file, or for the memory of this machine.

    Parameters
    ----------
    n_bytes : int
        What the headers of the file declare.
    path : Path
        The file.
    what : str
        How the message calls the content.
    """
    check_unpacked(n_bytes, path, what)
    if n_bytes > (free := LIMITS.memory_share * available_memory()):
        raise InputError(
            f"{path}: {what} would take {n_bytes / GB:,.1f} GB of memory, and {free / GB:,.1f} GB may be used; save X "
            "as .npy, which is read from disk by rows."
        )


def check_memory(n_bytes: int, what: str) -> None:
    """Raise an InputError if something in memory would become too large for this machine.

    Parameters
    ----------
    n_bytes : int
        What it would take.
    what : str
        The beginning of the sentence, which goes on with "would take".
    """
    if n_bytes > (free := LIMITS.memory_share * available_memory()):
        raise InputError(
            f"{what} would take {n_bytes / GB:,.1f} GB of memory, and {free / GB:,.1f} GB may be used; use PRODSC, "
            "which reads it in batches, or reduce its columns first (sklearn.decomposition.TruncatedSVD)."
        )


def check_unpacked(n_bytes: int, path: Path, what: str) -> None:
    """Raise an InputError if content is too large for its file, as `check_size` does; memory does not matter."""
    if n_bytes > LIMITS.largest(path):
        raise InputError(
            f"{path} has {size_on_disk(path) / 2**20:,.1f} MB, but {what} would take {n_bytes / GB:,.1f} GB, more than "
            f"{LIMITS.ratio} times as much; if that is right, save X as .npy, which is read from disk by rows."
        )


def size_on_disk(path: Path) -> int:
    """Bytes of a file."""
    return path.stat().st_size


def available_memory() -> float:
    """Bytes that this process could still take without swapping; infinity where the system does not tell."""
    free = [_number_in("/proc/meminfo", "MemAvailable:") * 1024]  # Linux, in kB
    free.append(_number_in("/sys/fs/cgroup/memory.max") - _number_in("/sys/fs/cgroup/memory.current", missing=0.0))
    if sys.platform != "linux":
        with suppress(ImportError):
            import psutil

            free.append(float(psutil.virtual_memory().available))
    return min(*free, memory_left())


def _number_in(path: str, key: str = "", missing: float = float("inf")) -> float:
    """The number behind a key in a file of the system; `missing` if there is none."""
    with suppress(OSError, ValueError, IndexError):
        lines = Path(path).read_text(encoding="ascii").splitlines()
        line = next((line for line in lines if line.startswith(key)), "")
        return float(line.removeprefix(key).split()[0])
    return missing
