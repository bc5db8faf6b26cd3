"""Files that were once misread, crashed the process or took gigabytes: each is refused in a sentence or read right."""

import json
import os
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from corpus.make_corpus import ACCEPTED, ARCHIVES, REFUSED, SOUND
from prodsc import load, make
from prodsc.errors import InputError, ModelFileError, RecipeError
from prodsc.extract.inputs import text_column
from prodsc.files import sha256
from prodsc.runs.recipes import load_recipe
from prodsc.sources.archives import cifar10_test_images, idx_images, uci_har
from prodsc.sources.arrays import array_of
from prodsc.sources.door import open_source
from prodsc.sources.formats import OPENERS
from prodsc.sources.readers import read, read_labels


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def one_sentence(message: str) -> bool:
    return "\n" not in message and message[-1] in ".?" and len(message) < 1000


@pytest.mark.parametrize("name", REFUSED)
def test_a_file_that_is_refused(name, tmp_path):
    make, sentence = REFUSED[name]
    make(tmp_path / name)
    with pytest.raises(InputError, match=sentence) as caught:
        np.asarray(read(tmp_path / name).X)
    assert one_sentence(str(caught.value))


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_file_that_is_read_right(name, tmp_path):
    make, X, note = ACCEPTED[name]
    make(tmp_path / name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        source = read(tmp_path / name)
    np.testing.assert_array_equal(source.X, X)
    assert source.y is None
    assert len(caught) == bool(note)
    assert re.search(note, " ".join(str(each.message) for each in caught))


@pytest.mark.parametrize("name", [name for name in SOUND if Path(name).suffix in OPENERS])
def test_a_sound_file_is_read(name, tmp_path):
    SOUND[name](tmp_path / name)
    source = read(tmp_path / name)
    assert source.X.shape in ((12, 5), (12, 6))
    assert source.y is None or len(source.y) == 12


def test_a_link_in_a_tar_that_points_to_itself(tmp_path):
    ARCHIVES["self-link.tar"](tmp_path / "self-link.tar")
    with pytest.raises(InputError, match=r"download cifar-10-binary.tar.gz again"):
        cifar10_test_images([tmp_path / "self-link.tar"])


def test_an_idx_file_of_4_billion_empty_images(tmp_path):
    ARCHIVES["empty.idx"](tmp_path / "empty.idx")
    with pytest.raises(InputError, match=r"empty\.idx is not an IDX file of bytes"):
        idx_images([tmp_path / "empty.idx"] * 4)


def test_parts_of_an_archive_that_do_not_belong_together(tmp_path):
    ARCHIVES["columns.zip"](tmp_path / "columns.zip")
    with pytest.raises(InputError, match=r"shapes \(2, 2\), \(2, 3\) .* do not belong together"):
        uci_har([tmp_path / "columns.zip"])
    SOUND["images.idx"](tmp_path / "images.idx")
    with pytest.raises(InputError, match=r"labels of shapes \(3, 4, 4\), \(3, 4, 4\) do not belong together"):
        idx_images([tmp_path / "images.idx"] * 4)


def test_labels_may_be_asked_for_by_the_name_of_a_coordinate(tmp_path):
    (tmp_path / "f.csv").write_text("x,y\n0.5,1\n2.5,3\n")
    source = read(tmp_path / "f.csv", labels="y")
    assert source.columns == ["x"]
    np.testing.assert_array_equal(source.y, [0, 1])


DATES = pd.to_datetime(["2020-01-01", "2020-01-02"])


@pytest.mark.parametrize(
    ("X", "sentence"),
    [
        (np.ma.masked_array([[1.0, 2.0], [3.0, 1e30]], [[0, 0], [0, 1]]), "masked array with 1 masked value"),
        (
            pd.DataFrame({"a": [1.0, 2.0], "b": pd.to_datetime(["2020-01-01", "2020-01-02"])}),
            "not numbers, such as dates",
        ),
        (pd.DataFrame({"b": pd.to_datetime(["2020-01-01", "2020-01-02"])}), "has type datetime64"),
        ({"a": [1, 2]}, "X is a dict; prodsc takes rows"),
        ([[1, 2], [3]], "give rows that all have the same length"),
        ([[1, [2, 3]], [4, [5, 6]]], "give rows that all have the same length"),
        ([[1, 10**400]], "not numbers"),
        (np.array([[1, {}]], dtype=object), "not numbers"),
    ],
)
def test_rows_in_memory_that_are_refused(X, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        open_source(X)
    assert one_sentence(str(caught.value))


def test_missing_values_of_pandas_are_missing_values():
    frame = pd.DataFrame({"a": pd.array([1, None], dtype="Int64"), "b": [0.5, 1.5]})
    np.testing.assert_array_equal(array_of(frame), [[1, 0.5], [np.nan, 1.5]])


def test_a_masked_array_without_masked_values_is_an_array():
    array = array_of(np.ma.masked_array([[1.0, 2.0]], mask=False))
    assert type(array) is np.ndarray


def test_masked_labels_are_refused():
    with pytest.raises(InputError, match="labels is a masked array with 1 masked value"):
        open_source(np.eye(2), labels=np.ma.masked_array([0, 1], [0, 1]))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("a = " + "[" * 5000, "not valid TOML"),
        ("about = 3", "'about' must be a section"),
        ("parameters = [1]", "'parameters' must be a section"),
        ("[about]\nours = 5", "'ours' a list of names"),
        ("[about]\ntitle = 2020-01-01", r"keys of \[about\] must be text"),
    ],
)
def test_odd_recipes(content, sentence, tmp_path):
    (tmp_path / "odd.toml").write_text(content)
    with pytest.raises(RecipeError, match=sentence) as caught:
        load_recipe(str(tmp_path / "odd.toml"))
    assert one_sentence(str(caught.value))


