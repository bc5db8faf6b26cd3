"""The start, the scaling, the weights and the schedule of each rival are its authors', or follow from them."""

import numpy as np
import pytest
from sklearn.datasets import load_digits
from torch import nn

from prodsc.baselines import EDESC, SCAN, TEMI, DSCNet, SENet
from prodsc.baselines.cpp import cpp_sizes
from prodsc.baselines.k_means import KMeansClusterer
from prodsc.baselines.temi import temi_schedule
from prodsc.bench.compare import ComparisonTable
from prodsc.bench.summary import MethodSummary
from prodsc.core import metrics
from prodsc.estimators.soft import neighbours_within
from prodsc.registry import departures_of, make
from prodsc.training import Callback


class AtTheStart(Callback):
    """Keeps the weights before the first step."""

    def on_batch(self, training):
        if not hasattr(self, "weights"):
            self.weights = {name: value.clone() for name, value in training.network.state_dict().items()}


def start_of(model, X):
    seen = AtTheStart()
    model.fit(X, callbacks=[seen])
    return seen.weights


def test_senet_starts_as_its_authors_do(blobs):
    """Kaiming-uniform layers, a Xavier output, biases of zero."""
    how = {"hidden_sizes": (400, 300), "n_components": 200, "steps": 1, "n_init": 1, "device": "cpu"}
    weights = start_of(SENet(3, **how), blobs[0])
    for part in ("query", "key"):
        layers = [weights[f"{part}.{i}.weight"] for i in (0, 2, 4)]
        for layer in layers[:-1]:
            assert float(layer.abs().max()) == pytest.approx((6 / layer.shape[1]) ** 0.5, rel=0.02)
        assert float(layers[-1].abs().max()) == pytest.approx((6 / (300 + 200)) ** 0.5, rel=0.02)
        assert all((weights[f"{part}.{i}.bias"] == 0).all() for i in (0, 2, 4))


@pytest.mark.parametrize("encoder", ["mlp", "conv"])
def test_dsc_nets_autoencoder_starts_with_xavier_weights(encoder):
    X = load_digits().images[:60] / 16
    how = {"channels": (4, 8), "kernel_sizes": (3, 3), "hidden_size": 50, "n_components": 30}
    how |= {"pretrain_epochs": 1, "epochs": 1, "n_init": 1, "device": "cpu"}
    weights = start_of(DSCNet(3, encoder=encoder, **how), X if encoder == "conv" else X.reshape(60, -1))
    autoencoder = {name: value for name, value in weights.items() if name.startswith("autoencoder")}
    for name, value in autoencoder.items():
        if name.endswith("bias"):
            assert (value == 0).all(), name
        else:
            fan_in, fan_out = nn.init._calculate_fan_in_and_fan_out(value)
            assert float(value.abs().max()) == pytest.approx((6 / (fan_in + fan_out)) ** 0.5, rel=0.1), name


@pytest.mark.parametrize(("encoder", "rate"), [("mlp", 1e-4), ("conv", 1e-3)])
def test_dsc_nets_rate_is_that_of_the_paper_for_features_and_for_images(encoder, rate):
    network = nn.Linear(1, 1)
    assert DSCNet(3, encoder=encoder)._adam(network).param_groups[0]["lr"] == rate


def test_the_neighbours_of_temi_are_those_of_the_rows(blobs):
    """One scale for all columns keeps angles around the mean; standardised columns would not."""
    X = blobs[0] * np.where(np.arange(blobs[0].shape[1]) == 0, 100.0, 1.0)
    seen = []

    class Look(Callback):
        def on_batch(self, training):
            seen.append(training.batch.X)

    quick = {"n_heads": 1, "hidden_size": 4, "n_components": 4, "warmup_epochs": 0, "epochs": 1, "device": "cpu"}
    for method, how in ((TEMI, quick), (SCAN, {"n_heads": 1, "epochs": 1, "self_label_epochs": 0, "device": "cpu"})):
        method(3, **how).fit(X, callbacks=[Look()])
        spread = seen[-1].std(0)
        assert float(spread[0]) > 10 * float(spread[1:].max())


