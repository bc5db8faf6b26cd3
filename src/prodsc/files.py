"""Reading and writing files. A file is written under another name and then renamed, so no reader sees half of it."""

import ctypes
import errno
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prodsc.errors import ModelFileError, OutputError, reason_of

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    from torch import Tensor

PART, OLD = ".part", ".old"  # endings of temporary names
TEMPORARY = re.compile(r"\.(?P<name>.+)\.[a-z0-9_]{8}(?P<kind>\.part|\.old)")
SEAL = "prodsc_sha256"  # the key of a safetensors file under which it has its own digest


@contextmanager
def atomic(path: str | Path) -> Iterator[Path]:
    """Write a file whole or not at all.

    Parameters
    ----------
    path : str or Path
        The file.

    Yields
    ------
    Path
        A temporary file to write to. It is renamed to `path` if the block succeeds and removed if it fails.

    Raises
    ------
    OutputError
        If the file cannot be written.
    """
    path = Path(path)
    try:
        remove_orphans(path.parent, path.name)
        part, lock = _temporary(path, tempfile.mkstemp)
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        yield part
        os.chmod(part, 0o666 & ~umask())  # mkstemp makes files private
        sync(part)  # so that a power cut after the rename cannot leave an empty file
        os.replace(part, path)
        sync(path.parent)  # so that later writes are not kept without this one
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        _close(lock)
        with suppress(OSError):  # the next write of this file removes it
            part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Write a folder whole or not at all.

    Parameters
    ----------
    path : str or Path
        The folder; an existing one is replaced.

    Yields
    ------
    Path
        A temporary folder to fill. It is renamed to `path` if the block succeeds and removed if it fails.

    Raises
    ------
    OutputError
        If the folder cannot be written.
    """
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        remove_orphans(path.parent, path.name)
        part, lock = _temporary(path, tempfile.mkdtemp)
    except OSError as error:
        raise unwritable(path, error) from error
    try:
        yield part
        os.chmod(part, 0o777 & ~umask())
        for folder, _, names in os.walk(part):
            for name in names:
                if not os.path.islink(os.path.join(folder, name)):
                    sync(Path(folder, name))
            sync(Path(folder))
        _put_in_place(part, path)
        sync(path.parent)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        _close(lock)
        shutil.rmtree(part, ignore_errors=True)  # links inside are removed, what they point to stays


def _put_in_place(part: Path, path: Path) -> None:
    """Rename a folder; an existing one has its name afterwards. Where the system cannot exchange two names, a kill
    between the two renames leaves a folder NAME.old, which `remove_orphans` renames back."""
    if not path.exists():
        os.rename(part, path)
    elif not _exchange(part, path):
        old = part.with_suffix(OLD)
        try:
            os.rename(path, old)
            os.rename(part, path)
        except BaseException:
            if not path.exists():
                os.rename(old, path)
            raise
        shutil.rmtree(old, ignore_errors=True)


def _exchange(a: Path, b: Path) -> bool:
    """Exchange two names in one step; False where the system cannot."""
    here, exchange = -100, 2  # AT_FDCWD and RENAME_EXCHANGE of Linux
    try:
        rename = ctypes.CDLL(None).renameat2
    except (AttributeError, OSError, TypeError):
        return False
    return bool(rename(here, os.fsencode(a), here, os.fsencode(b), exchange) == 0)


def _temporary(path: Path, make: Callable[..., Any]) -> tuple[Path, int | None]:
    """A new file or folder beside `path`, and an open handle that locks it while it is written.

    Windows has no handle: it would not rename an open file, and does not remove one that another process has open.
    """
    while True:
        made = make(prefix=f".{path.name}.", suffix=PART, dir=path.parent)
        handle, name = made if isinstance(made, tuple) else (None, made)
        if fcntl is None:
            _close(handle)
            return Path(name), None
        handle = os.open(name, os.O_RDONLY) if handle is None else handle
        if _lock(handle) and os.path.exists(name):
            return Path(name), handle
        os.close(handle)  # another process took it for an orphan before it was locked


def _close(handle: int | None) -> None:
    if handle is not None:
        os.close(handle)


def _lock(handle: int) -> bool:
    """Lock an open file until it is closed; False if another process has done so."""
    if fcntl is None:
        return True
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        return True
    return True


def remove_orphans(folder: Path, *names: str) -> None:
    """Remove temporary files and folders that a killed process left, and put back a folder it was about to replace.

    Parameters
    ----------
    folder : Path
        Where to look.
    *names : str
        The files or folders that they were to become.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in [*entries]:
            match = TEMPORARY.fullmatch(entry.name)
            if match is None or match["name"] not in names:
                continue
            path, target = Path(entry.path), folder / match["name"]
            if match["kind"] == OLD and not target.exists():
                os.rename(path, target)
            elif _unlocked(path):
                _remove(path)


