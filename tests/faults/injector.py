"""Counts every read and write of the files below a folder, and makes one of them fail.

Python's own functions are replaced in a forked process: open, read, write, fsync, rename, mkdir, unlink and their
kin. What libraries write in C or Rust counts as one write after the open. A power cut is a kill that also loses what
was not synchronised: the content of files after their last fsync, and renames after the last fsync of their folder.
"""

import builtins
import errno
import io
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

ERRORS = {"ENOSPC": errno.ENOSPC, "EIO": errno.EIO, "EINTR": errno.EINTR}
FAULTS = (*ERRORS, "kill before", "kill after", "power cut")


class Injector:
    """Install it in a process that may die.

    Parameters
    ----------
    root : Path
        Only operations on files below this folder count.
    spare : Path
        A folder outside of it, on the same file system, for what a power cut brings back.
    at : int
        Number of the operation that fails, from 1; 0: none.
    fault : str
        One of `FAULTS`.
    """

    def __init__(self, root: Path, spare: Path, at: int = 0, fault: str = "EIO"):
        self.root, self.spare, self.at, self.fault = os.path.realpath(root) + os.sep, spare, at, fault
        self.points: list[tuple[str, str]] = []
        self.real = {
            name: getattr(os, name)
            for name in [
                "open",
                "read",
                "write",
                "fsync",
                "replace",
                "rename",
                "mkdir",
                "unlink",
                "remove",
                "rmdir",
                "symlink",
                "sendfile",
            ]
        }
        self.real_open = io.open
        self.unsynced: dict[int, tuple[int, int]] = {}  # inode -> (open descriptor, size at the last fsync)
        self.renames: list[tuple[str, Callable[[], Any]]] = []  # folder, and what takes the rename back

    def inside(self, path: Any) -> bool:
        if isinstance(path, int):
            path = self._path_of(path)
        try:
            return os.path.abspath(os.fsdecode(path)).startswith(self.root)
        except TypeError:
            return False

    @staticmethod
    def _path_of(descriptor: int) -> str:
        try:
            return os.readlink(f"/proc/self/fd/{descriptor}")
        except OSError:
            return ""

    def point(self, name: str, path: Any, act: Callable[[], Any]) -> Any:
        """Count an operation, and do it, fail or die."""
        shown = self._path_of(path) if isinstance(path, int) else os.fsdecode(path)
        self.points.append((name, os.path.basename(shown)))
        if len(self.points) != self.at:
            return act()
        if self.fault in ERRORS:
            raise OSError(ERRORS[self.fault], os.strerror(ERRORS[self.fault]), shown)
        if self.fault != "kill before":
            act()
        self.die()
        return None

    def die(self) -> None:
        if self.fault == "power cut":
            for _, take_back in reversed(self.renames):
                take_back()
            for descriptor, size in self.unsynced.values():
                end = os.fstat(descriptor).st_size
                os.ftruncate(descriptor, min(end, size + (end - size) // 2))
        os.kill(os.getpid(), signal.SIGKILL)

    # ---- what is not synchronised ----------------------------------------------------------------------------------

    def written(self, descriptor: int) -> None:
        inode = os.fstat(descriptor).st_ino
        if inode not in self.unsynced:
            copy = self.real["open"](f"/proc/self/fd/{descriptor}", os.O_RDWR)
            self.unsynced[inode] = (copy, 0)

    def fsync(self, descriptor: int) -> None:
        if not self.inside(descriptor) and not (self._path_of(descriptor) + os.sep).startswith(self.root):
            return self.real["fsync"](descriptor)
        return self.point("fsync", descriptor, lambda: self._synced(descriptor))

    def _synced(self, descriptor: int) -> None:
        state, path = os.fstat(descriptor), self._path_of(descriptor)
        if state.st_ino in self.unsynced:
            self.unsynced[state.st_ino] = (self.unsynced[state.st_ino][0], state.st_size)
        self.renames = [(folder, undo) for folder, undo in self.renames if folder != path]

    def rename(self, name: str, a: Any, b: Any, **more: Any) -> None:
        if not (self.inside(a) or self.inside(b)):
            return self.real[name](a, b, **more)

        def act() -> None:
            backup = None
            if os.path.isfile(b):
                backup = self.spare / f"{len(self.points)}-{os.path.basename(os.fsdecode(b))}"
                os.link(b, backup)
            self.real[name](a, b)

            def take_back() -> None:
                if os.path.lexists(b):
                    self.real["rename"](b, a)
                if backup is not None:
                    self.real["rename"](backup, b)

            self.renames.append((os.path.abspath(os.path.dirname(os.fsdecode(b))), take_back))

        return self.point("rename", b, act)

    # ---- files -----------------------------------------------------------------------------------------------------

    def open(
        self, file: Any, mode: str = "r", buffering: int = -1, encoding: Any = None, errors: Any = None,
        newline: Any = None, closefd: bool = True, opener: Any = None,
    ) -> Any:  # fmt: skip
        if isinstance(file, int) or not self.inside(file):
            return self.real_open(file, mode, buffering, encoding, errors, newline, closefd, opener)
        injector = self

        class Raw(io.FileIO):
            def write(self, content: Any) -> int:
                return injector.point("write", file, lambda: io.FileIO.write(self, content))

            def readinto(self, buffer: Any) -> int:
                return injector.point("read", file, lambda: io.FileIO.readinto(self, buffer))

            def readall(self) -> bytes:
                return injector.point("read", file, lambda: io.FileIO.readall(self))

            def truncate(self, size: int | None = None) -> int:
                return injector.point("truncate", file, lambda: io.FileIO.truncate(self, size))

        raw = self.point("open", file, lambda: Raw(file, mode.replace("b", "").replace("t", "")))
        if raw.writable():
            self.written(raw.fileno())
        kind = io.BufferedRandom if "+" in mode else io.BufferedWriter if raw.writable() else io.BufferedReader
        buffered = kind(raw)
        if "b" in mode:
            return buffered
        text = io.TextIOWrapper(buffered, encoding or "utf-8", errors, newline)
        text.mode = mode  # type: ignore[misc]
        return text

    def low_open(self, path: Any, flags: int, mode: int = 0o777, **more: Any) -> int:
        if not self.inside(path):
            return self.real["open"](path, flags, mode, **more)
        descriptor = self.point("open", path, lambda: self.real["open"](path, flags, mode, **more))
        if flags & (os.O_WRONLY | os.O_RDWR):
            self.written(descriptor)
        return descriptor

    def install(self) -> None:
        """Replace the functions of this process."""
        import safetensors
        import safetensors.torch

        from prodsc import files

        builtins.open = io.open = self.open  # type: ignore[assignment]
        os.open, os.fsync = self.low_open, self.fsync  # type: ignore[assignment]
        os.replace = lambda a, b, **more: self.rename("replace", a, b, **more)
        os.rename = lambda a, b, **more: self.rename("rename", a, b, **more)
        for name in ("mkdir", "unlink", "remove", "rmdir", "read", "write", "symlink", "sendfile"):
            setattr(os, name, self._simple(name, 1 if name == "symlink" else 0))
        exchange = files._exchange
        files._exchange = lambda a, b: self.point("rename", b, lambda: exchange(a, b)) if self.inside(b) else False
        safetensors.torch.save_file = self._save_file
        opened = safetensors.safe_open
        safetensors.safe_open = lambda path, **how: self.point("read", path, lambda: opened(path, **how))

    def _simple(self, name: str, argument: int) -> Callable[..., Any]:
        def call(*words: Any, **more: Any) -> Any:
            relative = "dir_fd" in more and more["dir_fd"] is not None  # of shutil.rmtree
            path = os.path.join(self._path_of(more["dir_fd"]), words[argument]) if relative else words[argument]
            act = lambda: self.real[name](*words, **more)  # noqa: E731
            return self.point(name, path, act) if self.inside(path) else act()

        return call

    @staticmethod
    def _save_file(tensors: Any, path: Any, metadata: Any = None) -> None:
        """As safetensors does it, but through functions that can fail."""
        from safetensors import SafetensorError
        from safetensors.torch import save

        try:
            with open(path, "wb") as file:
                file.write(save(tensors, metadata))
        except OSError as error:
            raise SafetensorError(f"Error while serializing: IoError({error})") from error
