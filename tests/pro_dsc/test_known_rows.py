"""Fits that are told of a few rows, beside fits that are told nothing."""

import hashlib

import numpy as np
import pytest
import torch

from prodsc import PRODSC
from prodsc.baselines.cpp import CPP
from prodsc.baselines.mlc import MLC
from prodsc.cli import main
from prodsc.core import metrics
from prodsc.core.graph import GramKernel, LandmarkConstraints, seeded_kmeans, spectral_partition
from prodsc.core.self_expression import self_expression
from prodsc.errors import InputError, ModelFileError
from prodsc.estimators.capabilities import Capability
from prodsc.training import Callback

FIT = {"hidden_size": 32, "n_components": 16, "warmup_steps": 10, "epochs": 8, "n_init": 3, "batch_size": 64}


@pytest.fixture(scope="module")
def pairs_of_blobs():
    """Four blobs in two pairs; told to find two clusters, one may join them in either way."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 50)
    centres = np.eye(12)[:4]
    return centres[y] + 0.12 * rng.standard_normal((200, 12)), y


def digest(model):
    found = hashlib.sha256(model.labels_.tobytes())
    for _, tensor in sorted(model.network_.state_dict().items()):
        found.update(tensor.numpy().tobytes())
    return found.hexdigest()


def test_nothing_known_changes_nothing(pairs_of_blobs):
    """Bit for bit, with the term and the batches out of the way."""
    X, _ = pairs_of_blobs
    plain = PRODSC.from_flat(4, **FIT).fit(X)
    told = PRODSC.from_flat(4, **FIT).fit(
        X, known_labels=np.full(len(X), -1), must_link=[], cannot_link=np.zeros((0, 2), int)
    )
    assert digest(plain) == digest(told)
    assert "links" not in told.history_
    assert told.known_clusters_ == {}


def test_labels_decide_what_the_data_leave_open(pairs_of_blobs):
    X, y = pairs_of_blobs
    for together in ([0, 0, 1, 1], [0, 1, 1, 0]):  # which blobs make a cluster
        truth = np.array(together)[y]
        known = {row: "left" if truth[row] else "right" for row in range(0, 200, 10)}
        model = PRODSC.from_flat(2, **FIT | {"epochs": 20}).fit(X, known_labels=known)
        unknown = np.setdiff1d(np.arange(200), [*known])
        assert metrics.scores(truth[unknown], model.labels_[unknown])["ACC"] > 0.9
        names = np.array([model.known_clusters_[label] for label in model.labels_])
        assert (names[unknown] == np.where(truth, "left", "right")[unknown]).mean() > 0.9
        np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_links_decide_too(pairs_of_blobs):
    X, y = pairs_of_blobs
    truth = np.array([0, 1, 1, 0])[y]
    rng = np.random.default_rng(1)
    drawn = np.array([rng.choice(200, 2, replace=False) for _ in range(200)])
    same = truth[drawn[:, 0]] == truth[drawn[:, 1]]
    model = PRODSC.from_flat(2, **FIT | {"epochs": 20}).fit(X, must_link=drawn[same], cannot_link=drawn[~same])
    assert metrics.scores(truth, model.labels_)["ACC"] > 0.9
    links = model.history_["links"][model.history_["phase"] == "joint"]
    assert links[-1] < links[0]
    assert model.known_clusters_ == {}


def test_what_is_known_is_part_of_a_model_and_of_a_checkpoint(pairs_of_blobs, tmp_path, monkeypatch):
    X, _ = pairs_of_blobs
    known = {0: 7, 60: 9}
    whole = PRODSC.from_flat(4, **FIT).fit(X, known_labels=known)
    assert sorted(whole.known_clusters_.values()) == [7, 9]
    whole.save(tmp_path / "model")
    assert PRODSC.load(tmp_path / "model").known_clusters_ == whole.known_clusters_

    class Stop(Callback):
        def on_step(self, training):
            if training.current.name == "joint" and training.step == 5:
                raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    monkeypatch.setattr("prodsc.training.checkpoint.SECONDS", 0)
    with pytest.raises(KeyboardInterrupt):
        PRODSC.from_flat(4, **FIT).fit(X, known_labels=known, callbacks=[Stop()], checkpoint=path)
    for other in ({}, {"known_labels": {0: 7, 61: 9}}, {"must_link": [(0, 1)]}):
        with pytest.raises(ModelFileError, match="other known labels or links"):
            PRODSC.from_flat(4, **FIT).fit(X, **other, checkpoint=path)
    assert digest(PRODSC.from_flat(4, **FIT).fit(X, known_labels=known, checkpoint=path)) == digest(whole)


def test_known_rows_are_landmarks(pairs_of_blobs):
    X, _ = pairs_of_blobs
    model = PRODSC.from_flat(4, **FIT | {"max_landmarks": 20})
    known = {row: row // 50 for row in (3, 55, 120, 199)}
    model.fit(X, known_labels=known)
    Y = model.labeller_.Y(model._new_rows(X[[*known]]))
    assert ((Y @ model.partition_.kernel.landmarks.T).amax(1) > 1 - 1e-5).all()
    assert len(model.partition_.kernel.landmarks) == 20


def test_bad_links_are_refused_before_training(pairs_of_blobs):
    with pytest.raises(InputError, match="paired with itself"):
        PRODSC.from_flat(4, **FIT).fit(pairs_of_blobs[0], must_link=[(3, 3)])


def test_known_pairs_have_the_similarity_they_should_have():
    Y = torch.nn.functional.normalize(torch.from_numpy(np.random.default_rng(0).standard_normal((6, 3))))
    R = torch.zeros(6, 6, dtype=torch.int8)
    R[0, 1] = R[1, 0] = 1
    R[2, 3] = R[3, 2] = -1
    found = self_expression(Y, 0.3, "softmax", R=R)
    K = (Y @ Y.T).abs() / 0.3
    K[0, 1] = K[1, 0] = 1 / 0.3
    expected = K.exp()
    expected[2, 3] = expected[3, 2] = 0
    P = expected / expected.sum(1, keepdim=True)
    torch.testing.assert_close(found.A, ((P + P.T) / 2).fill_diagonal_(0))
    assert found.C[2, 3] == 0
    assert torch.isfinite(self_expression(Y, 0.3, "sinkhorn", 4, R=R).C).all()


def test_seeds_are_where_clusters_start():
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 30)
    points = np.eye(3)[y] + 0.05 * rng.standard_normal((90, 3))
    labels = np.full(90, -1)
    labels[[70, 5]] = [0, 1]  # the third blob is code 0, the first is code 1
    centres, inertia = seeded_kmeans(points, 3, 5, 0, labels)
    assert centres.argmax(1).tolist() == [2, 0, 1]
    assert inertia == pytest.approx(((points - centres[[1, 2, 0]][y]) ** 2).sum())


def test_links_act_among_landmarks():
    """Four lines; links make two pairs of them, for which two clusters would else have no reason."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(4), 30)
    Y = torch.nn.functional.normalize(torch.from_numpy(np.eye(8)[y] + 0.1 * rng.standard_normal((120, 8))))
    truth = np.array([0, 1, 0, 1])[y]
    R = torch.from_numpy(np.where(truth[:, None] == truth, 1, -1).astype(np.int8)).fill_diagonal_(0)
    R[:, ::3] = R[::3] = 0  # a third is not known
    known = LandmarkConstraints(R, np.full(120, -1))
    found = spectral_partition(GramKernel(Y), 2, 10, 0, known).labels(Y)
    assert metrics.scores(truth, found)["ACC"] > 0.95


