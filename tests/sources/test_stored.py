"""Rows in files are the rows of the array, and a file is read no more often than it must be."""

import json
import os
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from conftest import SMALL
from prodsc import PRODSC
from prodsc.errors import InputError
from prodsc.sources import stored, tables
from prodsc.sources.checks import RunningStatistics, check_values
from prodsc.sources.fingerprint import fingerprint
from prodsc.sources.readers import read
from prodsc.sources.rows import RowReader, as_array
from prodsc.sources.stored import StoredFile, StoredRows, read_ahead

X = np.random.default_rng(0).normal(size=(23, 5)).astype(np.float32)


@pytest.fixture
def shards(tmp_path):
    """X in three files, one of them without rows."""
    for name, part in {"a": X[:9], "b": X[9:9], "c": X[9:]}.items():
        np.save(tmp_path / f"{name}.npy", part)
    return tmp_path


INDICES = {
    "all": slice(None),
    "across": slice(5, 15),
    "none": slice(7, 7),
    "backwards": slice(None, None, -2),
    "sorted": np.array([0, 3, 8, 9, 10, 22]),
    "unsorted": np.array([22, 0, 9, 8, 8]),
    "negative": np.array([-1, -23]),
    "mask": np.arange(23) % 3 == 0,
    "one": 9,
    "empty": np.array([], dtype=int),
}


@pytest.mark.parametrize("which", INDICES)
def test_takes_rows_as_an_array_does(which, shards):
    found = read(shards).X[INDICES[which]]
    assert found.dtype == X.dtype
    np.testing.assert_array_equal(found, X[INDICES[which]])


def test_looks_like_the_array(shards):
    rows = read(shards).X
    assert isinstance(rows, StoredRows)
    assert (rows.shape, rows.ndim, len(rows), rows.nbytes, rows.dtype) == (X.shape, 2, 23, X.nbytes, X.dtype)
    np.testing.assert_array_equal(rows, X)
    with pytest.raises(IndexError, match="row 23 of 23"):
        rows[np.array([1, 23])]


@pytest.mark.parametrize(("dtype", "seen"), [(">f4", "f4"), ("f2", "f2"), ("g", "f8"), ("u1", "u1")])
def test_types_become_those_that_torch_has(dtype, seen, tmp_path):
    images = (np.arange(24).reshape(4, 2, 3) % 7).astype(dtype)
    np.save(tmp_path / "X.npy", images)
    found = as_array(np.load(tmp_path / "X.npy", mmap_mode="r"))[1:]
    assert found.dtype == np.dtype(seen)
    np.testing.assert_array_equal(found, images[1:])


def test_a_file_that_changes_meanwhile_is_one_sentence(shards):
    rows = read(shards).X
    np.save(shards / "c.npy", X[9:12])
    with pytest.raises(InputError, match=r"c\.npy has become shorter than it was"):
        rows[:]
    (shards / "a.npy").unlink()
    with pytest.raises(InputError, match=r"a\.npy cannot be opened any more"):
        rows[np.array([1])]


# ---- folders and tables ----------------------------------------------------------------------------------------------


def test_a_folder_may_have_labels_in_a_file_of_their_name(shards):
    np.save(shards / "labels.npy", np.arange(23) % 4)
    found = read(shards)
    np.testing.assert_array_equal(found.X, X)
    np.testing.assert_array_equal(found.y, np.arange(23) % 4)


def test_files_of_a_folder_must_be_alike(shards):
    np.save(shards / "d.npy", X[:, :4])
    with pytest.raises(InputError, match=r"d\.npy has rows of shape \(4,\).* must be alike"):
        read(shards)
    np.save(shards / "d.npy", X[0])
    with pytest.raises(InputError, match=r"d\.npy must have rows and columns"):
        read(shards)
    pq.write_table(pa.table({"a": [1.0]}), shards / "d.parquet")
    with pytest.raises(InputError, match=r"holds \.npy and \.parquet files"):
        read(shards)


def as_columns(values, y=None):
    named = {f"f{j}": values[:, j] for j in range(values.shape[1])}
    return pa.table(named if y is None else named | {"y": y})


