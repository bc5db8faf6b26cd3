"""Two processes on one batch are one process on that batch; a lost one ends the run with a sentence."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch.autograd import gradcheck
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).parent))
from setting import FIT, IMAGES, STOP_AT, batch_and_network, loss, rows_of, weights

from prodsc import PRODSC, ranks
from prodsc.cli import main
from prodsc.ranks.batch_norm import BatchNormOverRanks
from prodsc.sources.fingerprint import fingerprint


@pytest.fixture(scope="module")
def folder(tmp_path_factory, blobs):
    folder = tmp_path_factory.mktemp("ranks")
    (folder / "shards").mkdir()
    for i, part in enumerate(np.array_split(blobs[0].astype(np.float32), 3)):
        np.save(folder / "shards" / f"{i}.npy", part)
    images = np.random.default_rng(0).integers(0, 256, (31, 8, 8, 3)).astype(np.uint8)
    np.save(folder / "images.npy", images)
    return folder


@pytest.fixture(scope="module")
def two(folder):
    """All that two ranks do, in one launch, because importing torch takes most of its time."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    common = os.environ | {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    common |= {"OMP_NUM_THREADS": "1", "PRODSC_CHECKPOINT_SECONDS": "0.05", "PRODSC_RANK_SECONDS": "60"}
    command = [sys.executable, str(Path(__file__).with_name("two_ranks.py")), str(folder)]
    started = [
        subprocess.Popen(
            command, env=common | {"RANK": str(i), "LOCAL_RANK": str(i)}, stderr=subprocess.PIPE, text=True
        )
        for i in range(2)
    ]
    said = [process.communicate(timeout=300)[1] for process in started]
    return [process.returncode for process in started], said


@pytest.fixture(scope="module")
def found(two, folder):
    def get(what):
        both = []
        for i in range(2):
            path = folder / f"{what}-{i}.npz"
            assert path.exists(), two[1][i]
            both.append(dict(np.load(path)))
        return both

    return get


@pytest.fixture(autouse=True)
def one_thread():
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def test_gradients_and_batch_normalisation_are_those_of_the_whole_batch(found):
    X, network = batch_and_network()
    loss(network(X)).backward()
    expected = {name: p.grad for name, p in network.named_parameters()} | dict(network.named_buffers())
    for of_rank in found("gradients"):
        assert set(of_rank) == set(expected)
        for name, value in expected.items():
            np.testing.assert_allclose(of_rank[name], value, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("shape", [(6, 3), (5, 3, 2, 2)])
def test_batch_normalisation_and_its_gradient(shape):
    generator = torch.Generator().manual_seed(0)
    draw = lambda *s: torch.randn(*s, generator=generator, dtype=torch.float64, requires_grad=True)  # noqa: E731
    X, weight, bias = draw(*shape), draw(3), draw(3)
    normalised = lambda X, weight, bias: BatchNormOverRanks.apply(X, weight, bias, 1e-5)[0]  # noqa: E731
    torch.testing.assert_close(normalised(X, weight, bias), F.batch_norm(X, None, None, weight, bias, training=True))
    assert gradcheck(normalised, (X, weight, bias))


def test_ranks_hear_each_other_and_share_everything(found):
    for of_rank in found("words"):
        assert of_rank["said"].tolist() == ["Käse", ""]
        assert of_rank["anyone"].tolist() == [False, True]
        assert of_rank["shares"].tolist() == [[0, 3], [3, 7]]


def test_a_fit_ends_with_the_weights_and_labels_of_one_process(found, folder):
    model = PRODSC.from_flat(3, **FIT, random_state=np.random.RandomState(5)).fit(rows_of(folder))
    for of_rank in found("fit"):
        assert of_rank["seed"] == model.seed_
        for name, weight in weights(model).items():
            np.testing.assert_allclose(of_rank[name], weight, rtol=0, atol=1e-5, err_msg=name)
        np.testing.assert_array_equal(of_rank["labels"], model.labels_)
        np.testing.assert_allclose(of_rank["confidence"], model.confidence_, atol=1e-3)
    for of_rank in found("labelled"):
        np.testing.assert_array_equal(of_rank["labels"], model.labels_)


def test_so_does_a_fit_that_pre_trains_on_reconstruction(found, folder):
    model = PRODSC.from_flat(3, **IMAGES).fit(np.load(folder / "images.npy"))
    for of_rank in found("conv"):
        for name, weight in weights(model).items():
            np.testing.assert_allclose(of_rank[name], weight, rtol=0, atol=1e-5, err_msg=name)


def test_a_stop_on_one_rank_stops_all_and_goes_on_with_another_number_of_ranks(found, folder):
    for of_rank in found("stopped"):
        assert f"stopped in joint at step {STOP_AT - 10} of 24" in str(of_rank["said"])
    resumed = PRODSC.from_flat(3, **FIT).fit(folder / "shards", checkpoint=folder / "checkpoint")
    whole = PRODSC.from_flat(3, **FIT).fit(folder / "shards")
    assert len(resumed.history_["step"]) == 34
    for name, weight in weights(whole).items():
        np.testing.assert_allclose(weights(resumed)[name], weight, rtol=0, atol=1e-5, err_msg=name)


def test_ranks_look_at_files_together(found, folder):
    X = rows_of(folder)
    for of_rank in found("survey"):
        np.testing.assert_allclose(of_rank["mean"], X.mean(0, dtype=np.float64))
        assert str(of_rank["fingerprint"]) == fingerprint(X)


def test_extraction_is_split_and_written_once_in_order(found, folder):
    images = np.load(folder / "images.npy").astype(np.float32)
    assert [int(of_rank["rows"]) for of_rank in found("extracted")] == [31, 31]
    np.testing.assert_allclose(np.load(folder / "features.npy"), images.mean((2, 3)), rtol=1e-6)


def test_a_killed_rank_ends_the_run_with_a_sentence_and_the_run_goes_on(two, folder, monkeypatch):
    codes, said = two
    assert codes[1] == -9
    assert codes[0] in (1, -6)  # under load gloo may abort while the process ends, after the sentence
    assert "Traceback" not in said[0]
    last = said[0].strip().splitlines()[-1]
    assert re.match(r"prodsc: another process of this run ended at \d\d:\d\d:\d\d, so rank", last)
    assert last.endswith(f"prodsc fit --resume {folder / 'run'}")
    monkeypatch.setattr("prodsc.runs.run.write_report", lambda *_, **__: None)  # takes seconds, and is not the point
    with pytest.raises(SystemExit) as end:
        main(["fit", "--resume", str(folder / "run"), "--quiet"])
    assert end.value.code == 0
    assert len((folder / "run" / "labels.csv").read_text().splitlines()) == 151
    assert len((folder / "run" / "history.csv").read_text().splitlines()) == 451


def test_methods_that_know_nothing_of_ranks_refuse(monkeypatch, blobs):
    from prodsc.baselines.k_means import KMeansClusterer

    monkeypatch.setattr(ranks, "size", lambda: 2)
    with pytest.raises(ValueError, match="KMeansClusterer fits in one process only; start it without torchrun"):
        KMeansClusterer(3).fit(blobs[0])


def test_without_torchrun_there_is_one_rank(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "1")
    ranks.join()
    assert (ranks.size(), ranks.rank(), ranks.first(), ranks.share(5)) == (1, 0, True, slice(0, 5))
    X = torch.ones(2, 2)
    assert ranks.gather(X, 2) is X
    with pytest.raises(SystemExit):
        main(["--version"])
