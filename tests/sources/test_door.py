"""One door: whatever a user has is opened by one function, with all that is known about its rows."""

import subprocess
import sys

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch

from prodsc.errors import InputError, ParameterError
from prodsc.sources import stored
from prodsc.sources.door import canonical_name, open_source
from prodsc.sources.rows import as_array, column_names
from prodsc.sources.stored import StoredRows

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
Y = np.array([7, 7, 3, 3, 3, 9, 9, 7, 3, 9, 9, 7])
CODES = np.array([1, 1, 0, 0, 0, 2, 2, 1, 0, 2, 2, 1])
KINDS = np.array(["a", "b", "c"])[CODES]
NAMES = ["p", "q", "r"]


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """A project folder without data, and an empty cache."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PRODSC_DATA", raising=False)
    return tmp_path


def frame(**more):
    return pd.DataFrame(X, columns=NAMES).assign(**more)


def test_a_file_with_all_that_it_knows(alone):
    path = alone / "own.npz"
    np.savez(path, X=X, y=CODES, ids=np.array([f"row {i}" for i in range(12)]), classes=np.array(["x", "y", "z"]))
    source = open_source(path)
    np.testing.assert_array_equal(source.X, X)
    np.testing.assert_array_equal(source.y, CODES)
    assert source.ids == [f"row {i}" for i in range(12)]
    assert (source.name, source.path, source.location) == ("own", path, str(path))
    assert (source.columns, source.class_names, source.info) == (None, ["x", "y", "z"], None)


def test_a_table_has_column_names_and_text_labels_are_class_names(alone):
    frame(kind=KINDS).to_csv(alone / "t.csv", index=False)
    source = open_source(str(alone / "t.csv"), labels="kind")
    assert source.columns == NAMES
    assert source.class_names == ["a", "b", "c"]
    np.testing.assert_array_equal(source.y, CODES)
    frame(kind=KINDS, known=Y).to_csv(alone / "u.csv", index=False)
    assert open_source(alone / "u.csv", labels="kind", exclude=["known"]).columns == NAMES


def test_a_folder_of_files(alone):
    (alone / "rows").mkdir()
    for i, part in enumerate(np.array_split(X, 3)):
        np.save(alone / "rows" / f"{i}.npy", part)
    source = open_source(alone / "rows")
    assert isinstance(source.X, StoredRows)
    np.testing.assert_array_equal(source.X, X)
    assert (source.name, source.ids) == ("rows", None)


def test_a_computed_data_set():
    source = open_source("digits")
    assert (source.X.shape, len(set(source.y)), source.name) == ((1797, 64), 10, "digits")
    assert source.info.image == (8, 8)
    assert (source.path, source.location, source.ids) == (None, "digits", None)
    with pytest.raises(InputError, match="--labels does not go with the named set digits, which has its own"):
        open_source("digits", labels="y")


def test_a_data_set_of_one_file(alone):
    (alone / "project" / "data").mkdir()
    path = alone / "project" / "data" / "reuters10k.npz"
    np.savez(path, X=X, y=CODES, other=Y == 9, ids=np.arange(12))
    source = open_source("reuters-10k")
    assert (source.name, source.path, source.info.name) == ("reuters-10k", path, "reuters-10k")
    assert "this is not the published data" in " ".join(source.notes)
    assert source.ids[3] == "3"
    np.testing.assert_array_equal(open_source("reuters-10k", labels="other").y, Y == 9)


def test_a_part_of_a_file_has_its_own_ids(alone):
    np.savez(alone / "own.npz", X=X, y=CODES, split=[0, 1] * 6, ids=np.arange(12))
    test = open_source(alone / "own.npz", split="test")
    assert test.split == "test"
    np.testing.assert_array_equal(test.X, X[1::2])
    np.testing.assert_array_equal(test.y, CODES[1::2])
    assert test.ids == ["1", "3", "5", "7", "9", "11"]


@pytest.mark.parametrize("kind", ["array", "list", "tensor", "bfloat16", "pandas", "polars", "map"])
def test_what_is_in_memory(kind, alone):
    np.save(alone / "X.npy", X)
    given = {
        "array": X,
        "list": X.tolist(),
        "tensor": torch.from_numpy(X).requires_grad_(),
        "bfloat16": torch.from_numpy(X).bfloat16(),
        "pandas": frame(),
        "polars": pl.DataFrame(X, schema=NAMES),
        "map": np.load(alone / "X.npy", mmap_mode="r"),
    }[kind]
    source = open_source(given, labels=KINDS.tolist())
    np.testing.assert_allclose(source.X, X, rtol=1e-2 if kind == "bfloat16" else 1e-6)
    assert source.columns == (NAMES if kind in ("pandas", "polars") else None)
    np.testing.assert_array_equal(source.y, CODES)
    assert (source.class_names, source.ids, source.path) == (["a", "b", "c"], None, None)


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame])
def test_a_column_of_a_frame_can_be_the_labels(make):
    given = make({**{name: X[:, j] for j, name in enumerate(NAMES)}, "kind": KINDS, "extra": KINDS})
    source = open_source(given, labels="kind", exclude=["extra"])
    np.testing.assert_array_equal(source.X, X)
    np.testing.assert_array_equal(source.y, CODES)
    assert source.columns == NAMES


def test_an_opened_source_is_an_input_too(alone):
    frame().to_csv(alone / "t.csv", index=False)
    source = open_source(alone / "t.csv")
    assert open_source(source) is source
    assert column_names(source) == NAMES
    np.testing.assert_allclose(as_array(source), X, rtol=1e-6)
    np.testing.assert_allclose(as_array(source, columns=NAMES[::-1]), X[:, ::-1], rtol=1e-6)
    assert as_array("digits").shape == (1797, 64)
    assert column_names("digits") is None


@pytest.mark.parametrize(
    ("given", "options", "sentence"),
    [
        ("minst", {}, "no data set 'minst'; did you mean 'mnist'"),
        ("none.npy", {}, "none.npy does not exist"),
        (X, {"labels": [1, 2]}, "labels has 2 labels for 12 rows"),
        (X, {"labels": np.ones((12, 2))}, r"labels must be one per row; they have shape \(12, 2\)"),
        (X, {"labels": "kind"}, "labels='kind' is not a column of the rows in memory"),
        (np.array([["a"]]), {}, "holds text"),
    ],
)
def test_mistakes_are_one_sentence(given, options, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        open_source(given, **options)
    assert "\n" not in str(caught.value)


def test_only_files_and_data_sets_have_a_split():
    with pytest.raises(ParameterError, match="split='test' is for files and named data sets"):
        open_source(X, split="test")
    with pytest.raises(ParameterError, match="split='tran' must be one of"):
        open_source(X, split="tran")


def test_a_name_or_an_absolute_path_for_other_processes(alone):
    assert canonical_name("digits") == "digits"
    assert canonical_name("anything.npz") == str(alone / "project" / "anything.npz")
    (alone / "project" / "coil100").touch()  # a name stays a name; ./coil100 is the file
    assert canonical_name("coil100") == "coil100"
    assert canonical_name("./coil100") == str(alone / "project" / "coil100")


def test_rows_can_be_read_where_preadv_is_missing(alone, monkeypatch):
    """As on Windows and older macOS."""
    np.save(alone / "X.npy", X)
    rows = as_array(alone / "X.npy")
    monkeypatch.delattr(stored.os, "preadv")
    monkeypatch.delattr(stored.os, "posix_fadvise", raising=False)
    np.testing.assert_array_equal(rows[np.array([7, 2, 11])], X[[7, 2, 11]])
    np.testing.assert_array_equal(rows, X)
    with (alone / "X.npy").open("r+b") as file:
        file.truncate(140)
    with pytest.raises(InputError, match="has become shorter than it was"):
        rows[:]


@pytest.mark.parametrize("module", ["catalogue", "readers", "door", "named", "fetch"])
def test_importing_the_door_loads_no_heavy_library(module):
    heavy = ["torch", "scipy", "pandas", "pyarrow", "sklearn", "matplotlib", "rich"]
    code = f"import sys, prodsc.sources.{module}; print([name for name in {heavy} if name in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
