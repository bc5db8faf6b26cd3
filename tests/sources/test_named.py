"""Named data sets: found in the documented order, checked, read in parts; what is absent says how to get it."""

import json
import os
import pickle
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import torch

from prodsc import files
from prodsc.errors import InputError, ParameterError
from prodsc.sources import named as sets
from prodsc.sources.catalogue import COARSE, DATASETS, SETS, SUPERCLASSES
from prodsc.sources.door import canonical_name, load_dataset
from prodsc.sources.named import compare_checksum, download_folder, find_files, missing_error, search_path

IN_FILES = [info for info in SETS if info.files]
KNOWN = [info for info in SETS if info.sha256]


@pytest.fixture(autouse=True)
def alone(tmp_path, monkeypatch):
    """A project folder without data, and an empty cache."""
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(tmp_path / "project")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("PRODSC_DATA", raising=False)
    return tmp_path


@pytest.fixture
def store(alone):
    """The directory ./data of the project."""
    (alone / "project" / "data").mkdir()
    return alone / "project" / "data"


def features(path, n, classes=10, width=2, seed=0):
    """A file as the authors write theirs; row i holds i."""
    y = torch.from_numpy(np.random.default_rng(seed).permutation(np.arange(n) % classes))
    X = torch.arange(n, dtype=torch.float32)[:, None].repeat(1, width)
    torch.save({"features": X, "ys": y}, path)
    return X.numpy(), y.numpy()


# ---- the facts -------------------------------------------------------------------------------------------------------


def test_every_set_is_described():
    assert len(DATASETS) == len(SETS)
    for info in SETS:
        assert all([info.title, info.shape, info.classes, info.source, info.licence]), info.name
        assert (info.make is None) == bool(info.files), info.name
        assert info.make or info.remotes or info.obtain, info.name
        assert bool(info.remotes) == (info.convert is not None), info.name
        for digest in filter(None, [info.sha256, *(remote.sha256 for remote in info.remotes)]):
            assert re.fullmatch("[0-9a-f]{64}", digest)
    assert "trained WITH ImageNet labels" in " ".join(DATASETS["cifar10-efflite0"].notes)
    assert "not UCI HAR" in " ".join(DATASETS["hapt-561"].notes)
    assert "not Reuters-10k" in " ".join(DATASETS["reuters-21578"].notes)


def test_the_coarse_labels_of_cifar100():
    assert len(SUPERCLASSES) == 20
    np.testing.assert_array_equal(np.bincount(COARSE), [5] * 20)
    published = """
        4 1 14 8 0 6 7 7 18 3 3 14 9 18 7 11 3 9 7 11 6 11 5 10 7 6 13 15 3 15 0 11 1 10 12 14 16 9 11 5
        5 19 8 8 15 13 14 17 18 10 16 4 17 4 2 0 17 4 18 17 10 3 2 12 12 16 12 1 9 19 2 10 0 1 16 12 9 13 15 13
        16 19 2 4 6 19 5 5 8 19 18 1 2 15 6 0 17 8 14 13"""
    np.testing.assert_array_equal(COARSE, np.array(published.split(), dtype=int))


@pytest.mark.parametrize("name", [info.name for info in SETS if info.make])
def test_computed_sets(name):
    data = load_dataset(name)
    assert data.X.shape == data.info.shape
    assert len(np.unique(data.y)) == data.info.classes
    assert data.paths == ()
    assert data.notes == data.info.notes
    with pytest.raises(InputError, match=f"{name} has no train and test part here; use split='all'"):
        load_dataset(name, "train")


@pytest.mark.parametrize("info", KNOWN, ids=lambda info: info.name)
def test_the_files_we_have_are_as_described(info, shared_data):
    path = shared_data(info.files[0][0])
    data = load_dataset(info.name, data_dir=path.parent)
    assert data.paths == (path,)
    assert data.notes == info.notes  # neither shape, classes nor checksum differ
    assert data.y.min() == 0
    assert compare_checksum(info, path) == "matches"


def test_the_parts_of_the_files_we_have(shared_data):
    folder = shared_data("mnist.npz").parent
    train, test = (load_dataset("mnist", part, data_dir=folder) for part in ("train", "test"))
    assert (len(train.X), len(test.X)) == (60000, 10000)
    np.testing.assert_array_equal(train.y[:5], [5, 0, 4, 1, 9])  # as everyone knows them
    np.testing.assert_array_equal(test.y[:5], [7, 2, 1, 0, 4])
    test = load_dataset("cifar10-efflite0", "test", data_dir=shared_data("cifar10_efflite0.npz").parent)
    assert test.X.shape == (10000, 1280)
    np.testing.assert_array_equal(test.y, load_dataset("cifar10-images", data_dir=shared_data("cifar10.npz").parent).y)
    with pytest.raises(InputError, match="fashion-mnist has no train and test part here"):
        load_dataset("fashion-mnist", "train", data_dir=shared_data("fashion_mnist.npz").parent)


