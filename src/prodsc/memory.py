"""A limit of memory that the user sets: what may be read is planned with it, and the system refuses more.

The limit is on the resident memory of this process. Linux cannot limit that, but it can limit the private memory that
a process asks for (RLIMIT_DATA); what files take beside it, such as libraries, is left out of that limit.
"""

import os
import re
import sys
from pathlib import Path

from prodsc.errors import ParameterError

UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)i?B?\s*", re.IGNORECASE)
LIBRARIES = 256 * 2**20  # pages of the libraries' files that are read sooner or later: torch, MKL, Arrow
LEAST_ROOM = 256 * 2**20  # beside them and what is in use already, for a small fit

_limit: float = float("inf")


def parse_size(text: str) -> int:
    """A number of bytes from a text such as "4GB" or "500 MB"; a unit is a power of 1,024.

    Parameters
    ----------
    text : str

    Returns
    -------
    int
    """
    match = SIZE.fullmatch(text)
    if match is None:
        raise ParameterError(f"memory must be a number and a unit, such as 4GB or 500MB, got '{text}'.")
    return int(float(match[1]) * UNITS[match[2].upper()])


def limit_memory(n_bytes: int) -> None:
    """Keep the resident memory of this process below a limit from now on; nothing changes if it is too small.

    Parameters
    ----------
    n_bytes : int

    Raises
    ------
    ParameterError
        If the process and its libraries alone need more, or the system is not Linux.
    """
    global _limit
    if sys.platform != "linux":
        raise ParameterError("a limit of memory needs Linux. Leave --memory out, and use .npy files, read by rows.")
    import resource

    used = _status("VmData")
    least = used + LIBRARIES + LEAST_ROOM
    if n_bytes < least:
        raise ParameterError(
            f"a limit of {n_bytes / 2**20:,.0f} MB cannot be kept: prodsc and its libraries take "
            f"{(used + LIBRARIES) / 2**20:,.0f} MB. Give at least {least / 2**20:,.0f} MB."
        )
    _limit = n_bytes
    os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")  # its own pools ask for more than they use
    _, most = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (n_bytes - LIBRARIES, most))


def memory_left() -> float:
    """Bytes that this process may still take under the limit; infinity without one."""
    return _limit if _limit == float("inf") else max(0.0, _limit - LIBRARIES - _status("VmData"))


def affordable(n_numbers: int, copies: int = 8) -> int:
    """How many of so many float32 numbers may be held, with as many copies as the work on them makes, under the limit.

    Parameters
    ----------
    n_numbers : int
        What would be held without a limit.
    copies : int
        Of the numbers, in the worst moment; by default half of what is left stays free beside four copies.

    Returns
    -------
    int
    """
    return int(min(n_numbers, memory_left() / (4 * copies)))


def limit_sentence() -> str:
    """What to tell the user when memory ran out."""
    if _limit == float("inf"):
        return "out of memory. Lower batch_size, max_landmarks or hidden_size."
    return (
        f"the limit of {_limit / 2**20:,.0f} MB cannot be kept with these rows and parameters. Raise --memory, save "
        "the rows as .npy, or lower batch_size, max_landmarks or hidden_size."
    )


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory could not be had; torch and Arrow have no kind of error of their own for it."""
    text = str(error)
    return isinstance(error, MemoryError) or any(
        word in text
        for word in ("can't allocate memory", "not enough memory", "alloc of size", "Cannot allocate memory")
    )


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return int(next(line for line in lines if line.startswith(f"{name}:")).split()[1]) * 2**10
