"""Every command that reads takes a file or the name of a data set; columns that have names are matched by name."""

import csv
import io
import json

import numpy as np
import pandas as pd
import pytest
from test_fit import QUICK, labels_in, prodsc, sentence

from prodsc import PRODSC
from prodsc.cli import main
from prodsc.sources.door import open_source


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
    assert done.stdout.startswith("Representation: ")


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


# ---- ids, texts, dropped columns, missing values ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def people_run(tmp_path_factory, table, blobs):
    """The folder of a fit from a table with ids, texts, a column to drop, known labels and gaps."""
    folder = tmp_path_factory.mktemp("people")
    frame = table.assign(kind=np.array(["a", "b", "c"])[blobs[1]], note="bought, twice", town="Graz")
    frame.insert(0, "key", [f"K{i:03d}" for i in range(150)])
    frame.loc[[3, 77], "c1"] = np.nan
    frame.to_csv(folder / "rows.csv", index=False)
    words = ["--id", "key", "--text", "note", "--drop", "town", "--labels", "kind", "-k", 3, *QUICK]
    refused = prodsc("fit", folder / "rows.csv", *words, "--out", folder / "no")
    assert "2 rows with NaN or infinity (inf) (first: row 3, NaN): c1 2. Drop or impute" in sentence(refused)
    for how in ("median", "drop"):
        done = prodsc("fit", folder / "rows.csv", *words, "--impute", how, "--out", folder / how)
        assert done.returncode == 0, done.stderr
    return folder


def rows_of(text):
    return list(csv.DictReader(io.StringIO(text)))


def test_ids_are_in_labels_and_predictions(people_run, tmp_path):
    fitted = rows_of((people_run / "median" / "labels.csv").read_text())
    assert [row["id"] for row in fitted] == [f"K{i:03d}" for i in range(150)]
    frame = pd.read_csv(people_run / "rows.csv")
    frame[frame.columns[::-1]].to_csv(tmp_path / "new.csv", index=False)  # the next day, in another order
    done = prodsc("predict", people_run / "median", tmp_path / "new.csv")  # gaps are filled as those of the fit
    assert done.returncode == 0, done.stderr
    again = rows_of(done.stdout)
    assert [(row["id"], row["label"]) for row in again] == [(row["id"], row["label"]) for row in fitted]
    frame.drop(columns=["town", "key", "kind", "note"]).to_csv(tmp_path / "bare.csv", index=False)
    bare = prodsc("predict", people_run / "median", tmp_path / "bare.csv")  # what is no feature may be missing
    assert [row["label"] for row in rows_of(bare.stdout)] == [row["label"] for row in fitted]
    assert "has no column 'nam'" in sentence(
        prodsc("predict", people_run / "median", tmp_path / "bare.csv", "--id", "nam")
    )


def test_dropped_rows_have_no_cluster_in_an_export(people_run, tmp_path):
    fitted = rows_of((people_run / "drop" / "labels.csv").read_text())
    assert [int(row["row"]) for row in fitted] == [i for i in range(150) if i not in (3, 77)]
    done = prodsc("export", people_run / "drop", "--table", tmp_path / "t.csv")
    assert done.returncode == 0, done.stderr
    exported = rows_of((tmp_path / "t.csv").read_text())
    assert [row["key"] for row in exported if not row["cluster"]] == ["K003", "K077"]
    labels = {row["id"]: row["label"] for row in fitted}
    assert all(row["cluster"] == labels[row["key"]] for row in exported if row["cluster"])
    assert prodsc("diagnose", people_run / "drop", people_run / "rows.csv").returncode == 0
    assert prodsc("report", people_run / "drop").returncode == 0


# ---- columns ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def table(blobs):
    return pd.DataFrame(blobs[0].astype(np.float32), columns=[f"c{j}" for j in range(12)])


