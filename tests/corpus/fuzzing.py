"""Damage files and read them: the result must be sound rows, or one error of prodsc that is one sentence.

sound file --> mutated (bytes flipped, cut, repeated, spliced, numbers changed; inside an archive too) --> reader
"""

import gzip
import io
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from corpus.make_corpus import SOUND
from corpus.run_folders import RUN_FOLDERS, check_sentence, read_run_folder
from prodsc.errors import ProdscError
from prodsc.extract.inputs import text_column
from prodsc.runs.recipes import load_recipe
from prodsc.sources.archives import _idx, cifar10_test_images, uci_har
from prodsc.sources.readers import read, read_ids, read_labels, read_pairs

NUMBERS = (0, 1, 2, 7, 127, 128, 255, 256, 2**15, 2**16 - 1, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1)
TEXTS = (b"\0", b"\n", b",", b'"', b"nan", b"-1", b"1e400", b"\xff\xfe", b"=", b"[[[[", b"\x1b[2J", b"9" * 40)


# ---- mutations -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutation:
    """One change. `where` is a share of the file's length in millionths."""

    kind: str
    where: int
    length: int
    value: int


KINDS = ("bit", "byte", "number", "digits", "text", "cut", "end", "repeat", "splice", "zeros")

mutations = st.lists(
    st.builds(
        Mutation,
        st.sampled_from(KINDS),
        st.integers(0, 999_999),
        st.integers(1, 64),
        st.integers(0, 2**16 - 1),
    ),
    min_size=1,
    max_size=4,
)


def mutated(content: bytes, changes: list[Mutation], other: bytes) -> bytes:
    """The content after all changes; `other` is a file of the same format to splice in."""
    for change in changes:
        content = _changed(content, change, other)
    return content


def _changed(content: bytes, change: Mutation, other: bytes) -> bytes:
    at = change.where * len(content) // 1_000_000
    before, rest, length, value = content[:at], content[at:], change.length, change.value
    if change.kind == "bit" and rest:
        return before + bytes([rest[0] ^ (1 << value % 8)]) + rest[1:]
    if change.kind == "byte":
        return before + bytes([value % 256]) + rest[1:]
    if change.kind == "number":  # a field of a header, in either byte order
        size = (1, 2, 4, 8)[value % 4]
        number = NUMBERS[value // 8 % len(NUMBERS)] % 2 ** (8 * size)
        return before + number.to_bytes(size, "little" if value % 8 < 4 else "big") + rest[size:]
    if change.kind == "digits":  # a number that is written as text
        found = list(re.finditer(rb"\d+", content))
        if found:
            digits = found[change.where * len(found) // 1_000_000]
            number = str(NUMBERS[value % len(NUMBERS)]).encode()
            return content[: digits.start()] + number + content[digits.end() :]
    if change.kind == "text":
        return before + TEXTS[value % len(TEXTS)] + rest[length * (value % 2) :]
    if change.kind == "cut":
        return before + rest[length:]
    if change.kind == "end":
        return before
    if change.kind == "repeat":
        return before + rest[:length] * (2 + value % 50) + rest[length:]
    if change.kind == "splice":
        start = value * len(other) // 2**16
        return before + other[start : start + length * 8] + rest[length * 8 :]
    return before + bytes(len(rest[:length])) + rest[length:]


def mutated_inside(content: bytes, changes: list[Mutation], other: bytes, suffix: str) -> bytes:
    """Change what is inside an archive and pack it again, so that checksums do not hide it from the reader."""
    if content[:2] == b"PK":
        return _mutated_zip(content, changes, other)
    if suffix == ".parquet":  # the footer is where sizes and types are
        size = struct.unpack("<I", content[-8:-4])[0]
        footer = mutated(content[-8 - size : -8], changes, other[-8 - size : -8])
        return content[: -8 - size] + footer + struct.pack("<I", len(footer)) + content[-4:]
    if suffix == ".safetensors":
        size = struct.unpack("<Q", content[:8])[0]
        header = mutated(content[8 : 8 + size], changes, other[8:200])
        return struct.pack("<Q", len(header)) + header + content[8 + size :]
    if content[:2] == b"\x1f\x8b":
        return gzip.compress(mutated(gzip.decompress(content), changes, other), 1)
    if suffix == ".mat" and content[128:132] == b"\x0f\0\0\0":  # a compressed variable
        size = struct.unpack("<I", content[132:136])[0]
        packed = zlib.compress(mutated(zlib.decompress(content[136 : 136 + size]), changes, other))
        return content[:132] + struct.pack("<I", len(packed)) + packed + content[136 + size :]
    return mutated(content, changes, other)


def _mutated_zip(content: bytes, changes: list[Mutation], other: bytes) -> bytes:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {info: archive.read(info) for info in archive.infolist()}
    chosen = list(members)[changes[0].where * len(members) // 1_000_000]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for info, value in members.items():
            kept = mutated(value, changes, other[:4096]) if info is chosen else value
            archive.writestr(info.filename, kept, info.compress_type)
    return packed.getvalue()


# ---- readers ---------------------------------------------------------------------------------------------------------


def _read(path: Path) -> None:
    source = read(path)
    X = np.asarray(source.X)
    assert X.ndim >= 2
    assert X.dtype.kind in "biuf"
    assert X.size
    assert source.y is None or len(source.y) == len(X)
    assert source.columns is None or len(source.columns) == X.shape[1]
    read_ids(path, len(X))


def _labels(path: Path) -> None:
    assert read_labels(None, str(path)).ndim == 1


def _texts(path: Path) -> None:
    text_column(path.rename(path.with_suffix(".csv")), None)


READERS: dict[str, Callable[[Path], Any]] = {
    ".txt": _labels,
    ".pairs": read_pairs,
    ".texts": _texts,
    ".toml": lambda path: load_recipe(str(path)),
    ".idx": _idx,
    ".tar": lambda path: cifar10_test_images([path]),
    ".zip": lambda path: uci_har([path]),
    ".run": read_run_folder,
}
MAKERS = SOUND | RUN_FOLDERS
GROUPS = sorted({Path(name).suffix for name in MAKERS})


class Corpus:
    """The sound files of one format, as bytes."""

    def __init__(self, suffix: str, folder: Path):
        self.suffix, self.folder = suffix, folder
        self.contents = []
        for name in MAKERS:
            if Path(name).suffix == suffix:
                MAKERS[name](folder / name)
                self.contents.append((folder / name).read_bytes())

    def damaged(self, number: int, inside: bool, changes: list[Mutation]) -> bytes:
        """One of the files, changed."""
        n = len(self.contents)
        content, other = self.contents[number % n], self.contents[number // n % n]
        if inside or self.suffix == ".run":
            with suppress(Exception):  # what cannot be unpacked is changed from outside
                return mutated_inside(content, changes, other, self.suffix)
        return mutated(content, changes, other)


inputs = st.tuples(st.integers(0, 99), st.booleans(), mutations)


def outcome(path: Path) -> str:
    """Read a file: 'accepted', or 'refused' in one sentence. Anything else is raised.

    Parameters
    ----------
    path : Path
        The file.

    Returns
    -------
    str
    """
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            READERS.get(path.suffix, _read)(path)
    except ProdscError as error:
        check_sentence(error)
        return "refused"
    return "accepted"
