"""prodsc monitor: numbers, a page, an exit code, and a model with new clusters."""

import json

import numpy as np
import pytest

import prodsc
from prodsc.cli import main

pytest.importorskip("matplotlib")


def rows(n, kinds, seed, d=12):
    random = np.random.default_rng(seed)
    directions = np.linalg.qr(np.random.default_rng(99).normal(size=(d, d)))[0]
    return (directions[random.choice(kinds, n)] + 0.08 * random.normal(size=(n, d))).astype(np.float32)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("monitor") / "run"
    model = prodsc.make("pro-dsc", n_clusters=3, random_state=0, epochs=5, hidden_size=32, n_components=8)
    model.fit(rows(600, range(3), 0)).rename_clusters(["<script>alert(1)</script>", "b", "c"]).save(folder)
    return folder


def call(*words):
    with pytest.raises(SystemExit) as end:
        main(["monitor", *map(str, words)])
    return end.value.code


def test_rows_that_fit(run, tmp_path, capsys):
    np.save(tmp_path / "new.npy", rows(300, range(3), 1))
    assert call(run, tmp_path / "new.npy", "-o", tmp_path / "out") == 0
    assert "they fit the model" in capsys.readouterr().out
    assert json.loads((tmp_path / "out" / "monitor.json").read_text())["alarm"] is False
    page = (tmp_path / "out" / "monitor.html").read_text()
    assert "rows fit" in page
    assert "<script>alert(1)" not in page
    assert "&lt;script&gt;alert(1)" in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert call(run, tmp_path / "new.npy", "-o", tmp_path / "out") == 1  # it exists
    assert "exists" in capsys.readouterr().err


def test_rows_of_a_new_kind(run, tmp_path, capsys):
    X = rows(500, range(4), 2)
    np.save(tmp_path / "new.npy", X)
    assert call(run, tmp_path / "new.npy", "-o", tmp_path / "out", "--update", tmp_path / "updated") == 3
    assert "Cluster 3 was added" in capsys.readouterr().out
    numbers = json.loads((tmp_path / "out" / "monitor.json").read_text())
    assert numbers["alarm"] is True
    assert numbers["new_clusters"] == [3]
    assert "New kinds of rows" in (tmp_path / "out" / "monitor.html").read_text()
    assert prodsc.load(tmp_path / "updated").predict(X).max() == 3


def test_other_methods_get_one_sentence(tmp_path, capsys):
    X = rows(100, range(3), 3)
    np.save(tmp_path / "new.npy", X)
    prodsc.make("k-means", n_clusters=3).fit(X).save(tmp_path / "k")
    assert call(tmp_path / "k", tmp_path / "new.npy", "-o", tmp_path / "out") == 1
    assert "monitor needs a model of PRO-DSC" in capsys.readouterr().err