# ---- where files are looked for --------------------------------------------------------------------------------------


def test_no_directory_of_a_developer_is_searched(alone):
    """A wheel once searched ../shared/data, which only its makers have."""
    assert [folder.path for folder in search_path()] == [
        alone / "project" / "data",
        alone / "cache" / "prodsc" / "data",
    ]
    (alone / "shared" / "data").mkdir(parents=True)
    np.savez(alone / "shared" / "data" / "orl.npz", X=np.ones((4, 32, 32), np.uint8))
    assert find_files(DATASETS["orl"]) is None


def test_the_search_order(alone, monkeypatch):
    places = [
        alone / "asked",
        alone / "first",
        alone / "second",
        alone / "project" / "data",
        alone / "cache" / "prodsc" / "data",
    ]
    monkeypatch.setenv("PRODSC_DATA", f"{places[1]}{os.pathsep}{places[2]}")
    assert [place.path for place in search_path(places[0])] == places
    info = DATASETS["orl"]
    assert find_files(info, places[0]) is None
    for place in reversed(places):  # each comes before those that already have the file
        place.mkdir(parents=True)
        (place / "orl.npz").touch()
        assert find_files(info, places[0]) == (place / "orl.npz",)


def test_new_files_go_where_they_were_asked_for_and_never_beside_the_user(store, alone, monkeypatch):
    assert download_folder() == alone / "cache" / "prodsc" / "data"
    monkeypatch.setenv("PRODSC_DATA", str(alone / "mine"))
    assert download_folder() == alone / "mine"
    assert download_folder(alone / "asked") == alone / "asked"


def test_half_of_a_pair_is_not_a_hit(store):
    features(store / "tinyimagenet_train_clip.pt", 4, 2)
    assert find_files(DATASETS["tiny-imagenet"]) is None


@pytest.mark.parametrize("info", IN_FILES, ids=lambda info: info.name)
def test_what_is_missing_says_how_to_get_it(info, alone):
    with pytest.raises(InputError) as error:
        load_dataset(info.name)
    said = str(error.value)
    assert "\n" not in said
    assert info.files[0][0] in said
    assert str(alone / "project" / "data") in said  # where it was looked for
    assert said.endswith(f"it belongs in {alone / 'cache' / 'prodsc' / 'data'}.")
    assert f"prodsc data fetch {info.name}" in said or info.obtain in said
    assert str(missing_error(info)) == said


def test_an_unknown_name_gets_a_suggestion():
    for word, meant in [("minst", "mnist"), ("MNIST", "mnist"), ("fashion_mnist", "fashion-mnist"), ("orll", "orl")]:
        with pytest.raises(InputError, match=f"no data set '{word}'; did you mean '{meant}'"):
            load_dataset(word)
        with pytest.raises(InputError, match="did you mean"):
            canonical_name(word)
    with pytest.raises(InputError, match=r"no data set 'zzzz'\. `prodsc data list` names them all"):
        load_dataset("zzzz")
    with pytest.raises(ParameterError, match=r"split='tran' must be one of all, train, test; did you mean 'train'\?"):
        load_dataset("digits", "tran")


def test_a_path_is_a_data_set_too(alone):
    X, y = np.arange(12.0).reshape(6, 2), np.array([5, 5, 7, 7, 5, 7])
    np.savez(alone / "own.npz", X=X, y=y, split=[0, 1, 0, 1, 1, 0])
    data = load_dataset(alone / "own.npz")
    np.testing.assert_array_equal(data.X, X)
    assert (data.name, data.info, data.X.shape, len(set(data.y)), data.notes) == ("own", None, (6, 2), 2, ())
    test = load_dataset(str(alone / "own.npz"), "test")
    np.testing.assert_array_equal(test.X, X[[1, 3, 4]])
    np.testing.assert_array_equal(test.y, [0, 1, 0])
    np.save(alone / "bare.npy", X)
    assert load_dataset(alone / "bare.npy").y is None
    with pytest.raises(InputError, match="bare has no train and test part here"):
        load_dataset(alone / "bare.npy", "test")
    with pytest.raises(InputError, match=r"own.npy does not exist; did you mean 'own.npz'\?"):
        load_dataset(alone / "own.npy")


# ---- formats ---------------------------------------------------------------------------------------------------------


def test_clip_features_of_cifar10_are_split_by_rows(store):
    X, y = features(store / "cifar10_clip_60000.pt", 60000)
    for part, rows in [("all", slice(None)), ("train", slice(50000)), ("test", slice(50000, None))]:
        data = load_dataset("cifar10", part)
        np.testing.assert_array_equal(data.X, X[rows])
        np.testing.assert_array_equal(data.y, y[rows])
        assert data.X.base is not None  # a view of the mapped file, nothing was copied
    assert data.notes[-1] == "these rows are 10,000 x 2, the known set is 60,000 x 768: this is not the published data"


