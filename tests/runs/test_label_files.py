"""Labels of many rows into files: the same as `predict`, from and to every format, after any interruption."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import prodsc
from conftest import union_of_subspaces
from prodsc.cli import main
from prodsc.errors import InputError, OutputError, ParameterError
from prodsc.runs import label_files
from prodsc.sources import shards

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

ROWS = 700


@pytest.fixture(scope="module")
def X():
    rows, _ = union_of_subspaces(n_per_class=ROWS // 3 + 1, n_classes=3)
    return np.random.default_rng(0).permutation(rows)[:ROWS].astype(np.float32)


@pytest.fixture(scope="module")
def run(X, tmp_path_factory) -> Path:
    """The folder of a small model."""
    folder = tmp_path_factory.mktemp("bulk") / "run"
    prodsc.make("pro-dsc", n_clusters=3, random_state=0, epochs=2, hidden_size=16, n_components=8).fit(X).save(folder)
    return folder


@pytest.fixture
def small(monkeypatch):
    """Shards of 100 rows in blocks of 30, so that a few rows are many of both."""
    monkeypatch.setattr(shards.list_shards, "__defaults__", (100,))
    monkeypatch.setattr(shards, "BLOCK_ROWS", 30)
    monkeypatch.setattr(label_files, "BLOCK_ROWS", 30)


def vectors(X):
    return pa.table({"X": pa.FixedSizeListArray.from_arrays(X.ravel(), X.shape[1])})


def columns(X):
    return pa.table({f"c{j}": X[:, j] for j in range(X.shape[1])})


def as_npy(X, folder):
    np.save(folder / "rows.npy", X)
    return folder / "rows.npy"


def as_folder(X, folder):
    (folder / "rows").mkdir()
    for i, part in enumerate(np.array_split(X, 4)):
        np.save(folder / "rows" / f"{i}.npy", part)
    np.save(folder / "rows" / "labels.npy", np.zeros(len(X), int))
    return folder / "rows"


def as_parquet(X, folder, group=64):
    pq.write_table(vectors(X), folder / "rows.parquet", row_group_size=group)
    return folder / "rows.parquet"


def as_lance(X, folder):
    lance = pytest.importorskip("lance")
    lance.write_dataset(vectors(X), str(folder / "rows.lance"))
    return folder / "rows.lance"


INPUTS = {
    "npy": as_npy,
    "folder": as_folder,
    "parquet": as_parquet,
    "one row group": lambda X, folder: as_parquet(X, folder, len(X)),
    "groups of one row": lambda X, folder: as_parquet(X, folder, 1),
    "address": lambda X, folder: as_parquet(X, folder).as_uri(),
    "lance": as_lance,
    "iterator": lambda X, folder: iter(np.array_split(X, 9)),
    "array": lambda X, folder: X,
}


@pytest.mark.parametrize("kind", INPUTS)
def test_labels_from_every_source_are_those_of_predict(kind, X, run, small, tmp_path):
    source = INPUTS[kind](X, tmp_path)
    out = tmp_path / "labels.npy"
    assert prodsc.predict_to_file(run, source, out) == len(X)
    np.testing.assert_array_equal(np.load(out), prodsc.load(run).predict(X))
    assert sorted(path.name for path in tmp_path.glob("labels*")) == ["labels.npy"]  # no part is left


@pytest.mark.parametrize("table", [columns, vectors])
def test_parquet_has_confidence_and_outlier_scores(table, X, run, small, tmp_path):
    pq.write_table(table(X).append_column("y", pa.array(np.zeros(len(X)))), tmp_path / "rows.parquet")
    prodsc.predict_to_file(run, tmp_path / "rows.parquet", tmp_path / "out.parquet", with_outliers=True)
    written = pq.read_table(tmp_path / "out.parquet")
    assert written.column_names == ["label", "confidence", "outlier"]
    labels, confidence, outlier = (np.concatenate(p) for p in zip(*prodsc.load(run).labelled(X), strict=True))
    np.testing.assert_array_equal(written["label"], labels)
    np.testing.assert_allclose(written["confidence"], confidence, atol=1e-5)
    np.testing.assert_allclose(written["outlier"], outlier, atol=1e-3)


def test_labels_become_columns_of_the_lance_data_set(X, run, small, tmp_path):
    lance = pytest.importorskip("lance")
    source = as_lance(X, tmp_path)
    prodsc.predict_to_file(run, source, source)
    table = lance.dataset(str(source)).to_table()
    assert table.column_names == ["X", "label", "confidence"]
    np.testing.assert_array_equal(table["label"], prodsc.load(run).predict(X))
    np.testing.assert_array_equal(np.stack(table["X"].to_numpy()), X)
    with pytest.raises(OutputError, match="label"):
        prodsc.predict_to_file(run, source, source)
    prodsc.predict_to_file(run, source, source, overwrite=True)
    assert lance.dataset(str(source)).count_rows() == len(X)
    prodsc.predict_to_file(run, source, tmp_path / "other.lance")
    assert lance.dataset(str(tmp_path / "other.lance")).to_table().column_names == ["label", "confidence"]


@pytest.mark.parametrize("kind", ["npy", "folder", "parquet", "lance", "iterator"])
def test_an_interrupted_call_continues_with_what_is_left(kind, X, run, small, tmp_path, monkeypatch):
    labelled, blocks = label_files.LabelTask.of_block, []

    def counted(task, block):
        blocks.append(len(block))
        if sum(blocks) > 450:
            raise KeyboardInterrupt
        return labelled(task, block)

    out = tmp_path / "labels.npy"
    monkeypatch.setattr(label_files.LabelTask, "of_block", counted)
    with pytest.raises(KeyboardInterrupt):
        prodsc.predict_to_file(run, INPUTS[kind](X, tmp_path), out)
    assert not out.exists()
    blocks.clear()
    monkeypatch.setattr(label_files.LabelTask, "of_block", lambda t, b: (blocks.append(len(b)), labelled(t, b))[1])
    again = iter(np.array_split(X, 9)) if kind == "iterator" else next(tmp_path.glob("rows*"))
    prodsc.predict_to_file(run, again, out)
    np.testing.assert_array_equal(np.load(out), prodsc.load(run).predict(X))
    assert sum(blocks) < len(X) - 300  # the finished shards were not labelled again


def test_a_kill_loses_and_doubles_nothing(X, run, tmp_path):
    source, out = as_npy(X, tmp_path), tmp_path / "labels.npy"
    code = f"""
