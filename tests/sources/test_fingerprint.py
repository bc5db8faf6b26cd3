"""The fingerprint is that of the content: its layout does not matter, everything else does."""

import hashlib

import numpy as np
import pytest

import prodsc.sources.fingerprint as module
from prodsc.errors import InputError
from prodsc.sources.fingerprint import fingerprint

X = np.random.default_rng(0).normal(size=(50, 6, 4)).astype(np.float32)


def _reference_fingerprint(X, block=None):
    content = X.tobytes()
    block = block or max(1, len(content))
    digests = (hashlib.sha256(content[i : i + block]).digest() for i in range(0, len(content), block))
    return hashlib.sha256(f"{X.shape} {X.dtype.str}\n".encode() + b"".join(digests)).hexdigest()


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "bool", ">f4", "M8[s]"])
@pytest.mark.parametrize("shape", [(50, 24), (50, 6, 4), (1200,), ()])
def test_is_sha256_of_shape_dtype_and_content(dtype, shape):
    values = (X.reshape(shape) if shape else X[0, 0, 0]) * np.float32(10)
    values = np.asarray(values).astype(np.int64).astype(dtype)
    assert fingerprint(values) == _reference_fingerprint(values)


@pytest.mark.parametrize(("size", "rows"), [(1, 1), (100, 1), (96 * 7, 7), (10**9, 50)])
def test_is_made_of_blocks_of_whole_rows(size, rows, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_BYTES", size)
    assert fingerprint(X) == _reference_fingerprint(X, 96 * rows)


def test_layout_does_not_matter(tmp_path):
    wide = np.zeros((100, 6, 8), np.float32)
    wide[::2, :, ::2] = X
    for same in (np.asfortranarray(X), wide[::2, :, ::2], X[::-1][::-1]):
        assert fingerprint(same) == fingerprint(X)
    np.save(tmp_path / "X.npy", X)
    assert fingerprint(np.load(tmp_path / "X.npy", mmap_mode="r")) == fingerprint(X)


def test_any_change_shows():
    last = X.copy()
    last[-1, -1, -1] += 1
    different = [X, last, X[:-1], X[::-1], X.reshape(50, 24), X.astype(np.float64), X.view(np.int32), X[:0], X[:0, :0]]
    assert len({fingerprint(array) for array in different}) == len(different)


def test_reads_blocks_and_never_the_whole(monkeypatch):
    seen = []

    def spy(array):
        seen.append(array.nbytes)
        return np.array(array, order="C")

    monkeypatch.setattr(module, "BLOCK_BYTES", 1000)
    monkeypatch.setattr(module.np, "ascontiguousarray", spy)
    fingerprint(np.asfortranarray(X))
    assert sum(seen) == X.nbytes
    assert max(seen) <= 1000


def test_leaves_the_array_alone():
    before = X.copy()
    X.setflags(write=False)
    try:
        fingerprint(X)
    finally:
        X.setflags(write=True)
    np.testing.assert_array_equal(X, before)


def test_python_objects_have_none():
    with pytest.raises(InputError, match=r"X is of type object; only arrays of numbers have a fingerprint"):
        fingerprint(np.array([["a", 1]], dtype=object))