def test_control_characters_of_a_file_are_shown_and_not_sent_to_the_terminal(tmp_path):
    (tmp_path / "f.csv").write_text("\x1b[2Jname,b\ntext,1\nmore,2\n")
    with pytest.raises(InputError) as caught:
        read(tmp_path / "f.csv")
    assert "\x1b" not in str(caught.value)
    assert "\\x1b[2Jname" in str(caught.value)


def test_a_recipe_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.toml")
    with pytest.raises(RecipeError, match="is a pipe, socket or device"):
        load_recipe(str(tmp_path / "pipe.toml"))


def test_a_model_file_that_is_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "model.json")
    with pytest.raises(ModelFileError, match="is a pipe, socket or device"):
        load(tmp_path)


def test_a_list_of_labels_with_one_long_line(tmp_path):
    (tmp_path / "y.txt").write_text("a\n" * 1999 + "x" * 2**19)
    with pytest.raises(InputError, match=r"its labels would take .* more than 100 times as much"):
        read_labels(None, str(tmp_path / "y.txt"))


def test_a_text_of_extract_that_fills_the_memory(tmp_path):
    REFUSED["long-label.parquet"][0](tmp_path / "t.parquet")
    with pytest.raises(InputError, match=r"its text would take .* more than 100 times as much"):
        text_column(tmp_path / "t.parquet", None)


def test_names_of_rows_that_are_not_utf8_are_one_sentence(tmp_path):
    np.save(tmp_path / "X.npy", np.eye(2))
    (tmp_path / "X.ids.txt").write_bytes(b"Gr\xfc\xdfe\n2")
    with pytest.raises(InputError, match=r"X\.ids\.txt is not text in UTF-8; write one name per line"):
        open_source(tmp_path / "X.npy").ids  # noqa: B018


def test_a_parquet_footer_on_which_pyarrow_ends_the_process(tmp_path):
    """The column is optional; one byte of the footer says another kind, which does not fit its statistics."""
    path = tmp_path / "f.parquet"
    pa.parquet.write_table(pa.table({"c": [1.0, None, 3.0]}), path)
    optional = b"\x15\x0a\x25\x02\x18\x01c"  # DOUBLE, OPTIONAL, name "c"
    content = path.read_bytes()
    assert content.count(optional) == 1
    path.write_bytes(content.replace(optional, optional.replace(b"\x02", b"\x16")))
    with pytest.raises(InputError, match="what it says of its columns is damaged"):
        read(path)


def test_a_table_of_texts_with_two_columns_of_one_name(tmp_path):
    (tmp_path / "f.csv").write_text('n,n\n"one, two",1\nthree,2\n')
    with pytest.raises(InputError, match="several columns 'n'; give each a name of its own"):
        text_column(tmp_path / "f.csv", None)


def test_a_model_with_more_clusters_than_rows(tmp_path):
    """Names for a billion clusters took all memory."""
    model = make("k-means", n_clusters=2).fit(np.random.default_rng(0).normal(size=(20, 3)))
    model.save(tmp_path)
    about = json.loads((tmp_path / "model.json").read_text()) | {"n_clusters": 10**9}
    (tmp_path / "model.json").write_text(json.dumps(about))
    content = json.loads((tmp_path / "manifest.json").read_text())
    content["files"]["model.json"] = sha256(tmp_path / "model.json")
    (tmp_path / "manifest.json").write_text(json.dumps(content))
    with pytest.raises(ModelFileError, match="the number of clusters is 1000000000 for 20 rows"):
        load(tmp_path)