import os, signal, prodsc
from prodsc.runs import label_files
from prodsc.sources import shards
shards.list_shards.__defaults__ = (100,)
labelled = label_files.LabelTask.of_shard
def killed(task, shard):
    if shard.start == 400:
        os.kill(os.getpid(), signal.SIGKILL)
    return labelled(task, shard)
label_files.LabelTask.of_shard = killed
prodsc.predict_to_file({str(run)!r}, {str(source)!r}, {str(out)!r})
"""
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)})
    assert done.returncode == -signal.SIGKILL
    assert len([*tmp_path.glob("labels.npy.parts/*.npy")]) == 4
    prodsc.predict_to_file(run, source, out)
    np.testing.assert_array_equal(np.load(out), prodsc.load(run).predict(X))


def test_parts_of_another_model_or_source_are_not_used(X, run, small, tmp_path):
    source, out = as_npy(X, tmp_path), tmp_path / "labels.npy"
    parts = tmp_path / "labels.npy.parts"
    parts.mkdir()
    (parts / "job.json").write_text('{"digest": "of another", "source": []}')
    np.save(parts / "000000.npy", np.zeros(100))
    prodsc.predict_to_file(run, source, out)
    np.testing.assert_array_equal(np.load(out), prodsc.load(run).predict(X))


def test_rows_with_missing_values_have_no_label(X, run, small, tmp_path):
    with_gap = X.copy()
    with_gap[[0, 123], 3] = np.nan
    np.save(tmp_path / "rows.npy", with_gap)
    with pytest.raises(InputError, match="NaN"):
        prodsc.predict_to_file(run, tmp_path / "rows.npy", tmp_path / "labels.npy")
    choice = prodsc.sources.choice.ColumnChoice(impute="drop")
    prodsc.predict_to_file(run, tmp_path / "rows.npy", tmp_path / "labels.npy", choice=choice)
    expected = prodsc.load(run).predict(X)
    expected[[0, 123]] = -1
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected)


def test_bad_requests_get_one_sentence(X, run, tmp_path):
    source = as_npy(X, tmp_path)
    with pytest.raises(OutputError, match="must end in"):
        prodsc.predict_to_file(run, source, tmp_path / "labels.txt")
    (tmp_path / "there.npy").touch()
    with pytest.raises(OutputError, match="exists"):
        prodsc.predict_to_file(run, source, tmp_path / "there.npy")
    with pytest.raises(OutputError, match="is an input of this command"):
        prodsc.predict_to_file(run, source, source, overwrite=True)
    with pytest.raises(ParameterError, match="engine"):
        prodsc.predict_to_file(run, source, tmp_path / "labels.npy", engine="spark")
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(InputError, match=r"damaged\.parquet"):
        prodsc.predict_to_file(run, tmp_path / "damaged.parquet", tmp_path / "labels.npy")


def test_the_command_writes_by_the_ending_of_its_output(X, run, small, tmp_path, capsys):
    source = as_npy(X, tmp_path)
    expected = prodsc.load(run).predict(X)
    for name in ("labels.npy", "labels.parquet"):
        with pytest.raises(SystemExit) as end:
            main(["predict", str(run), str(source), "-o", str(tmp_path / name), "--outliers"])
        assert end.value.code == 0
        assert f"{len(X)} rows labelled" in capsys.readouterr().err
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), expected)
    np.testing.assert_array_equal(pq.read_table(tmp_path / "labels.parquet")["label"], expected)
    assert "outlier" in pq.read_schema(tmp_path / "labels.parquet").names
