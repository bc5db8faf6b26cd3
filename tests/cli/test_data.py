"""prodsc data list | show | where | fetch."""

import gzip
from dataclasses import replace

import numpy as np
import pytest

from prodsc import files
from prodsc.cli import main
from prodsc.sources.catalogue import DATASETS, SETS, Remote
from prodsc.sources.door import load_dataset


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """A project folder without data, and an empty cache."""
    (tmp_path / "project" / "data").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PRODSC_DATA", raising=False)
    return tmp_path


@pytest.fixture
def data(capsys):
    """Run `prodsc data ...`; gives what it printed, and the one sentence of a failure."""

    def run(*words, code=0):
        with pytest.raises(SystemExit) as end:
            main(["data", *map(str, words)])
        said = capsys.readouterr()
        assert end.value.code == code, said.err
        assert "Traceback" not in said.err
        return said.err if code else said.out

    return run


def line(text, start):
    return next(line for line in text.splitlines() if line.startswith(start))


def test_list(data, alone):
    said = data("list")
    for info in SETS:
        assert info.size in line(said, f"{info.name} ")
    assert line(said, "digits").split()[-1] == "computed"
    assert line(said, "orl").split() == ["orl", "400", "x", "32", "x", "32", "40", "missing"]
    assert line(said, "mnist ").rstrip().endswith("missing, can be fetched")
    (alone / "project" / "data" / "orl.npz").touch()
    assert line(data("list"), "orl").split()[-1] == "here"
    assert line(data("list", "--data-dir", alone), "coil100").split()[-1] == "missing"
    (alone / "coil100.npz").touch()
    assert line(data("list", "--data-dir", alone), "coil100").split()[-1] == "here"


def test_show(data):
    said = data("show", "cifar10-efflite0")
    assert "EfficientNet-Lite0 features" in line(said, "title")
    assert line(said, "X").split(None, 1)[1] == "20,000 x 1,280"
    assert "the labels come along" in line(said, "classes")
    assert "'split'" in line(said, "split")
    assert "trained WITH ImageNet labels" in line(said, "note")
    assert "licence" in said
    assert "cifar10_efflite0.npz" in line(said, "missing")
    assert line(data("show", "mnist"), "address").endswith("train-images-idx3-ubyte.gz")
    for name, words in [
        ("digits", "none"),
        ("cifar10", "first 50,000 rows are train"),
        ("imagenet-dogs", "both all rows"),
        ("tiny-imagenet", "a train and a test part"),
        ("orl", "none, unless the file has an array"),
    ]:
        assert words in line(data("show", name), "split")
    assert "missing" not in data("show", "digits", "--check")


def test_check(data, alone, monkeypatch):
    path = alone / "project" / "data" / "orl.npz"
    np.savez(path, X=np.zeros((2, 32, 32)), y=[0, 1])
    monkeypatch.setitem(DATASETS, "orl", replace(DATASETS["orl"], sha256=files.sha256(path)))
    assert line(data("show", "orl", "--check"), "file").endswith("orl.npz  (sha256 as recorded)")
    assert line(data("show", "orl"), "file").endswith("orl.npz")
    with path.open("ab") as file:
        file.write(b"!")
    assert "orl.npz is not the file whose sha256 is recorded; copy it again" in data("show", "orl", "--check", code=1)
    (path.parent / "reuters10k.npz").touch()
    assert line(data("show", "reuters-10k", "--check"), "file").endswith("(checksum not recorded)")
    assert "coil100 is not here" in data("show", "coil100", "--check", code=1)


def test_where(data, alone, monkeypatch):
    (alone / "project" / "data" / "orl.npz").touch()
    mine = alone / "mine"
    mine.mkdir()
    (mine / "coil100.npz").touch()
    monkeypatch.setenv("PRODSC_DATA", str(mine))
    said = data("where", "--data-dir", alone / "asked").splitlines()
    assert said == [
        f"{alone / 'asked'}  (--data-dir)",
        "    no such directory",
        f"{mine}  (PRODSC_DATA)",
        "    coil100",
        f"{alone / 'project' / 'data'}  (working directory)",
        "    orl",
        f"{alone / 'cache' / 'prodsc' / 'data'}  (your cache)",
        "    no such directory",
    ]
    (mine / "coil100.npz").unlink()
    assert data("where").splitlines()[1] == "    nothing of ours"


def test_fetch_converts_archives_that_were_put_there_by_hand(data, alone, monkeypatch):
    arrays = [np.ones((2, 3, 3), np.uint8), np.array([0, 1], np.uint8)] * 2
    remotes = []
    folder = alone / "mine" / "downloads" / "mnist"
    folder.mkdir(parents=True)
    for i, array in enumerate(arrays):
        head = bytes([0, 0, 8, array.ndim]) + np.array(array.shape, ">i4").tobytes()
        (folder / f"{i}.gz").write_bytes(gzip.compress(head + array.tobytes()))
        remotes.append(Remote("mnist", f"http://127.0.0.1:1/{i}.gz", files.sha256(folder / f"{i}.gz")))
    monkeypatch.setitem(DATASETS, "mnist", replace(DATASETS["mnist"], remotes=tuple(remotes)))
    said = data("fetch", "mnist", "--data-dir", alone / "mine")
    assert said == f"mnist: {alone / 'mine' / 'mnist.npz'}\n"
    assert load_dataset("mnist", "train", data_dir=alone / "mine").X.shape == (2, 3, 3)
    assert line(data("show", "mnist", "--check", "--data-dir", alone / "mine"), "file").endswith("(sha256 as recorded)")


def test_fetch_says_when_another_file_comes_first(alone, capsys):
    for place in (alone / "project" / "data", alone / "cache" / "prodsc" / "data"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "mnist.npz").touch()
    with pytest.raises(SystemExit):
        main(["data", "fetch", "mnist"])
    said = capsys.readouterr()
    assert said.out == f"mnist: {alone / 'cache' / 'prodsc' / 'data' / 'mnist.npz'}\n"
    assert f"note: {alone / 'project' / 'data' / 'mnist.npz'} comes before it in the search" in said.err


def test_mistakes_get_one_sentence(data):
    assert "no data set 'minst'; did you mean 'mnist'?" in data("show", "minst", code=1)
    assert "no data set 'minst'; did you mean 'mnist'?" in data("fetch", "minst", code=1)
    assert "orl has no public address to download from" in data("fetch", "orl", code=1)
    assert "own.npz is a file, not the name of a data set" in data("show", "own.npz", code=1)
