"""Writing files so that a reader never sees half of one: a temporary name beside the target, then a rename."""

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
    """Give a temporary path to write to; rename it to `path` when the block succeeds, remove it when it fails."""
    path = Path(path)
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".part", dir=path.parent)
        os.close(handle)
    except OSError as error:
        raise unwritable(path, error) from error
    part = Path(name)
    try:
        yield part
        os.chmod(part, 0o666 & ~umask())  # mkstemp makes files private; a result is as readable as any other file
        with part.open("rb") as file:
            os.fsync(file.fileno())  # so that a power cut after the rename cannot leave an empty file
        os.replace(part, path)
    except OSError as error:
        raise unwritable(path, error) from error
    finally:
        part.unlink(missing_ok=True)


@contextmanager
def atomic_folder(path: str | Path) -> Iterator[Path]:
    """Give a folder beside `path` to fill; it takes `path`'s place when the block succeeds, and goes when it fails."""
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
    with atomic(path) as part:
        part.write_text(text, encoding="utf-8")


def write_json(path: str | Path, value: Any) -> None:
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def read_json(path: str | Path) -> Any:
    return json.loads(Path(path).read_text(encoding="utf-8"))


def write_tensors(path: str | Path, tensors: "dict[str, Tensor]", metadata: dict[str, str] | None = None) -> str:
    """Write a safetensors file; returns its sha256."""
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
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def unwritable(path: Path, error: OSError) -> OutputError:
    return OutputError(f"cannot write {path}: {error.strerror or error}. Free space or choose another place.")


def umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