def as_vectors(values, y=None):
    named = {"embedding": pa.array(values.tolist(), pa.list_(pa.float32()))}
    return pa.table(named if y is None else named | {"y": y})


@pytest.mark.parametrize("make", [as_columns, as_vectors])
@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
def test_parquet_in_one_file_and_in_several(make, large, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(tables, "BATCH_ROWS", 4)
    limit = {"max_bytes": 100} if large else {}
    y = np.arange(23) % 4
    pq.write_table(make(X, y), tmp_path / "one.parquet")
    (tmp_path / "several").mkdir()
    for i, part in enumerate(np.array_split(np.arange(23), 3)):
        pq.write_table(make(X[part], y[part]), tmp_path / "several" / f"{i}.parquet")
    for name in ("one.parquet", "several"):
        told = []
        found = read(tmp_path / name, progress=lambda *counts: told.append(counts), **limit)  # noqa: B023
        assert isinstance(found.X, StoredRows) == large
        assert (told[-1:] == [(23, 23)]) == large
        np.testing.assert_array_equal(found.X, X)
        np.testing.assert_array_equal(found.y, y)


def test_a_large_table_is_converted_once(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = tmp_path / "X.parquet"
    pq.write_table(as_columns(X), path)
    first, told = read(path, max_bytes=100).X, []
    again = read(path, max_bytes=100, progress=lambda *done: told.append(done)).X
    assert told == []
    assert again.files == first.files
    pq.write_table(as_columns(X + 1), path)  # another time of change
    np.testing.assert_array_equal(read(path, max_bytes=100).X, X + 1)


def test_a_failed_conversion_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    vectors = [*X.tolist(), [1.0]]
    pq.write_table(pa.table({"embedding": pa.array(vectors, pa.list_(pa.float32()))}), tmp_path / "X.parquet")
    with pytest.raises(InputError, match="vectors of one length, 5; row 23 has 1 values"):
        read(tmp_path / "X.parquet", max_bytes=100)
    assert list((tmp_path / "cache" / "prodsc" / "rows").iterdir()) == []


# ---- passes over all rows --------------------------------------------------------------------------------------------


def test_one_look_finds_statistics_and_fingerprint(shards, monkeypatch):
    monkeypatch.setattr("prodsc.sources.fingerprint.BLOCK_BYTES", 4 * 20)
    rows = read(shards).X
    found, expected = check_values(rows), check_values(X)
    np.testing.assert_allclose(found.mean, X.mean(0), rtol=1e-5)
    np.testing.assert_allclose(found.std, expected.std)
    assert (found.n_constant, found.n_zero, found.first_zero) == (0, 0, -1)
    monkeypatch.setattr(StoredRows, "_read", None)  # no more reading
    assert fingerprint(rows) == fingerprint(X)
    check_values(rows)


def test_statistics_of_parts_are_merged_to_those_of_the_whole():
    values = 1e4 + X.astype(np.float64)
    values[:, 3] = 7
    values[[4, 20]] = 0
    whole, parts = RunningStatistics(), [RunningStatistics(), RunningStatistics(), RunningStatistics()]
    whole.update(0, values, columns=True)
    parts[0].update(0, values[:5], columns=True)
    parts[2].update(5, values[5:], columns=True)  # the middle one saw nothing, as a rank without rows
    together = RunningStatistics()
    for part in parts:
        together.merge(RunningStatistics.from_json(part.to_json()))
    np.testing.assert_allclose(together.summary().std, values.std(0))
    for name in ("n_zero", "first_zero", "n_constant"):
        assert getattr(together.summary(), name) == getattr(whole.summary(), name)


def test_ahead_keeps_the_order_and_passes_errors_on():
    here = threading.get_ident()
    assert all(ident != here for ident in read_ahead(lambda _: threading.get_ident(), range(3)))
    assert list(read_ahead(lambda i: i * i, range(5))) == [0, 1, 4, 9, 16]
    assert list(read_ahead(abs, [])) == []
    found = read_ahead(lambda i: 1 // (2 - i), range(5))
    assert [next(found), next(found)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(found)


def test_expected_rows_are_read_in_another_thread(shards, monkeypatch):
    rows, readers = RowReader(read(shards).X), []
    read_runs = StoredRows._read
    monkeypatch.setattr(
        StoredRows, "_read", lambda self, runs: readers.append(threading.get_ident()) or read_runs(self, runs)
    )
    batch = np.array([1, 9, 22])
    for expected, ahead_of_time in ((batch, True), (batch[:2], False)):
        readers.clear()
        rows.prefetch(expected)
        torch.testing.assert_close(rows[batch], torch.from_numpy(X[batch]))
        assert (threading.get_ident() not in readers) == ahead_of_time


# ---- a fit -----------------------------------------------------------------------------------------------------------


def test_a_fit_from_files_is_the_fit_of_the_array(blobs, tmp_path):
    values = blobs[0].astype(np.float32)
    for i, part in enumerate(np.array_split(values, 4)):
        np.save(tmp_path / f"{i}.npy", part)
    options = SMALL | {"batch_size": 40, "epochs": 3, "max_landmarks": 100}
    from_files, from_array = PRODSC.from_flat(3, **options).fit(tmp_path), PRODSC.from_flat(3, **options).fit(values)
    for name, weight in from_array.network_.state_dict().items():
        assert torch.equal(weight, from_files.network_.state_dict()[name]), name
    np.testing.assert_array_equal(from_files.labels_, from_array.labels_)
    np.testing.assert_array_equal(from_files.predict(tmp_path), from_array.labels_)
    np.testing.assert_array_equal(from_files.predict_proba(tmp_path).max(1), from_array.confidence_)


def test_memory_stays_far_below_the_size_of_the_file(tmp_path):
    n, d = 20_000, 2_000  # 160 MB
    rng, folder = np.random.default_rng(0), tmp_path / "rows"
    folder.mkdir()
    for i in range(2):
        half = np.lib.format.open_memmap(folder / f"{i}.npy", mode="w+", dtype=np.float32, shape=(n // 2, d))
        half[:] = rng.standard_normal((n // 2, 1), np.float32) * rng.standard_normal(d, np.float32) + 0.1
        half.flush()
        del half
    command = [sys.executable, str(Path(__file__).with_name("memory_of_a_fit.py")), str(folder)]
    one_arena = os.environ | {"MALLOC_ARENA_MAX": "1"}  # glibc keeps an arena per thread, up to 60 MB by chance
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=one_arena)
    grew = json.loads(done.stdout)
    assert grew["labels"] == n
    assert grew["fitting"] < 120, grew  # with the rows that outliers and confidence are measured by
    assert grew["labelling"] < 60, grew


def test_a_stored_file_is_only_behind_a_whole_map(tmp_path):
    np.save(tmp_path / "X.npy", X)
    np.save(tmp_path / "F.npy", np.asfortranarray(X))
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert StoredFile.behind(mapped) is not None
    for other in (mapped[1:], mapped.T, np.load(tmp_path / "F.npy", mmap_mode="r"), np.load(tmp_path / "X.npy", "c")):
        assert StoredFile.behind(other) is None
        np.testing.assert_array_equal(stored.on_disk(other), other)


def test_a_parquet_file_is_not_kept_while_it_is_read(tmp_path):
    """16 row groups of 4 MB: pyarrow would keep each that it has read ahead."""
    block = np.random.default_rng(0).standard_normal((1000, 1000), np.float32)
    column = pa.FixedSizeListArray.from_arrays(pa.array(block.reshape(-1)), 1000)
    with pq.ParquetWriter(tmp_path / "X.parquet", pa.schema([("X", column.type)])) as writer:
        for _ in range(16):
            writer.write_table(pa.table({"X": column}))
    del column
    with ExitStack() as stack:
        before = pa.total_allocated_bytes()
        held = [
            pa.total_allocated_bytes() - before
            for _ in tables.open_parquet(tmp_path / "X.parquet", stack).batches([0], tables.BATCH_ROWS)
        ]
    assert max(held) < 24e6