def test_a_file_with_other_rows_cannot_be_split_by_rows(store):
    features(store / "cifar10_clip_60000.pt", 600)
    assert load_dataset("cifar10").X.shape == (600, 2)
    with pytest.raises(InputError, match=r"split after row 50,000 of 60,000, and .* has 600 rows; use split='all'"):
        load_dataset("cifar10", "test")


def test_cifar20_has_the_superclasses_of_cifar100(store):
    _, y = features(store / "cifar100_clip_60000.pt", 60000, classes=100)
    coarse, fine = load_dataset("cifar20", "test"), load_dataset("cifar100", "test")
    np.testing.assert_array_equal(coarse.X, fine.X)
    np.testing.assert_array_equal(fine.y, y[50000:])
    np.testing.assert_array_equal(coarse.y, COARSE[y[50000:]])
    assert len(np.unique(coarse.y)) == 20
    features(store / "cifar100_clip_60000.pt", 300, classes=30)
    with pytest.raises(InputError, match="all 100 classes of CIFAR-100; this file has 30"):
        load_dataset("cifar20")


@pytest.mark.parametrize(("name", "stem"), [("tiny-imagenet", "tinyimagenet"), ("imagenet-1k", "imagenet")])
def test_a_train_and_a_test_file(name, stem, store):
    X, y = features(store / f"{stem}_train_clip.pt", 30, 5)
    X_test, y_test = features(store / f"{stem}_val_clip.pt", 10, 5, seed=1)
    np.testing.assert_array_equal(load_dataset(name, "train").X, X)
    np.testing.assert_array_equal(load_dataset(name, "test").y, y_test)
    both = load_dataset(name)
    np.testing.assert_array_equal(both.X, np.concatenate([X, X_test]))
    np.testing.assert_array_equal(both.y, np.concatenate([y, y_test]))
    assert "these rows have 5 classes, the known set has" in both.notes[-1]
    features(store / f"{stem}_val_clip.pt", 10, 4)
    with pytest.raises(InputError, match=r"5 classes and .* has 4; their labels cannot be matched"):
        load_dataset(name)
    features(store / f"{stem}_val_clip.pt", 10, 5, width=3)
    with pytest.raises(InputError, match=r"rows of \(2,\) and .* of \(3,\); they are not of one set"):
        load_dataset(name)
    torch.save({"features": torch.zeros(4, 2)}, store / f"{stem}_val_clip.pt")
    assert load_dataset(name).y is None


def test_dogs_are_fitted_and_scored_on_the_same_rows(store):
    X, _ = features(store / "imagenetdogs_clip.pt", 45, 15)
    for part in ("all", "train", "test"):
        np.testing.assert_array_equal(load_dataset("imagenet-dogs", part).X, X)


def test_uci_har_as_it_is_unpacked(store):
    rng = np.random.default_rng(0)
    written = {}
    for part, n in [("train", 9), ("test", 6)]:
        folder = store / "UCI HAR Dataset" / part
        folder.mkdir(parents=True)
        X, y = rng.uniform(-1, 1, (n, 4)), np.arange(n) % 3 + 1
        rows = ["  ".join(f"{v: .7e}" for v in row) for row in X]  # leading blanks and all
        (folder / f"X_{part}.txt").write_text("\n".join(rows) + "\n")
        (folder / f"y_{part}.txt").write_text("\n".join(map(str, y)) + "\n")
        written[part] = X, y - 1
    both = load_dataset("uci-har")
    np.testing.assert_allclose(both.X, np.concatenate([X for X, _ in written.values()]), atol=1e-7)
    np.testing.assert_array_equal(both.y, np.concatenate([y for _, y in written.values()]))
    np.testing.assert_array_equal(load_dataset("uci-har", "test").y, written["test"][1])
    (folder / "y_test.txt").write_text("1\n")
    with pytest.raises(InputError, match="has 6 rows and 1 labels; unpack the archive again"):
        load_dataset("uci-har", "test")
    (folder / "y_test.txt").unlink()
    with pytest.raises(InputError, match=r"X_test.txt cannot be read \(.*y_test.txt.*get it again"):
        load_dataset("uci-har", "test")
    (folder / "X_test.txt").write_text("1 2\n3\n")
    (folder / "y_test.txt").write_text("1\n2\n")
    with pytest.raises(InputError, match=r"X_test.txt cannot be read"):
        load_dataset("uci-har", "test")