def _unlocked(path: Path) -> bool:
    if fcntl is None:
        return True
    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return False
    try:
        return _lock(handle)
    finally:
        os.close(handle)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink(missing_ok=True)


def sync(path: Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    if os.name == "nt" and path.is_dir():
        return  # Windows cannot open folders
    handle = os.open(path, os.O_RDWR if os.name == "nt" else os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if not (error.errno == errno.EINVAL and path.is_dir()):  # some network folders cannot be synchronised
            raise
    finally:
        os.close(handle)


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write a JSON file; NaN is refused."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def regular(path: Path) -> Path:
    """The path, unless it is that of a pipe or device, on which a reader would wait for ever: then an OSError.

    Parameters
    ----------
    path : Path
        A file to be read.

    Returns
    -------
    Path
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise OSError(errno.EINVAL, "it is a pipe, socket or device, not a file", str(path))
    return path


def read_json(path: str | Path) -> Any:
    """The content of a JSON file; raises ValueError if it is not JSON."""
    try:
        return json.loads(regular(Path(path)).read_text(encoding="utf-8"))
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def write_tensors(path: str | Path, tensors: "dict[str, Tensor]", metadata: dict[str, str] | None = None) -> None:
    """Write a safetensors file that has its own digest.

    Parameters
    ----------
    path : str or Path
        The file.
    tensors : dict of str to Tensor
        What to write.
    metadata : dict of str to str, optional
        Text to store beside the tensors.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    metadata = metadata or {}
    with atomic(path) as part:
        try:
            save_file(contiguous, part, metadata | {SEAL: tensors_sha256(contiguous, metadata)})
        except SafetensorError as error:  # a full disk, among others; safetensors has one exception for all
            raise OutputError(f"cannot write {path}: {error}. Free space or choose another place.") from error


def read_tensors(path: str | Path) -> "tuple[dict[str, str], dict[str, Tensor]]":
    """Read a safetensors file; one that has its own digest is checked.

    Returns
    -------
    metadata : dict of str
    tensors : dict of Tensor

    Raises
    ------
    ModelFileError
        If the file does not exist, is damaged or is not a safetensors file.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} does not exist.") from error
    except (SafetensorError, OSError, RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise ModelFileError(f"{path} is damaged or not a safetensors file ({reason_of(error)}).") from error
    if SEAL in metadata and metadata[SEAL] != tensors_sha256(tensors, metadata):
        raise ModelFileError(
            f"{path} is damaged: it does not match the digest that it carries. Copy it again, or start anew."
        )
    return metadata, tensors


def tensors_sha256(tensors: "dict[str, Tensor]", metadata: dict[str, str]) -> str:
    """The sha256 of tensors in memory and the text stored beside them.

    Parameters
    ----------
    tensors : dict of str to Tensor
        Contiguous, on the CPU.
    metadata : dict of str to str
        All but the digest itself counts.

    Returns
    -------
    str
    """
    import torch

    digest = hashlib.sha256(json.dumps({k: v for k, v in metadata.items() if k != SEAL}, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        digest.update(f"\n{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        if tensor.numel():
            flat = tensor.as_strided((tensor.numel(),), (1,))  # a row of one number may have another stride
            digest.update(flat.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def sha256(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with regular(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def is_one_of(path: Path, others: Iterable[object]) -> bool:
    """Whether a file is among the inputs of a command, under whatever name.

    Parameters
    ----------
    path : Path
        A file that is to be replaced.
    others : iterable
        The inputs. What is no path of a file, such as None, an array or the name of a data set, is passed over.

    Returns
    -------
    bool
    """
    paths = [Path(os.path.expanduser(other)) for other in others if isinstance(other, (str, Path))]
    return path.exists() and any(other.exists() and path.samefile(other) for other in paths)


def unwritable(path: Path, error: OSError) -> OutputError:
    """The error to raise when the system refuses to write a file."""
    return OutputError(f"cannot write {path}: {error.strerror or error}. Free space or choose another place.")


def umask() -> int:
    """The permissions that this process withholds from new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
