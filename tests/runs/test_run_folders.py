"""The folder of a run: what --overwrite may replace, what --resume must notice, and what a page must not cost."""

import json
import os
import shutil
import signal
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from golden.cases import HERE as GOLDEN
from prodsc import PRODSC, files, manifest
from prodsc.errors import InputError, Interrupted, ModelFileError, OutputError
from prodsc.runs import run as module
from prodsc.runs.past_run import open_run
from prodsc.runs.run import FitRequest, run, size_notes

TINY = {"n_clusters": 2, "hidden_size": 4, "n_components": 4, "epochs": 2, "warmup_steps": 2, "n_init": 1}
RNG = np.random.default_rng(0)
X = (np.repeat([[4.0], [-4.0]], 30, axis=0) + RNG.standard_normal((60, 5))).astype(np.float32)
Y = np.repeat([0, 1], 30)


@pytest.fixture(autouse=True)
def quick_page(monkeypatch):
    """A page takes seconds, and these tests do not look at it."""
    monkeypatch.setattr("prodsc.report.fit_page.write_fit_page", lambda path, *_, **__: path.write_text("<html>"))


@pytest.fixture
def data(tmp_path):
    np.save(tmp_path / "X.npy", X)
    return tmp_path / "X.npy"


def request_of(data, out, **more):
    return FitRequest(data, out, **({"labels": None, "parameters": TINY} | more))


