"""Every command that reads takes a file or the name of a data set; columns that have names are matched by name."""

import csv
import io
import json

import numpy as np
import pytest
from test_fit import QUICK, labels_in, prodsc, sentence


@pytest.fixture(scope="module")
def digits_run(tmp_path_factory):
    run = tmp_path_factory.mktemp("digits") / "run"
    done = prodsc("fit", "digits", "-k", 10, "--out", run, *QUICK)
    assert done.returncode == 0, done.stderr
    return run


def test_predict_takes_a_data_set_by_name(digits_run):
    done = prodsc("predict", digits_run, "digits")
    assert done.returncode == 0, done.stderr
    labels = [int(row["label"]) for row in csv.DictReader(io.StringIO(done.stdout))]
    assert labels == labels_in(digits_run / "labels.csv")
    assert "ACC" in done.stderr  # the labels of the data set score it, as in `fit`


def test_diagnose_takes_a_data_set_by_name(digits_run):
    done = prodsc("diagnose", digits_run, "digits")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] in ("healthy", "collapsing", "collapsed")


@pytest.mark.parametrize("command", ["predict", "diagnose"])
def test_a_misspelt_name_gets_a_suggestion(command, digits_run):
    assert "no data set 'digit'; did you mean 'digits'?" in sentence(prodsc(command, digits_run, "digit"))


def test_a_data_set_of_one_file_is_fitted_by_its_name(tmp_path, monkeypatch, blobs):
    (tmp_path / "store").mkdir()
    np.savez(tmp_path / "store" / "reuters10k.npz", X=blobs[0].astype(np.float32), y=blobs[1], some=blobs[1] - 1)
    monkeypatch.setenv("PRODSC_DATA", str(tmp_path / "store"))
    out = tmp_path / "run"
    done = prodsc("fit", "reuters-10k", "-k", 3, "--known-labels", "some", "--out", out, *QUICK)
    assert done.returncode == 0, done.stderr
    assert json.loads((out / "run.json").read_text())["file"] == "reuters-10k"
    written = json.loads((out / "result.json").read_text())["data"]["file"]
    assert written == str(tmp_path / "store" / "reuters10k.npz")
    (tmp_path / "moved").mkdir()
    (tmp_path / "store" / "reuters10k.npz").rename(tmp_path / "moved" / "reuters10k.npz")
    monkeypatch.setenv("PRODSC_DATA", str(tmp_path / "moved"))  # a run knows its data by name, wherever they are
    exported = prodsc("export", out, "--table", tmp_path / "t.csv", "--no-features")
    assert exported.returncode == 0, exported.stderr


@pytest.fixture(scope="module")
def named_columns(tmp_path_factory):
    """A table of three clear groups with named columns, and a run fitted on it."""
    folder = tmp_path_factory.mktemp("table")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4)) + 9 * np.eye(4)[np.repeat([0, 1, 2], 30)]
    names = ["age", "height", "weight", "income"]
    write_table(folder / "t.csv", names, X)
    done = prodsc("fit", folder / "t.csv", "-k", 3, "--out", folder / "run", *QUICK)
    assert done.returncode == 0, done.stderr
    return folder, names, X


def write_table(path, names, X):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([names, *X.tolist()])


def test_columns_are_matched_by_name(named_columns):
    folder, names, X = named_columns
    assert json.loads((folder / "run" / "model.json").read_text())["feature_names_in"] == names
    write_table(folder / "turned.csv", names[::-1], X[:, ::-1])
    done = prodsc("predict", folder / "run", folder / "turned.csv")
    assert done.returncode == 0, done.stderr
    labels = [int(row["label"]) for row in csv.DictReader(io.StringIO(done.stdout))]
    assert labels == labels_in(folder / "run" / "labels.csv")


def test_a_column_that_is_missing_is_one_sentence(named_columns):
    folder, names, X = named_columns
    write_table(folder / "other.csv", [*names[:3], "wages"], X)
    said = sentence(prodsc("predict", folder / "run", folder / "other.csv"))
    assert "must have the 4 columns that the model was fitted on" in said
    assert "income" in said
    assert "wages" in said
