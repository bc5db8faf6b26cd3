"""Reading and writing files. A file is written under another name and then renamed, so no reader sees half of it."""

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from prodsc.errors import ModelFileError, OutputError

if TYPE_CHECKING:
    from torch import Tensor


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
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise unwritable(path, error) from error
    part = Path(name)
    try:
        yield part
        os.chmod(part, 0o666 & ~umask())  # mkstemp makes files private
        with part.open("rb") as file:
            os.fsync(file.fileno())  # so that a power cut after the rename cannot leave an empty file
        os.replace(part, path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
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
        part = Path(tempfile.mkdtemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent))
    except OSError as error:
        raise unwritable(path, error) from error
    old = part.with_suffix(".old")
    try:
        yield part
        os.chmod(part, 0o777 & ~umask())
        if path.exists():
            os.rename(path, old)
        os.rename(part, path)
    except OSError as error:
        if old.exists() and not path.exists():
            os.rename(old, path)
        raise unwritable(path, error) from error
    finally:
        for folder in (part, old):
            shutil.rmtree(folder, ignore_errors=True)  # links inside are removed, what they point to stays


def write_text(path: str | Path, text: str) -> None:
    """Write a text file in UTF-8."""
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    """Write a JSON file; NaN is refused."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | Path) -> Any:
    """The content of a JSON file."""
    return json.loads(Path(path).read_text(encoding="utf-8"))


def write_tensors(path: str | Path, tensors: "dict[str, Tensor]", metadata: dict[str, str] | None = None) -> str:
    """Write a safetensors file.

    Parameters
    ----------
    path : str or Path
        The file.
    tensors : dict of str to Tensor
        What to write.
    metadata : dict of str to str, optional
        Text to store beside the tensors.

    Returns
    -------
    str
        The sha256 of the file.
    """
    from safetensors import SafetensorError
    from safetensors.torch import save_file

    contiguous = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with atomic(path) as part:
        try:
            save_file(contiguous, part, metadata)
        except SafetensorError as error:  # a full disk, among others; safetensors has one exception for all
            raise OutputError(f"cannot write {path}: {error}. Free space or choose another place.") from error
        return sha256(part)


def read_tensors(path: str | Path) -> "tuple[dict[str, str], dict[str, Tensor]]":
    """Read a safetensors file.

    Returns
    -------
    metadata : dict of str
    tensors : dict of Tensor

    Raises
    ------
    ModelFileError
        If the file does not exist or is not a safetensors file.
    """
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            return file.metadata() or {}, {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as error:
        raise ModelFileError(f"{path} does not exist.") from error
    except (SafetensorError, OSError) as error:
        raise ModelFileError(f"{path} is damaged or not a safetensors file ({error}).") from error


def sha256(path: Path) -> str:
    """The sha256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unwritable(path: Path, error: OSError) -> OutputError:
    """The error to raise when the system refuses to write a file."""
    return OutputError(f"cannot write {path}: {error.strerror or error}. Free space or choose another place.")


def umask() -> int:
    """The permissions that this process withholds from new files."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