def stop_before_training(monkeypatch, request):
    """Killed after run.json was written and before the first checkpoint."""
    with monkeypatch.context() as patch:
        patch.setattr(PRODSC, "fit", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(Interrupted):
            run(request)


def contents(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


# ---- --overwrite -----------------------------------------------------------------------------------------------------


def test_an_overwritten_stopped_run_starts_anew(data, tmp_path, monkeypatch):
    stop_before_training(monkeypatch, request_of(data, tmp_path / "run"))
    other = request_of(data, tmp_path / "run", parameters=TINY | {"n_clusters": 3})
    other.prepare(overwrite=True)
    stop_before_training(monkeypatch, other)
    assert FitRequest.read(tmp_path / "run").parameters["n_clusters"] == 3


@pytest.mark.parametrize("name", ["labels.csv", "report.html", "manifest.json", "checkpoint.safetensors"])
def test_files_of_the_user_are_never_replaced(data, tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises((OutputError, ModelFileError), match=name):
        request_of(data, tmp_path).prepare(overwrite=True)
    assert (tmp_path / name).read_text() == "mine"


def test_other_files_of_the_user_stay(data, tmp_path):
    for k in (2, 3):
        request = request_of(data, tmp_path, parameters=TINY | {"n_clusters": k})
        request.prepare(overwrite=True)
        run(request)
    np.testing.assert_array_equal(np.load(data), X)
    assert open_run(tmp_path).result["parameters"]["n_clusters"] == 3


@pytest.mark.parametrize("option", ["labels", "known_labels", "must_link", "cannot_link", "file"])
def test_an_input_is_never_replaced(data, tmp_path, option):
    run(request_of(data, tmp_path / "run"))
    before = contents(tmp_path / "run")
    path = tmp_path / "run" / "labels.csv"
    request = replace(request_of(data, tmp_path / "run"), **{option: path if option == "file" else str(path)})
    with pytest.raises(OutputError, match=r"labels\.csv is an input of this command"):
        request.prepare(overwrite=True)
    assert contents(tmp_path / "run") == before


def test_a_run_of_version_01_can_be_overwritten(data, tmp_path):
    shutil.copytree(GOLDEN / "run", tmp_path / "run")
    request = request_of(data, tmp_path / "run")
    request.prepare(overwrite=True)
    run(request)
    assert open_run(tmp_path / "run").result["parameters"]["hidden_size"] == 4


# ---- --resume --------------------------------------------------------------------------------------------------------


def test_other_rows_are_noticed_before_the_first_checkpoint(data, tmp_path, monkeypatch):
    stop_before_training(monkeypatch, request_of(data, tmp_path / "run"))
    np.save(data, X + 1)
    with pytest.raises(InputError, match=r"X\.npy holds other data than when the run"):
        run(FitRequest.read(tmp_path / "run"), resume=True)
    np.save(data, X)
    run(FitRequest.read(tmp_path / "run"), resume=True)
    np.testing.assert_array_equal(open_run(tmp_path / "run").labels, PRODSC.from_flat(**TINY).fit_predict(X))


def test_other_pairs_are_noticed_before_the_first_checkpoint(data, tmp_path, monkeypatch):
    (tmp_path / "pairs.csv").write_text("0,1\n")
    monkeypatch.chdir(tmp_path)
    stop_before_training(monkeypatch, request_of(data, tmp_path / "run", must_link="pairs.csv"))
    (tmp_path / "pairs.csv").write_text("0,2\n")
    with pytest.raises(InputError, match=r"pairs\.csv holds other data"):
        run(FitRequest.read(tmp_path / "run"), resume=True)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"file": 3}', "[" * 100_000])
def test_a_damaged_request_is_one_sentence(data, tmp_path, monkeypatch, content):
    stop_before_training(monkeypatch, request_of(data, tmp_path / "run"))
    (tmp_path / "run" / "run.json").write_text(content)
    with pytest.raises(ModelFileError, match=r"run\.json does not match its digest"):
        FitRequest.read(tmp_path / "run")
    (tmp_path / "run" / "manifest.json").unlink()  # as in a run of version 0.1
    with pytest.raises(ModelFileError, match=r"run\.json is damaged"):
        FitRequest.read(tmp_path / "run")


# ---- integrity -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run.json", "result.json", "labels.csv", "model.json", "model.safetensors"])
def test_a_changed_file_of_a_run_is_named(data, tmp_path, name):
    run(request_of(data, tmp_path / "run"))
    content = bytearray((tmp_path / "run" / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "run" / name).write_bytes(content)
    with pytest.raises(ModelFileError, match=name.replace(".", r"\.")):
        _ = open_run(tmp_path / "run").model


@pytest.mark.parametrize(
    ("name", "key", "value"),
    [
        ("model.json", "n_features_in", None),
        ("model.json", "feature_names_in", 3),
        ("model.json", "image_shape", "x" * 1000),
        ("model.json", "variance", "1"),
        ("run.json", "labels", [1]),
        ("run.json", "must_link", True),
        ("run.json", "parameters", {"rows": 1}),
        ("run.json", "inputs", []),
    ],
)
def test_a_value_that_cannot_be_is_one_sentence_though_the_digest_is_right(data, tmp_path, name, key, value):
    run(request_of(data, tmp_path / "run"))
    path = tmp_path / "run" / name
    with manifest.replaced(path.parent) as path_of:
        files.write_json(path_of(name), json.loads(path.read_text()) | {key: value})
    with pytest.raises(ModelFileError, match="damaged") as caught:
        open_run(path.parent).model.predict(X)
    assert len(str(caught.value)) < 500


def test_a_label_of_many_digits_is_one_sentence_though_the_digest_is_right(data, tmp_path):
    run(request_of(data, tmp_path / "run"))
    with manifest.replaced(tmp_path / "run") as path_of:
        files.write_text(path_of("labels.csv"), f"row,label,confidence\n0,{'9' * 40},1.0\n")
    with pytest.raises(ModelFileError, match=r"damaged .OverflowError"):
        open_run(tmp_path / "run")


def test_every_file_of_a_run_is_listed(data, tmp_path):
    run(request_of(data, tmp_path / "run"))
    listed = json.loads((tmp_path / "run" / "manifest.json").read_text())["files"]
    assert {p.name for p in (tmp_path / "run").iterdir()} == {*listed, "manifest.json"}


# ---- what only the page needs ----------------------------------------------------------------------------------------


def with_object_ids(folder):
    np.savez(folder / "X.npz", X=X, y=Y, ids=np.array([None] * 60, dtype=object))
    return folder / "X.npz"


def with_object_classes(folder):
    np.savez(folder / "X.npz", X=X, y=Y, classes=np.array([None, {}], dtype=object))
    return folder / "X.npz"


def with_latin_1_ids(folder):
    np.save(folder / "X.npy", X)
    (folder / "X.ids.txt").write_bytes("\n".join(["Grüße"] * 60).encode("latin-1"))
    return folder / "X.npy"


@pytest.mark.parametrize("make", [with_object_ids, with_object_classes, with_latin_1_ids])
def test_a_finished_fit_is_kept_whatever_the_page_needs(tmp_path, make):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        result = run(request_of(make(tmp_path), tmp_path / "run"))
    assert len(open_run(tmp_path / "run").labels) == 60
    page = tmp_path / "run" / "report.html"
    assert ("report.html" in result.summary().splitlines()[-1]) == page.exists()
    assert page.exists() or any("report.html is not written" in str(w.message) for w in said)


def test_sigterm_while_the_page_is_made_keeps_the_labels(data, tmp_path, monkeypatch):
    whole = run(request_of(data, tmp_path / "whole"))
    with monkeypatch.context() as patch:
        patch.setattr(module, "write_report", lambda *_, **__: os.kill(os.getpid(), signal.SIGTERM))
        with pytest.raises(Interrupted, match=r"while report\.html was made; labels\.csv and the model are kept; cont"):
            run(request_of(data, tmp_path / "run"))
    assert PRODSC.load(tmp_path / "run").labels_.shape == (60,)
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    again = run(FitRequest.read(tmp_path / "run"), resume=True)
    assert again.sizes == whole.sizes


def test_a_relative_path_of_labels_is_stored_as_an_absolute_one(data, tmp_path, monkeypatch):
    np.save(tmp_path / "y.npy", Y)
    monkeypatch.chdir(tmp_path)
    run(request_of(data, Path("run"), labels="y.npy"))
    (tmp_path / "elsewhere").mkdir()
    np.save(tmp_path / "elsewhere" / "y.npy", 1 - Y)
    monkeypatch.chdir(tmp_path / "elsewhere")
    np.testing.assert_array_equal(open_run(tmp_path / "run").data.y, Y)


def test_the_name_of_an_array_stays_a_name(tmp_path, monkeypatch):
    np.savez(tmp_path / "X.npz", X=X, truth=Y)
    (tmp_path / "truth").write_text("a file of the same name")
    monkeypatch.chdir(tmp_path)
    run(request_of(tmp_path / "X.npz", tmp_path / "run", labels="truth"))
    assert FitRequest.from_json(json.loads((tmp_path / "run" / "run.json").read_text()), tmp_path).labels == "truth"


# ---- doubtful clusters -----------------------------------------------------------------------------------------------


def test_one_group_cut_into_clusters_is_told():
    rows = np.random.default_rng(0).standard_normal((600, 50))
    rows[594:597, 0] += 6
    rows[597:, 1] += 6  # one cluster has 99 % of the rows
    model = PRODSC.from_flat(3, hidden_size=32, n_components=16, epochs=20, on_collapse="ignore").fit(rows)
    (note,) = size_notes(model.labels_, model.confidence_)
    assert "one large group was cut" in note
    clear = PRODSC.from_flat(**TINY | {"epochs": 20}).fit(X)
    assert size_notes(clear.labels_, clear.confidence_) == []


def test_one_cluster_of_almost_all_rows_is_told():
    (note,) = size_notes(np.repeat([0, 1], [594, 6]), np.ones(600))
    assert note.startswith("one cluster holds 99.0 % of the rows")