@pytest.fixture(scope="module")
def table_run(tmp_path_factory, table, blobs):
    """The folder of a fit from a .csv file with a column of labels."""
    folder = tmp_path_factory.mktemp("tables")
    table.assign(kind=np.array(["a", "b", "c"])[blobs[1]]).to_csv(folder / "rows.csv", index=False)
    done = prodsc("fit", folder / "rows.csv", "--labels", "kind", "-k", 3, "--out", folder / "run", *QUICK)
    assert done.returncode == 0, done.stderr
    return folder / "run"


def written(frame, path):
    frame.to_parquet(path) if path.suffix == ".parquet" else frame.to_csv(path, index=False)
    return path


def test_a_fit_from_a_table_keeps_the_names_of_its_columns(table_run, table):
    assert json.loads((table_run / "model.json").read_text())["feature_names_in"] == list(table.columns)
    assert PRODSC.load(table_run).feature_names_in_.tolist() == list(table.columns)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_columns_in_another_order_get_the_same_labels(suffix, table_run, table, tmp_path):
    straight = written(table, tmp_path / f"straight{suffix}")
    turned = written(table[list(table.columns)[::-1]], tmp_path / f"turned{suffix}")
    for path in (straight, turned):
        done = prodsc("predict", table_run, path, "-o", tmp_path / f"{path.stem}.labels.csv")
        assert done.returncode == 0, done.stderr
        assert labels_in(tmp_path / f"{path.stem}.labels.csv") == labels_in(table_run / "labels.csv")
    model = PRODSC.load(table_run)
    for X in (turned, str(turned), open_source(turned)):
        np.testing.assert_array_equal(model.predict(X), labels_in(table_run / "labels.csv"))
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):  # a frame: as scikit-learn
        model.predict(table.iloc[:, ::-1])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda t: t.drop(columns="c3"), "but it lacks c3; rename or add"),
        (lambda t: t.rename(columns={"c3": "z"}), "but it lacks c3 and also has z; rename or add"),
        (lambda t: t.assign(z=1.0), "but it also has z; drop them (--drop), or name the one with labels"),
    ],
    ids=["missing", "renamed", "additional"],
)
def test_a_wrong_column_is_one_sentence(change, words, table_run, table, tmp_path):
    changed = change(table)
    said = sentence(prodsc("predict", table_run, written(changed, tmp_path / "new.csv")))
    assert "the 12 columns that the model was fitted on" in said
    assert words in said
    with pytest.raises(ValueError, match="feature names should match those that were passed during fit"):
        PRODSC.load(table_run).predict(changed)


def test_diagnose_matches_columns_by_name_too(table_run, table, tmp_path):
    straight = prodsc("diagnose", table_run, written(table, tmp_path / "straight.csv"))
    turned = prodsc("diagnose", table_run, written(table.iloc[:, ::-1], tmp_path / "turned.csv"))
    assert straight.returncode == turned.returncode == 0, turned.stderr
    assert straight.stdout == turned.stdout


def test_rows_without_names_are_taken_in_their_order(table_run, table, tmp_path):
    np.save(tmp_path / "rows.npy", table.to_numpy())
    done = prodsc("predict", table_run, tmp_path / "rows.npy", "-o", tmp_path / "labels.csv")
    assert done.returncode == 0, done.stderr
    assert labels_in(tmp_path / "labels.csv") == labels_in(table_run / "labels.csv")


def test_control_characters_of_names_do_not_reach_the_terminal(tmp_path, capfd):
    """In an error, a note and a usage error."""
    name = tmp_path / "\x1b[2Jevil.csv"
    name.write_text("id,\x1b[31mb\n" + "".join(f"{i},x\n" for i in range(12)))
    run = str(tmp_path / "run")
    for words in (
        ["fit", str(name), "-k", "2", "--out", run],
        ["k", str(name)],
        ["fit", str(name), "--no-such\x1b[2J"],
    ):
        with pytest.raises(SystemExit):
            main(words)
        out, err = capfd.readouterr()
        assert "\x1b[2J" not in out + err
        assert "\x1b[31m" not in out + err
        assert "\\x1b[2J" in err
