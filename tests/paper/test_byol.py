"""BYOL on small images: the formulas, the one loop, resuming, and fine-tuning with the PRO-DSC loss."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from prodsc import PRODSC
from prodsc.core import metrics
from prodsc.errors import InputError, ModelFileError, ParameterError
from prodsc.paper import byol
from prodsc.paper.augment import Augmentation, Augmented, generator_of
from prodsc.paper.byol import BYOL, BYOLBatch, BYOLSettings, encode, pretrain
from prodsc.paper.resnet import resnet18
from prodsc.training import Callback

SMALL = BYOLSettings(epochs=2, batch_size=16, hidden_size=12, projection_size=6)


@pytest.fixture(scope="module")
def pictures():
    """60 images of 16 x 16 in three kinds, as bytes: a bar that lies, one that stands, a disc; any place and shade."""
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(3), 20)
    rows, columns = np.mgrid[:16, :16]
    X = np.empty((60, 16, 16, 3), dtype=np.uint8)
    for i, kind in enumerate(y):
        a, b = rng.integers(5, 11, 2)
        shape = (abs(rows - a) < 2, abs(columns - b) < 2, (rows - a) ** 2 + (columns - b) ** 2 < 16)[kind]
        X[i] = np.where(shape[..., None], rng.integers(150, 256, 3), rng.integers(0, 60, 3))
    return X, y


def small_encoder(seed=0):
    return resnet18(generator_of(seed), width=4)


def small_network(seed=0):
    return byol.build_network(small_encoder(seed), torch.rand(2, 3, 16, 16), SMALL, seed)


def test_the_defaults_are_the_published_ones():
    assert BYOLSettings(epochs=1) == BYOLSettings(1, 256, 4096, 256, 0.05, 10.0, 0.9, 5e-4, 0.996)
    heads = byol.perceptron(8, 4096, 256)
    assert [type(part) for part in heads] == [nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear]
    assert (heads[0].out_features, heads[3].out_features) == (4096, 256)


def _reference_loss(q1, q2, t1, t2):
    """||q/|q| - t/|t| ||^2 over both pairs, less its constant 4."""
    rows = [
        np.square(q / np.linalg.norm(q) - t / np.linalg.norm(t)).sum() - 2
        for pair in (zip(q1, t2, strict=True), zip(q2, t1, strict=True))
        for q, t in pair
    ]
    return sum(rows) / len(q1)


def test_the_loss_is_the_distance_of_unit_rows_across_views():
    class Given:
        predictions = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)
        targets = torch.randn(5, 3, dtype=torch.float64), torch.randn(5, 3, dtype=torch.float64)

    expected = _reference_loss(*(part.numpy() for part in (*Given.predictions, *Given.targets)))
    assert byol.prediction_loss(Given).item() == pytest.approx(expected, rel=1e-10)
    Given.targets = Given.predictions[::-1]
    assert byol.prediction_loss(Given).item() == pytest.approx(-4)


def test_no_gradient_reaches_the_target_and_every_online_weight_gets_one():
    network = small_network()
    step = BYOLBatch(network, torch.rand(4, 3, 16, 16), Augmentation(), (0, 0))
    byol.prediction_loss(step).backward()
    assert all(p.grad is None for p in network.target.parameters())
    online = [*network.encoder.parameters(), *network.projector.parameters(), *network.predictor.parameters()]
    assert all(p.grad is not None for p in online)


def test_views_are_a_function_of_their_key_and_differ():
    network, X = small_network(), torch.rand(4, 3, 16, 16)
    (one, two), (same, _), (other, _) = (BYOLBatch(network, X, Augmentation(), (0, t)).views for t in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.allclose(one, two)
    assert not torch.allclose(one, other)


def test_the_target_follows_by_its_momentum():
    network = small_network()
    start = [p.clone() for p in network.target.parameters()]
    with torch.no_grad():
        for p in network.parameters():
            p.add_(torch.ones_like(p) if p.requires_grad else 0)
    network.follow(0.75)
    for before, after in zip(start, network.target.parameters(), strict=True):
        torch.testing.assert_close(after, before + 0.25)


def test_momentum_rises_from_its_start_to_one():
    assert byol.target_momentum(0.996, 0, 100) == pytest.approx(0.996)
    assert byol.target_momentum(0.996, 50, 100) == pytest.approx(0.998)
    assert byol.target_momentum(0.996, 100, 100) == 1
    assert byol.target_momentum(0.9, 25, 100) == pytest.approx(1 - 0.1 * (math.cos(math.pi / 4) + 1) / 2)


class Follow(Callback):
    """Works out by itself what the target should be after each step, as the last callback would see it."""

    def __init__(self):
        self.expected = self.found = None

    def on_batch(self, training):
        if self.expected is None:
            self.expected = [p.clone() for p in training.network.target.parameters()]

    def on_step(self, training):
        momentum = byol.target_momentum(0.996, training.step, 6)
        online = [*training.network.encoder.parameters(), *training.network.projector.parameters()]
        self.expected = [momentum * a + (1 - momentum) * b for a, b in zip(self.expected, online, strict=True)]
        self.found = [p.clone() for p in training.network.target.parameters()]


def test_training_moves_the_target_once_a_step_before_other_callbacks_look(pictures):
    follow = Follow()
    pretrain(small_encoder(), pictures[0], SMALL, callbacks=[follow])
    for expected, found in zip(follow.expected, follow.found, strict=True):
        torch.testing.assert_close(found, expected.detach(), atol=1e-6, rtol=1e-5)


def test_the_predictor_learns_ten_times_as_fast():
    network = small_network()
    slow, fast = byol.build_optimizer(BYOLSettings(), network).param_groups
    assert (slow["lr"], fast["lr"]) == (0.05, 0.5)
    assert {(group["weight_decay"], group["momentum"]) for group in (slow, fast)} == {(5e-4, 0.9)}
    assert {id(p) for p in fast["params"]} == {id(p) for p in network.predictor.parameters()}
    trained = sum(len(group["params"]) for group in (slow, fast))
    assert trained == sum(p.requires_grad for p in network.parameters())


def test_pre_training_lowers_the_loss_and_leaves_the_callers_things_alone(pictures):
    X, _ = pictures
    encoder = small_encoder()
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    pixels, state = X.copy(), torch.random.get_rng_state()
    found = pretrain(encoder, X, BYOLSettings(10, 30, 32, 16, target_momentum=0.9), seed=1)
    assert torch.equal(state, torch.random.get_rng_state())
    np.testing.assert_array_equal(X, pixels)
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    loss = found.history["prediction"]
    assert len(loss) == 20
    assert loss[-5:].mean() < loss[:5].mean() - 0.5
    H = encode(found.encoder, X)
    assert H.shape == (60, 32)
    assert not found.encoder.training
    assert (
        np.linalg.norm(H / np.linalg.norm(H, axis=1, keepdims=True) - H[0] / np.linalg.norm(H[0]), axis=1).max() > 0.05
    )


def test_the_same_seed_gives_the_same_encoder(pictures):
    X, _ = pictures
    one, same, other = (pretrain(small_encoder(), X, SMALL, seed=seed).encoder.state_dict() for seed in (0, 0, 1))
    assert all(torch.equal(value, same[name]) for name, value in one.items())
    assert not torch.equal(one["stem.0.weight"], other["stem.0.weight"])


class Stop(Exception):
    pass


class StopAt(Callback):
    """As a kill would, right after a checkpoint."""

    def __init__(self, step):
        self.step = step

    def on_step(self, training):
        if training.step == self.step:
            raise Stop


@pytest.fixture
def save_always(monkeypatch):
    monkeypatch.setattr("prodsc.training.checkpoint.SECONDS", 0.0)


@pytest.mark.usefixtures("save_always")
def test_a_resumed_run_ends_with_the_same_weights(pictures, tmp_path):
    X, _ = pictures
    whole = pretrain(small_encoder(), X, SMALL)
    path = tmp_path / "byol.safetensors"
    with pytest.raises(Stop):  # the callback stops step 4 before it is saved, so step 4 is done again
        pretrain(small_encoder(), X, SMALL, checkpoint=path, callbacks=[StopAt(4)])
    resumed = pretrain(small_encoder(), X, SMALL, checkpoint=path)
    for name, value in whole.encoder.state_dict().items():
        assert torch.equal(value, resumed.encoder.state_dict()[name]), name
    np.testing.assert_array_equal(whole.history["prediction"], resumed.history["prediction"])
    again = pretrain(small_encoder(), X, SMALL, checkpoint=path)  # nothing is left to do
    assert torch.equal(again.encoder.stem[0].weight, whole.encoder.stem[0].weight)


def test_a_checkpoint_is_of_one_run(pictures, tmp_path):
    X, _ = pictures
    path = tmp_path / "byol.safetensors"
    pretrain(small_encoder(), X, SMALL, checkpoint=path)
    with pytest.raises(ModelFileError, match="other data"):
        pretrain(small_encoder(), X[:50], SMALL, checkpoint=path)
    with pytest.raises(ModelFileError, match="another seed=0, now 1"):
        pretrain(small_encoder(), X, SMALL, checkpoint=path, seed=1)
    with pytest.raises(ModelFileError, match=r"another grey=0\.2, now 0\.0"):
        pretrain(small_encoder(), X, SMALL, checkpoint=path, augmentation=Augmentation(grey=0.0))
    with pytest.raises(ModelFileError, match="another encoder="):
        pretrain(small_encoder(1), X, SMALL, checkpoint=path)


def test_wrong_settings_and_images_are_one_sentence(pictures):
    X, _ = pictures
    with pytest.raises(ParameterError, match=r"batch_size must be at least 2, got 1"):
        BYOLSettings(batch_size=1)
    with pytest.raises(ParameterError, match=r"target_momentum must be in \[0, 1\), got 1"):
        BYOLSettings(target_momentum=1)
    with pytest.raises(InputError, match="at least 2 images, got 1"):
        pretrain(small_encoder(), X[:1], SMALL)
    with pytest.raises(InputError, match="n x height x width"):
        pretrain(small_encoder(), X.reshape(60, -1), SMALL)
    with pytest.raises(InputError, match=r"bytes or numbers in \[0, 1\]"):
        pretrain(small_encoder(), X.astype(np.float32), SMALL)


def test_encode_needs_no_channel_axis_and_keeps_the_mode_of_the_module():
    encoder = resnet18(generator_of(0), width=2, in_channels=1).train()
    grey = np.random.default_rng(0).random((5, 8, 8), dtype=np.float32)
    H = encode(encoder, grey)
    assert encoder.training
    np.testing.assert_allclose(H, encoder.eval()(torch.from_numpy(grey)[:, None]).detach().numpy(), atol=1e-6)


# ---- fine-tuning with the PRO-DSC loss: an augmented encoder is an encoder like any other --------------------


def fine_tuner(encoder, epochs=4):
    return PRODSC.from_flat(
        3,
        encoder=Augmented(encoder),
        n_components=8,
        gamma=5.0,
        beta=5.0,
        batch_size=30,
        epochs=epochs,
        warmup_steps=3,
        learning_rate=0.05,
        n_init=3,
        device="cpu",
    )


@pytest.mark.filterwarnings("ignore:gamma:UserWarning", "ignore:the representation is collapsing:UserWarning")
def test_fine_tuning_on_bytes_trains_the_encoder_and_predicts_without_augmenting(pictures, tmp_path):
    X, y = pictures
    start = small_encoder()
    before = start.stem[0].weight.clone()
    model = fine_tuner(start).fit(X)
    tuned = model.network_.encoder
    assert int(tuned.t) == 3 + 4 * 2  # one draw a step
    assert torch.equal(start.stem[0].weight, before)
    assert not torch.allclose(tuned.encoder.stem[0].weight, before)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_allclose(model.transform(X[:7]), model.transform(X)[:7], atol=1e-5)
    assert metrics.accuracy(y, model.labels_) > 0.4
    model.save(tmp_path / "model")
    loaded = PRODSC.load(tmp_path / "model", encoder=Augmented(small_encoder(5)))
    np.testing.assert_array_equal(loaded.predict(X), model.labels_)


@pytest.mark.usefixtures("save_always")
@pytest.mark.filterwarnings("ignore:gamma:UserWarning", "ignore:the representation is collapsing:UserWarning")
def test_resumed_fine_tuning_sees_the_same_augmented_images(pictures, tmp_path):
    X, _ = pictures
    whole = fine_tuner(small_encoder()).fit(X)
    path = tmp_path / "fit.safetensors"
    with pytest.raises(Stop):
        fine_tuner(small_encoder()).fit(X, checkpoint=path, callbacks=[StopAt(5)])
    resumed = fine_tuner(small_encoder()).fit(X, checkpoint=path)
    for name, value in whole.network_.state_dict().items():
        assert torch.equal(value, resumed.network_.state_dict()[name]), name


def test_byol_is_a_module_whose_target_starts_as_a_copy():
    network = small_network()
    assert isinstance(network, BYOL)
    for slow, fast in zip(network.target[0].parameters(), network.encoder.parameters(), strict=True):
        assert torch.equal(slow, fast)
        assert slow.data_ptr() != fast.data_ptr()