def test_temis_schedule_is_the_published_one_for_its_data_and_follows_for_fewer_rows():
    published = temi_schedule(50_000, 10, 97, 120)
    assert (published.n_heads, published.n_neighbors, published.hidden_size, published.n_components) == (
        50,
        50,
        512,
        256,
    )
    assert published.learning_rate == pytest.approx(2e-4, rel=0.02)
    assert published.teacher_momentum == pytest.approx(0.996, rel=1e-4)
    few = temi_schedule(1797, 10, 3, 120)
    assert few.n_heads == 5
    assert few.teacher_momentum**3 == pytest.approx(0.996**98)
    assert few.learning_rate == pytest.approx(2e-3)
    assert temi_schedule(500, 50, 1, 120).n_neighbors == 5


def test_neighbours_fit_the_clusters():
    assert neighbours_within("auto", 2820, 47, most=50) == 30
    assert neighbours_within("auto", 50_000, 10, most=20) == 20
    assert neighbours_within("auto", 60, 30, most=20) == 5
    assert neighbours_within(7, 2820, 47, most=20) == 7


def test_a_model_with_auto_sizes_is_loaded_with_the_same(blobs, tmp_path):
    model = TEMI(3, warmup_epochs=0, epochs=1, device="cpu").fit(blobs[0])
    assert (model.network_.prior.shape, model.network_.students[0].layers[0].out_features) == ((5, 3), 128)
    model.save(tmp_path)
    np.testing.assert_array_equal(TEMI.load(tmp_path).predict(blobs[0]), model.labels_)


def test_scans_batches_hold_rows_of_every_cluster(blobs):
    X = np.random.default_rng(0).standard_normal((2000, 4))
    how = {"n_heads": 1, "epochs": 1, "self_label_epochs": 0, "device": "cpu"}
    assert len(SCAN(3, **how).fit(X).history_["total"]) == 2000 // 512
    assert len(SCAN(100, **how).fit(X).history_["total"]) == 2000 // 1000


# Version 0.1, seed 0 (issue 20): SENet 42.2, SCAN 59.9, TEMI 49.9, EnSC 77.6; k-means 79.0.
@pytest.mark.parametrize(
    "method",
    ["scan", "ensc", *(pytest.param(name, marks=pytest.mark.slow) for name in ("senet", "temi", "cpp", "dsc-net"))],
)
def test_rivals_are_ahead_of_k_means_on_digits(method):
    digits = load_digits()
    base = metrics.accuracy(digits.target, KMeansClusterer(10).fit(digits.data).labels_)
    found = metrics.accuracy(digits.target, make(method, n_clusters=10, device="cpu").fit(digits.data).labels_)
    assert found > base


def test_cpps_batches_and_dimension_suit_small_data():
    assert cpp_sizes(50_000, 10) == (1024, 128)
    assert cpp_sizes(1797, 10) == (256, 64)
    assert cpp_sizes(2820, 47) == (470, 128)


def test_edescs_autoencoder_is_trained_for_a_thousand_steps_on_small_data(blobs):
    model = EDESC(3, hidden_sizes=(8,), steps=1, pretrain_batch_size=100, n_init=1, device="cpu").fit(blobs[0])
    assert (model.history_["phase"] == "pre-train").sum() == 1000


def test_departures_from_the_authors_are_printed_with_the_numbers():
    table = ComparisonTable([MethodSummary("x", name, "", {}, 1) for name in ("k-means", "senet")], ("ACC",), {})
    text = table.markdown()
    assert f"- senet: {SENet.departures}" in text
    assert "- k-means:" not in text
    rivals = ("ssc-omp", "ensc", "senet", "dsc-net", "edesc", "scan", "temi", "cpp", "turtle")
    assert list(departures_of(rivals)) == list(rivals)