def test_the_command_line_takes_them(pairs_of_blobs, tmp_path):
    X, y = pairs_of_blobs
    np.savez(tmp_path / "data.npz", X=X, seen=np.where(np.arange(200) % 20 == 0, y, -1))
    (tmp_path / "must.csv").write_text("1,2\n3,4\n")
    (tmp_path / "cannot.csv").write_text("1,199\n")
    words = ["--hidden-size", "32", "--n-components", "16", "--warmup-steps", "10", "--epochs", "8", "--n-init", "3"]
    words += ["--batch-size", "64", "--known-labels", "seen", "--quiet"]
    words += ["--must-link", str(tmp_path / "must.csv"), "--cannot-link", str(tmp_path / "cannot.csv")]
    with pytest.raises(SystemExit) as end:
        main(["fit", str(tmp_path / "data.npz"), "-k", "4", "--out", str(tmp_path / "run"), *words])
    assert end.value.code == 0
    same = PRODSC.from_flat(4, **FIT).fit(
        X, known_labels={row: y[row] for row in range(0, 200, 20)}, must_link=[(1, 2), (3, 4)], cannot_link=[(1, 199)]
    )
    model = PRODSC.load(tmp_path / "run")
    np.testing.assert_array_equal(model.labels_, same.labels_)
    assert model.known_clusters_ == same.known_clusters_


@pytest.mark.parametrize("method", [CPP, MLC])
def test_methods_that_cannot_use_them_say_so(method) -> None:
    assert Capability.CONSTRAINTS not in method.capabilities
    with pytest.raises(TypeError, match="unexpected keyword argument 'must_link'"):
        method(2).fit(np.eye(9), must_link=[(0, 1)])
