"""Labels joined to the input: every cell of the input survives, in its row, whatever the format."""

import csv
import json

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet
import pytest

from prodsc import export, read
from prodsc.errors import InputError, OutputError

N = 7
LABELS = np.array([0, 2, 1, 0, 0, 1, 2])
SURE = np.linspace(0.5, 1, N)
X = np.random.default_rng(0).standard_normal((N, 3)).astype(np.float32)


def lines(path, delimiter=","):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, delimiter=delimiter))


def test_a_csv_keeps_its_text_as_it_was_written(tmp_path):
    source = tmp_path / "in.csv"
    cells = [[f"00{i}", f"{i}.50", 'a, "b"' if i else "=1+1", "" if i == 3 else "é\t<b>"] for i in range(N)]
    with source.open("w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([["id", "x", "kind", "note"], *cells])
    out = export.table(tmp_path / "out.csv", source, LABELS, SURE)
    head, *rows = lines(out)
    assert head == ["id", "x", "kind", "note", "cluster", "confidence"]
    for row, before, label, sure in zip(rows, cells, LABELS, SURE, strict=True):
        assert [cell.removeprefix("'") for cell in row[:4]] == before  # 000 and 1.50 are as they were
        assert (int(row[4]), float(row[5])) == (label, sure)
    typed = pa.parquet.read_table(export.table(tmp_path / "out.parquet", source, LABELS))
    assert typed.column("id").to_pylist() == [row[0] for row in cells]  # a name that looks like a number stays a name
    assert typed.column("note").to_pylist() == [row[3] for row in cells]
    assert typed.column("x").to_pylist() == [float(row[1]) for row in cells]
    assert typed.column("cluster").to_pylist() == LABELS.tolist()


def test_other_delimiters_row_names_and_no_header(tmp_path):
    (tmp_path / "a.csv").write_text(";x;z\n" + "".join(f"r{i};{i};{i + 1}\n" for i in range(N)))
    assert lines(export.table(tmp_path / "a.out.csv", tmp_path / "a.csv", LABELS))[1] == ["r0", "0", "1", "0"]
    (tmp_path / "b.csv").write_text("".join(f"{i}.5,{i + 1}\n" for i in range(N)))
    head, first, *_ = lines(export.table(tmp_path / "b.tsv", tmp_path / "b.csv", LABELS), "\t")
    assert (head, first) == (["f0", "f1", "cluster"], ["0.5", "1", "0"])


def test_a_parquet_keeps_columns_types_and_index(tmp_path):
    frame = pd.DataFrame({"X": list(X), "name": ["<script>", None, "c", "d", "e", "f", "g"]}, index=list("abcdefg"))
    frame.to_parquet(tmp_path / "in.parquet")
    out = export.table(tmp_path / "out.parquet", tmp_path / "in.parquet", LABELS, SURE)
    back = pd.read_parquet(out)
    assert back.index.tolist() == list("abcdefg")
    assert back["name"].tolist() == frame["name"].tolist()
    np.testing.assert_array_equal(np.stack(back["X"]), X)
    np.testing.assert_array_equal(back["cluster"], LABELS)
    np.testing.assert_array_equal(read(out).X, X)  # can be clustered again
    head, first, *_ = lines(export.table(tmp_path / "out.csv", tmp_path / "in.parquet", LABELS))
    np.testing.assert_array_equal(np.float32(json.loads(first[head.index("X")])), X[0])
    assert first[head.index("name")] == "<script>"


@pytest.mark.parametrize("suffix", ["npy", "npz", "safetensors"])
def test_arrays_get_rows_ids_and_their_other_vectors(tmp_path, suffix):
    ids = [f"photos/{i}.jpg" for i in range(N)]
    source = tmp_path / f"in.{suffix}"
    if suffix == "npz":
        np.savez(source, X=X, ids=np.array(ids), y=np.array(["cat", "dog"])[LABELS % 2], matrix=np.ones((2, 2)))
    else:
        from safetensors.numpy import save_file

        np.save(source, X) if suffix == "npy" else save_file({"X": X}, source)
        (tmp_path / "in.ids.txt").write_text("".join(f"{name}\n" for name in ids))
    head, *rows = lines(export.table(tmp_path / "out.csv", source, LABELS, SURE))
    extra = ["y"] if suffix == "npz" else []
    assert head == ["row", "id", *extra, "cluster", "confidence", "f0", "f1", "f2"]
    assert [row[1] for row in rows] == ids
    np.testing.assert_array_equal(np.float32([row[-3:] for row in rows]), X)  # the very numbers
    back = pa.parquet.read_table(export.table(tmp_path / "out.parquet", source, LABELS))
    np.testing.assert_array_equal(np.stack(back.column("X").to_numpy()), X)
    if suffix == "npz":
        assert back.column("y").to_pylist() == [("cat", "dog")[c % 2] for c in LABELS]
    head = lines(export.table(tmp_path / "bare.csv", source, LABELS, features=False))[0]
    assert head == ["row", "id", *extra, "cluster"]


def test_named_sets_images_and_what_is_in_memory(tmp_path):
    head, first, *_ = lines(export.table(tmp_path / "d.csv", "digits", np.zeros(1797, dtype=int), features=False))
    assert (head, first) == (["row", "y", "cluster"], ["0", "0", "0"])
    images = np.arange(N * 4, dtype=np.uint8).reshape(N, 2, 2)
    assert lines(export.table(tmp_path / "i.csv", images, LABELS))[2] == ["1", "2", "4", "5", "6", "7"]
    frame = {"a": np.arange(N), "cluster": np.arange(N) * 2}
    for kind in (pd.DataFrame, pl.DataFrame):
        back = pl.read_parquet(export.table(tmp_path / f"{kind.__module__[:6]}.parquet", kind(frame), LABELS))
        assert back["cluster"].to_list() == (np.arange(N) * 2).tolist()  # its own column stays
        assert back["cluster_"].to_list() == LABELS.tolist()


def test_many_rows_come_in_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr("prodsc.export.tables.BATCH_ROWS", 3)
    for suffix in ("csv", "parquet"):
        out = export.table(tmp_path / f"o.{suffix}", X, LABELS)
        found = pd.read_csv(out) if suffix == "csv" else pd.read_parquet(out)
        assert found["row"].tolist() == list(range(N))
        assert found["cluster"].tolist() == LABELS.tolist()


def test_refusals_leave_nothing_behind(tmp_path):
    source = tmp_path / "in.npy"
    np.save(source, X)
    for count in (N - 1, N + 1):
        with pytest.raises(InputError, match=f"rows for {count} labels"):
            export.table(tmp_path / "out.csv", source, np.zeros(count, dtype=int))
    with pytest.raises(InputError, match="whole numbers from 0"):
        export.table(tmp_path / "out.csv", source, LABELS - 1)
    with pytest.raises(InputError, match="one number per label"):
        export.table(tmp_path / "out.csv", source, LABELS, SURE[:3])
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 cut")
    for bad in ("bad.parquet", "nowhere.csv"):
        with pytest.raises(InputError, match="cannot be read"):
            export.table(tmp_path / "out.csv", tmp_path / bad, LABELS)
    (tmp_path / "bad.parquet").unlink()
    with pytest.raises(OutputError, match=r"must end in \.csv"):
        export.table(tmp_path / "out.xlsx", source, LABELS)
    (tmp_path / "f.csv").mkdir()
    with pytest.raises(OutputError, match="is a folder"):
        export.table(tmp_path / "f.csv", source, LABELS)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f.csv", "in.npy"]


def test_an_existing_target_is_kept_unless_forced_and_the_input_always(tmp_path):
    source = tmp_path / "in.csv"
    source.write_text("a,b\n" + "1,2.5\n" * N)
    out = tmp_path / "out.csv"
    out.write_text("mine")
    with pytest.raises(OutputError, match=r"exists.*--force"):
        export.table(out, source, LABELS)
    assert out.read_text() == "mine"
    assert len(lines(export.table(out, source, LABELS, force=True))) == N + 1
    with pytest.raises(OutputError, match="never replaced"):
        export.table(source, source, LABELS, force=True)


@pytest.mark.parametrize(
    ("cell", "written"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("@SUM(1)", "'@SUM(1)"),
        ("+1+cmd", "'+1+cmd"),
        ("-2+3", "'-2+3"),
        ("\t=1", "'\t=1"),
        ("-1.5", "-1.5"),
        ("-1,5e-3", "-1,5e-3"),
        ("+7", "+7"),
        ("-inf", "-inf"),
        ("-", "-"),
        ("a=b", "a=b"),
        ("\uff1d1", "'\uff1d1"),  # wide signs of East Asian keyboards
    ],
)
@pytest.mark.parametrize("kind", ["object", "string", "category"])
def test_text_that_a_spreadsheet_would_run_is_disarmed(cell, written, kind, tmp_path):
    frame = pd.DataFrame({"=name": pd.Series([cell, "plain"], dtype=kind), "a": [-1.5, 2.0]})
    export.table(tmp_path / "t.csv", frame, [0, 1])
    back = pd.read_csv(tmp_path / "t.csv", dtype=str)
    assert back.columns[0] == "'=name"
    assert back.iloc[:, 0].tolist() == [written, "plain"]
    assert back["a"].tolist() == ["-1.5", "2.0"]
    export.table(tmp_path / "t.parquet", frame, [0, 1])  # Parquet has no formulas
    assert pd.read_parquet(tmp_path / "t.parquet")["=name"][0] == cell
