"""What "auto" becomes, and that a fit with nothing set works on features and on images."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits

from prodsc import PRODSC
from prodsc.core.graph import PowerKernel
from prodsc.core.metrics import accuracy
from prodsc.core.self_expression import perplexity
from prodsc.errors import ParameterError
from prodsc.pro_dsc.defaults import AUTO_RULES, choose_power, find_eta, nystroem_landmarks_for, resolve_auto
from prodsc.registry import make
from prodsc.training import Callback

GIVEN = PRODSC().flat_params()


@pytest.fixture(scope="module")
def faces() -> tuple[np.ndarray, np.ndarray]:
    """Bytes, three clusters of 30: each of mixtures of four images of its own, and noise."""
    draw = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 30)
    faces, light = draw.uniform(0, 255, (3, 4, 12, 12)), draw.dirichlet([0.5] * 4, 90)
    X = np.einsum("nfhw,nf->nhw", faces[y], light) + draw.normal(0, 1, (90, 12, 12))
    return X.clip(0, 255).astype(np.uint8), y


def test_features_begin_with_a_walk() -> None:
    found = resolve_auto(GIVEN, (5000, 300), 10)
    assert {name for name, value in GIVEN.items() if isinstance(value, str) and value == "auto"} - {
        "device",
        "precision",
        "n_clusters",  # these two are chosen before the others
        "scaling",
    } == set(found)
    assert (found["encoder"], found["start"]) == ("mlp", "walk")
    assert found["epochs"] * (5000 // 512) >= 60 > (found["epochs"] - 1) * (5000 // 512)
    assert (found["warmup_steps"], found["eta"], found["keep_weights"]) == (8 * (5000 // 512), 0.15, "last")
    assert resolve_auto(GIVEN, (20_000, 300), 10)["warmup_steps"] == 8 * (20_000 // 512)
    many = resolve_auto(GIVEN, (10**7, 300), 10)  # batches are drawn from at most 32,768 rows
    assert many["warmup_steps"] == 8 * (2**15 // 512)
    assert many["epochs"] * (2**15 // 512) >= 60


def test_the_published_start_has_its_own_values() -> None:
    found = resolve_auto(GIVEN | {"start": "warm-up"}, (5000, 300), 10)
    assert found["epochs"] * (5000 // 1024) >= 220 > (found["epochs"] - 1) * (5000 // 1024)
    assert (found["warmup_steps"], found["eta"], found["keep_weights"], found["n_neighbors"]) == (50, 0.15, "best", 10)


@pytest.mark.parametrize(("k", "d", "width", "n"), [(2, 128, 256, 512), (128, 128, 256, 640), (129, 256, 256, 645),
                                                   (1000, 1024, 1024, 2048), (3000, 1024, 1024, 2048)])  # fmt: skip
def test_there_is_room_for_every_cluster(k, d, width, n) -> None:
    found = resolve_auto(GIVEN, (100_000, 768), k)
    assert (found["n_components"], found["hidden_size"], found["batch_size"]) == (d, width, n)
    given = resolve_auto(GIVEN | {"n_components": 600}, (100_000, 768), 10)
    assert given["hidden_size"] == 600, "a narrower network would leave directions empty"


def test_images_begin_whitened_if_a_cluster_has_few() -> None:
    few, many = resolve_auto(GIVEN, (400, 32, 32), 40), resolve_auto(GIVEN, (40_000, 28, 28), 10)
    assert (few["encoder"], few["start"], few["n_components"], few["epochs"]) == ("conv", "whitened", 80, 300)
    assert resolve_auto(GIVEN, (7200, 32, 32), 100)["epochs"] == 50  # of three batches: 150 steps
    assert (few["keep_weights"], few["n_neighbors"]) == ("converged", 0)
    assert few["pretrain_epochs"] * 4 == 300  # batches of 100
    assert (many["encoder"], many["start"], many["keep_weights"]) == ("mlp", "walk", "last")


def test_what_is_given_stays_and_others_follow_it() -> None:
    found = resolve_auto(GIVEN | {"start": "whitened", "encoder": "none", "batch_size": 500}, (1000, 20), 4)
    assert "batch_size" not in found
    assert "start" not in found
    assert (found["epochs"], found["label_affinity"]) == (150, "neighbours")


@pytest.mark.parametrize("k", [3, 10])
def test_eta_gives_the_perplexity_it_is_for(k: int) -> None:
    Y = torch.nn.functional.normalize(torch.randn(200, 8, generator=torch.Generator().manual_seed(k)))
    assert k * perplexity(Y, find_eta(Y, AUTO_RULES.expressing_share / k)) == pytest.approx(
        AUTO_RULES.expressing_share, rel=1e-3
    )


def test_power_by_the_number_of_rows_in_a_cluster() -> None:
    assert resolve_auto(GIVEN, (5000, 300), 10)["power"] == 1  # until `choose_power` has looked at labels
    faces, objects = resolve_auto(GIVEN, (400, 32, 32), 40), resolve_auto(GIVEN, (7200, 32, 32), 100)
    assert (faces["label_affinity"], faces["power"]) == ("gram", 2)
    assert (objects["label_affinity"], objects["power"]) == ("neighbours", 1)  # until `eigengap` has looked at them
    assert resolve_auto(GIVEN | {"label_affinity": "coefficients"}, (400, 32, 32), 40)["power"] == 1


@pytest.mark.parametrize(
    ("k", "rows", "near", "telling"),
    [
        (2, 2048, 4096, 1024),
        (32, 2048, 4096, 1024),
        (64, 2560, 8192, 1280),
        (100, 4000, 8192, 2000),
        (1000, 8192, 8192, 4096),
    ],
)
def test_more_clusters_have_more_landmarks(k, rows, near, telling) -> None:
    assert resolve_auto(GIVEN, (100_000, 20), k)["max_landmarks"] == rows
    assert resolve_auto(GIVEN | {"label_affinity": "coefficients"}, (100_000, 20), k)["max_landmarks"] == near
    assert nystroem_landmarks_for(k) == telling


@pytest.mark.parametrize("better", [1.0, 2.0])
def test_power_of_neighbours_by_their_eigengap(better, monkeypatch) -> None:
    def gap(kernel: PowerKernel, k: int) -> float:
        assert k == 3
        return float(kernel.power == better)

    monkeypatch.setattr("prodsc.pro_dsc.labeller.eigengap", gap)
    X = load_digits(n_class=3).images[:60]
    small = {"encoder": "conv", "channels": (4,), "kernel_sizes": (3,), "pretrain_epochs": 1, "epochs": 2}
    model = PRODSC.from_flat(3, label_affinity="neighbours", **small).fit(X)
    assert model.resolved_params_["power"] == better
    assert PRODSC.from_flat(3, label_affinity="neighbours", power=3.0, **small).fit(X).config_.power == 3.0


def test_few_neighbours_keep_their_power(monkeypatch) -> None:
    monkeypatch.setattr("prodsc.pro_dsc.labeller.eigengap", lambda kernel, k: 1 / 0)
    X = np.random.default_rng(0).normal(size=(9, 6))
    small = {"epochs": 1, "warmup_steps": 1, "hidden_size": 8, "n_components": 4}
    assert PRODSC.from_flat(5, label_affinity="neighbours", **small).fit(X).resolved_params_["power"] == 1


HALVES, TENTHS = np.arange(100) // 50, (np.arange(100) >= 80).astype(int) + (np.arange(100) >= 95)


@pytest.mark.parametrize(
    ("dense", "sharp", "power"),
    [
        (np.arange(100) % 3, TENTHS, AUTO_RULES.sharp),
        (np.roll(TENTHS, 50), np.roll(TENTHS, 9), 1.0),  # neighbours agree on both: the sharp one may follow noise
        (TENTHS, TENTHS, 1.0),  # they agree: nothing to choose
        (np.arange(100) % 2, HALVES, 1.0),  # they do not, but sizes are no reason
        (np.arange(100) % 3, (np.arange(100) < 4).astype(int), 1.0),  # a few outliers are no cluster
        (np.arange(100) * 23 // 100 % 3, np.repeat([0, 1] * 5 + [2], [16, 3] * 5 + [5]), 1.0),  # hardly better: noise
        (np.arange(100) * 26 // 100 % 3, np.repeat([0, 1] * 5 + [2], [16, 3] * 5 + [5]), AUTO_RULES.sharp),
    ],
)
def test_power_by_sizes(dense, sharp, power) -> None:
    near = (np.arange(100)[:, None] + [1, 2]) % 100
    assert choose_power(lambda p: dense if p == 1 else sharp, near) == power


def test_clusters_of_very_different_sizes_are_found(tmp_path) -> None:
    """More than half of these digits are zeros: a dense affinity cuts them up."""
    X, y = load_digits(return_X_y=True)
    some = np.sort(np.concatenate([np.flatnonzero(y == j)[:n] for j, n in enumerate((170, 50, 20, 15, 15, 15))]))
    X, y = X[some], y[some]
    small = {"epochs": 60, "hidden_size": 128, "n_components": 32, "keep_weights": "last"}
    plain, found = (PRODSC.from_flat(6, power=power, **small).fit(X) for power in (1.0, "auto"))
    assert found.resolved_params_["power"] == AUTO_RULES.sharp
    assert accuracy(y, found.labels_) > accuracy(y, plain.labels_) + 0.2
    found.save(tmp_path / "m")
    again = PRODSC.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(X), found.labels_)


def test_few_rows_to_a_cluster_tell_nothing_of_sizes(monkeypatch) -> None:
    """A sharp affinity of few rows falls into pieces; its labels must not decide anything."""
    monkeypatch.setattr("prodsc.pro_dsc.labeller.choose_power", lambda labels, near, rules: AUTO_RULES.sharp)
    X = load_digits().data[:300]
    small = {"epochs": 2, "hidden_size": 16, "n_components": 8, "keep_weights": "last"}
    assert PRODSC.from_flat(9, **small).fit(X).resolved_params_["power"] == AUTO_RULES.sharp
    assert PRODSC.from_flat(10, **small).fit(X).resolved_params_["power"] == 1


def test_images_with_nothing_set(faces, tmp_path) -> None:
    X, y = faces
    model = PRODSC(3).fit(X)
    assert model.resolved_params_["encoder"] == "conv"
    assert 0 < model.resolved_params_["eta"] < 1
    assert all(len(np.unique(y[model.labels_ == j])) == 1 for j in range(3))
    assert len(model.history_["stability"]) < 600, "labels of clear clusters settle before the last of 300 joint steps"
    model.save(tmp_path / "m")
    again = PRODSC.load(tmp_path / "m")
    assert (again.flat_params()["eta"], again.encoder) == ("auto", "auto")
    assert again.resolved_params_ == model.resolved_params_
    np.testing.assert_array_equal(again.predict(X), model.labels_)


def test_many_images_are_rows_of_unit_length(faces) -> None:
    X, _ = faces
    many = np.concatenate([X // divisor for divisor in (1, 2, 3, 4)])
    model = PRODSC(3, epochs=2).fit(many)
    assert model.resolved_params_["encoder"] == "mlp"
    flat = PRODSC(3, epochs=2).fit(many.reshape(len(many), -1))
    np.testing.assert_allclose(model.transform(X), flat.transform(X.reshape(len(X), -1)), atol=1e-4)


def test_a_whitened_fit_resumes_with_the_same_eta(faces, tmp_path, monkeypatch) -> None:
    """eta is of the network at the start: a fit that goes on must not settle it on the network of its checkpoint."""

    class Stop(Callback):
        def on_step(self, training) -> None:
            if training.current.name == "joint" and training.step == 5:
                raise KeyboardInterrupt

    X, _ = faces
    monkeypatch.setattr("prodsc.training.checkpoint.SECONDS", 0.0)
    whole = PRODSC.from_flat(3, epochs=10, pretrain_epochs=5).fit(X)
    with pytest.raises(KeyboardInterrupt):
        PRODSC.from_flat(3, epochs=10, pretrain_epochs=5).fit(X, callbacks=[Stop()], checkpoint=tmp_path / "c")
    assert (tmp_path / "c").exists()
    again = PRODSC.from_flat(3, epochs=10, pretrain_epochs=5).fit(X, checkpoint=tmp_path / "c")
    assert again.resolved_params_ == whole.resolved_params_
    np.testing.assert_allclose(again.transform(X), whole.transform(X), atol=1e-5)


def test_auto_is_refused_where_it_means_nothing() -> None:
    with pytest.raises(ParameterError, match="batch_size must have a value, got 'auto'"):
        make("temi", n_clusters=3, batch_size="auto").fit(np.eye(9))