def test_reuters_10k_is_never_unpickled(store):
    class Bomb:
        def __reduce__(self):
            return (Path.touch, (store / "crater",))

    np.save(store / "reutersidf10k.npy", {"data": Bomb()}, allow_pickle=True)
    with pytest.raises(InputError, match=r"reutersidf10k.npy is a pickle, .*numpy.savez\('reuters10k.npz', X="):
        load_dataset("reuters-10k")
    with pytest.raises(InputError, match=r"reutersidf10k.npy holds Python objects"):
        load_dataset(store / "reutersidf10k.npy")
    assert not (store / "crater").exists()
    pickle.loads(pickle.dumps(Bomb()))
    assert (store / "crater").exists()  # the bomb was live


@pytest.mark.parametrize("suffix", ["npz", "mat"])
def test_reuters_10k_as_numbers(suffix, store):
    X, y = np.random.default_rng(0).random((8, 3)), np.arange(8) % 4 + 1
    if suffix == "npz":
        np.savez(store / "reuters10k.npz", X=X, y=y)
    else:
        scipy.io.savemat(store / "reuters10k.mat", {"X": X, "Y": y[:, None]})
    data = load_dataset("reuters-10k")
    np.testing.assert_array_equal(data.X, X)
    np.testing.assert_array_equal(data.y, y - 1)


def test_rows_marked_by_the_file(alone):
    X = np.arange(10.0).reshape(5, 2)
    for marks, rows in [([0, 0, 1, 1, 1], [2, 3, 4]), ([1, 0, 1, 0, 1], [0, 2, 4])]:
        np.savez(alone / "own.npz", X=X, split=marks)
        np.testing.assert_array_equal(load_dataset(alone / "own.npz", "test").X, X[rows])
    np.savez(alone / "own.npz", X=X, split=[0] * 5)
    with pytest.raises(InputError, match="marks no row as test"):
        load_dataset(alone / "own.npz", "test")


# ---- checksums -------------------------------------------------------------------------------------------------------


@pytest.fixture
def known(store, monkeypatch):
    """A small file that stands for orl and whose checksum is recorded; its path."""
    path = store / "orl.npz"
    np.savez(path, X=np.ones((4, 32, 32), np.uint8), y=np.arange(4))
    info = replace(DATASETS["orl"], shape=(4, 32, 32), classes=4, sha256=files.sha256(path))
    monkeypatch.setitem(DATASETS, "orl", info)
    return path


def test_a_file_is_read_whole_for_its_checksum_once(known, alone, monkeypatch):
    seen = []
    monkeypatch.setattr(files, "sha256", lambda path, digest=files.sha256: seen.append(path) or digest(path))
    info = DATASETS["orl"]
    assert [compare_checksum(info, known), compare_checksum(info, known), load_dataset("orl").notes] == [
        "matches",
        "matches",
        (),
    ]
    assert seen == [known]
    os.utime(known, ns=(1, 1))  # changed, as far as one can tell without reading it
    assert [compare_checksum(info, known), compare_checksum(info, known)] == ["matches", "matches"]
    assert len(seen) == 2
    assert compare_checksum(info, known, recompute=True) == "matches"
    assert len(seen) == 3
    memory = alone / "cache" / "prodsc" / "checksums.json"
    assert json.loads(memory.read_text())[str(known)][2] == info.sha256
    for damage in ("{", "[]", "\udcff"):
        memory.write_bytes(damage.encode(errors="surrogateescape"))
        assert compare_checksum(info, known) == "matches"


def test_a_cache_that_cannot_be_written_costs_only_time(known, alone, monkeypatch):
    (alone / "cache").touch()  # where a directory is wanted
    assert compare_checksum(DATASETS["orl"], known) == "matches"
    assert load_dataset("orl").notes == ()


def test_another_file_of_that_name_is_used_with_a_warning(known):
    np.savez(known, X=np.zeros((4, 32, 32), np.uint8), y=np.arange(4))
    with pytest.warns(UserWarning, match="orl.npz is not the file whose checksum is recorded: scores may differ"):
        data = load_dataset("orl")
    assert "is not the file whose checksum is recorded" in data.notes[-1]
    assert compare_checksum(DATASETS["orl"], known) == "differs"
    sets.checksum_file(known).write_text(f"{files.sha256(known)}  orl.npz\n")  # accepted by its user
    assert compare_checksum(DATASETS["orl"], known) == "matches"
    assert load_dataset("orl").notes == ()


def test_a_file_without_a_recorded_checksum(store):
    features(store / "imagenetdogs_clip.pt", 45, 15)
    info = DATASETS["imagenet-dogs"]
    assert compare_checksum(info, store / "imagenetdogs_clip.pt") == "not recorded"
    sets.checksum_file(store / "imagenetdogs_clip.pt").write_text("0" * 64)
    assert compare_checksum(info, store / "imagenetdogs_clip.pt") == "differs"
