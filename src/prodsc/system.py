"""What a run records about the machine: peak memory, versions, system. Works on Linux, macOS and Windows."""

import ctypes
import platform
import sys
from contextlib import suppress
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from prodsc._version import __version__
from prodsc.errors import ParameterError, reason_of, require

if TYPE_CHECKING:
    import torch

RECORDED_LIBRARIES = ("torch", "numpy", "scipy", "scikit-learn")


def peak_memory_mb() -> float:
    """Largest memory of this process so far, in MB (2^20 bytes)."""
    try:
        import resource
    except ImportError:  # Windows
        memory = require("psutil", extra="bench", caller="measuring memory on Windows").Process().memory_info()
        return float(getattr(memory, "peak_wset", memory.rss)) / 2**20
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 2**20 if sys.platform == "darwin" else peak / 2**10  # macOS counts bytes, Linux kibibytes


def keep_freed_memory() -> None:
    """Let this process keep the memory that it frees, where the C library can be told so.

    The C library of Linux takes large blocks from the system and gives them back at once. An encoder makes such blocks
    in every layer of every batch, so that the system spends more time on clearing pages than the encoder on images.
    """
    if sys.platform != "linux":
        return
    with suppress(OSError, AttributeError):  # another C library
        library = ctypes.CDLL("libc.so.6")
        no_mapped_blocks, never_give_back = (-4, 0), (-1, 2**31 - 1)  # M_MMAP_MAX, M_TRIM_THRESHOLD
        for option in (no_mapped_blocks, never_give_back):
            library.mallopt(*option)


def versions() -> dict[str, str]:
    """Versions of prodsc, Python and the libraries that numbers depend on."""
    libraries = {name: version(name) for name in RECORDED_LIBRARIES}
    return {"prodsc": __version__, "python": platform.python_version(), **libraries}


def machine() -> dict[str, Any]:
    """Operating system, and the number of threads that torch uses."""
    import torch

    return {"system": platform.platform(), "threads": torch.get_num_threads()}


def usable_device(name: str) -> "torch.device":
    """A device of torch that this machine has.

    Parameters
    ----------
    name : str
        Such as "cpu" or "cuda:0".

    Returns
    -------
    torch.device

    Raises
    ------
    ParameterError
        If torch does not know the device, or nothing can be computed on it here.
    """
    import torch

    try:
        device = torch.device(name)
        torch.ones(1, device=device).item()  # not on the device "meta"
    except Exception as error:  # torch has a kind of error for each device
        raise ParameterError(
            f"device='{name}' cannot be used on this machine ({reason_of(error)}). Use 'auto' or 'cpu'."
        ) from error
    return device
