"""Read a file in a process of its own, so that a crash or an endless loop of a library is one sentence.

this process --path, then requests--> `prodsc.sources.untrusted` in a child --arrays--> this process
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from threading import Timer
from typing import Any

import numpy as np

from prodsc import errors
from prodsc.errors import InputError, ProdscError, require
from prodsc.sources.contents import FileContents, n_bytes
from prodsc.sources.limits import LIMITS, available_memory, check_size

HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"
SERVE = "from prodsc.sources.untrusted import serve; serve()"


def open_in_child(path: Path, stack: ExitStack) -> FileContents:
    """The contents of a file that another process reads, with limits of memory and time.

    Parameters
    ----------
    path : Path
    stack : ExitStack
        Ends the process.

    Returns
    -------
    FileContents
    """
    with path.open("rb") as file:  # says at once if it may not be read
        is_hdf5 = HDF5_MAGIC in file.read(520) or path.suffix.lower() == ".h5ad"
    if is_hdf5 and find_spec("h5py") is None:
        require("h5py", extra="hdf5", caller=f"reading {path}")  # raises
    child = stack.enter_context(_started(path))
    first = child.ask({"path": str(path.resolve()), "bytes": _most_memory(path)})
    arrays = {name: partial(child.array, name) for name in first["names"]}
    if not first["matrix"]:
        return FileContents(arrays)
    return FileContents(arrays, lambda *_: child.matrix(), lambda exclude: child.columns())


def _most_memory(path: Path) -> int:
    return LIMITS.process_bytes + int(min(2 * LIMITS.largest(path), available_memory(), 2**62))


class _Child:
    """One process that reads one file."""

    def __init__(self, process: "subprocess.Popen[bytes]", path: Path):
        self.process, self.path = process, path

    def array(self, name: str) -> np.ndarray:
        return self.receive({"get": "array", "name": name})[0]

    def matrix(self) -> tuple[np.ndarray, list[str] | None]:
        return self.receive({"get": "matrix"})

    def columns(self) -> list[str] | None:
        return self.ask({"get": "columns"})["columns"]

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return the answer; an error of the child is raised here."""
        with self.deadline():
            return self._ask(request)

    def receive(self, request: dict[str, Any]) -> tuple[np.ndarray, list[str] | None]:
        """Send a request and return the array, and the column names that came with it."""
        with self.deadline():
            answer = self._ask(request)
            if answer.get("objects"):
                return np.asarray(None), None
            shape = tuple(answer["shape"])
            if "texts" in answer:
                return np.array(answer["texts"], dtype=object).reshape(shape), None
            dtype = np.dtype(answer["dtype"])
            check_size(n_bytes(shape, dtype), self.path)
            array = np.empty(shape, dtype)
            buffer = array.reshape(-1).view(np.uint8).data if array.nbytes else memoryview(b"")
            while len(buffer):
                assert self.process.stdout is not None
                n_read = self.process.stdout.readinto(buffer)  # type: ignore[attr-defined]
                if not n_read:
                    raise self.died()
                buffer = buffer[n_read:]
            return array, answer["columns"]

    def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        with suppress(BrokenPipeError):  # it died; the empty answer says so
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
            self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line.endswith(b"\n"):
            raise self.died()
        answer: dict[str, Any] = json.loads(line)
        if "error" in answer:
            raise _as_raised(answer)
        return answer

    @contextmanager
    def deadline(self) -> Iterator[None]:
        timer = Timer(LIMITS.patience(self.path), self.process.kill)
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()

    def died(self) -> InputError:
        code = self.process.wait()
        reason = f"with signal {-code}" if code < 0 else f"with code {code}"
        if code == -9:
            reason = f"after {LIMITS.patience(self.path):.0f} s, or for lack of memory"
        return InputError(
            f"{self.path} cannot be read as {self.path.suffix.lower()} (the process that read it ended {reason}); "
            "it is damaged, cut short or of another format: copy or write it again."
        )


@contextmanager
def _started(path: Path) -> Iterator[_Child]:
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "OMP_NUM_THREADS": "1"}
    environment |= {"OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"}
    process = subprocess.Popen(
        [sys.executable, "-P", "-W", "ignore", "-c", SERVE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    try:
        yield _Child(process, path)
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def _as_raised(answer: dict[str, Any]) -> Exception:
    """The error of the child as one of this process."""
    kind, message = str(answer["error"]), str(answer["message"])
    own = getattr(errors, kind, None) if answer["ours"] else None
    if isinstance(own, type) and issubclass(own, ProdscError):
        return own(message)
    if kind in ("MemoryError", "PermissionError"):
        return {"MemoryError": MemoryError, "PermissionError": PermissionError}[kind](message)
    return ValueError(message or kind)
