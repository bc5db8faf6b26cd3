"""Each augmentation against its plain form, one image at a time; and that randomness comes from the generator alone."""

import colorsys
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from prodsc.errors import InputError
from prodsc.paper import augment
from prodsc.paper.augment import Augmentation, Augmented, generator_of

NOTHING = Augmentation(scale=(1, 1), ratio=(1, 1), flip=0, jitter=0, grey=0, blur=0)


def images(n=6, channels=3, height=12, width=10, seed=0):
    return torch.rand(n, channels, height, width, generator=generator_of(seed), dtype=torch.float64)


def test_the_defaults_are_the_papers_list():
    paper = Augmentation()
    assert (paper.scale, paper.flip) == ((0.08, 1.0), 0.5)
    assert (paper.colour, paper.jitter) == ((0.4, 0.4, 0.2, 0.1), 0.8)
    assert paper.grey == 0.2
    assert (paper.kernel_size, paper.sigma, paper.blur) == (23, (0.1, 2.0), 1.0)


def test_crops_are_pytorchs_bilinear_interpolation_of_the_part():
    X = images()
    top, left = torch.tensor([0, 2, 3, 0, 11, 5]), torch.tensor([0, 1, 5, 9, 0, 3])
    h, w = torch.tensor([12, 7, 4, 12, 1, 2]), torch.tensor([10, 4, 5, 1, 10, 7])
    flipped = torch.tensor([False, True, False, True, False, True])
    found = augment.resized_crop(X, top, left, h, w, flipped)
    for i, (a, b, c, d) in enumerate(zip(top, left, h, w, strict=True)):
        expected = F.interpolate(X[i : i + 1, :, a : a + c, b : b + d], (12, 10), mode="bilinear", align_corners=False)
        torch.testing.assert_close(found[i], expected[0].flip(2) if flipped[i] else expected[0], atol=1e-5, rtol=0)


def test_random_crops_lie_inside_and_have_the_asked_area_and_shape():
    n, height, width = 20_000, 64, 48
    top, left, h, w = augment.random_crops(n, height, width, (0.08, 0.5), (3 / 4, 4 / 3), generator_of(0))
    for value in (top, left, h, w):
        assert torch.equal(value, value.round())
    assert (top.min(), left.min()) == (0, 0)
    assert ((top + h).max(), (left + w).max()) == (height, width)
    share, aspect = h * w / (height * width), w / h
    assert 0.07 < share.min() < 0.09
    assert 0.48 < share.max() < 0.52
    assert share.mean().item() == pytest.approx(0.29, abs=0.005)
    assert 0.70 < aspect.min() < 0.80
    assert 1.25 < aspect.max() < 1.42
    assert aspect.log().mean().item() == pytest.approx(0, abs=0.01)
    middle = (top + h / 2 - height / 2).mean()
    assert abs(middle) < 0.2


def test_where_no_crop_fits_the_middle_is_taken():
    top, left, h, w = augment.random_crops(5, 10, 40, (1, 1), (3 / 4, 4 / 3), generator_of(0))
    assert h.tolist() == [10] * 5
    assert w.tolist() == [13] * 5  # as wide as the ratio allows
    assert top.tolist() == [0] * 5
    assert left.tolist() == [13] * 5


def _reference_hue(pixel, turn):
    h, s, v = colorsys.rgb_to_hsv(*pixel)
    return colorsys.hsv_to_rgb((h + turn) % 1, s, v)


def test_hue_is_that_of_colorsys():
    X = images(n=4, height=5, width=5)
    X[:, :, 0, 0] = 0.3  # grey
    X[:, :, 0, 1] = torch.tensor([1.0, 1.0, 0.0], dtype=torch.float64)  # two channels alike
    X[:, :, 0, 2] = 0
    X[:, :, 0, 3] = torch.tensor([0.2, 0.7, 0.7], dtype=torch.float64)
    turn = torch.tensor([-0.5, -0.1, 0.07, 0.1], dtype=torch.float64)
    expected = np.array(
        [
            [[_reference_hue(X[i, :, r, c].tolist(), turn[i].item()) for c in range(5)] for r in range(5)]
            for i in range(4)
        ]
    )
    np.testing.assert_allclose(augment.hue(X, turn).permute(0, 2, 3, 1).numpy(), expected, atol=1e-12)


def _reference_jitter(image, factors, order):
    """channels x height x width, in plain numpy."""
    for number in order:
        factor = factors[number]
        luminance = 0.2989 * image[0] + 0.587 * image[1] + 0.114 * image[2]
        if number == 0:
            image = factor * image
        elif number == 1:
            image = factor * image + (1 - factor) * luminance.mean()
        elif number == 2:
            image = factor * image + (1 - factor) * luminance
        else:
            flat = [_reference_hue(pixel, factor) for pixel in image.reshape(3, -1).T]
            image = np.array(flat).T.reshape(image.shape)
        image = np.clip(image, 0, 1)
    return image


def test_jitter_applies_each_images_factors_in_its_own_order():
    X = images(n=8, height=4, width=4)
    factors, order = augment.random_jitter(8, (0.4, 0.4, 0.2, 0.1), generator_of(1))
    assert len({tuple(row) for row in order.tolist()}) > 3
    found = augment.jitter(X, factors, order)
    for i in range(8):
        expected = _reference_jitter(X[i].numpy(), factors[i].double().numpy(), order[i].tolist())
        np.testing.assert_allclose(found[i].numpy(), expected, atol=1e-12)


def test_jitter_factors_have_the_asked_range():
    factors, order = augment.random_jitter(5000, (0.4, 2.0, 0.2, 0.1), generator_of(0))
    low, high = factors.amin(0), factors.amax(0)
    torch.testing.assert_close(low, torch.tensor([0.6, 0.0, 0.8, -0.1]), atol=5e-3, rtol=0)  # never below 0
    torch.testing.assert_close(high, torch.tensor([1.4, 3.0, 1.2, 0.1]), atol=5e-3, rtol=0)
    assert torch.equal(order.sort(1).values, torch.arange(4).expand(5000, 4))
    assert len(order.unique(dim=0)) == math.factorial(4)


@pytest.mark.parametrize(("kernel_size", "height", "width"), [(23, 32, 28), (5, 4, 9)])
def test_blur_is_a_convolution_with_a_gaussian_and_mirrored_borders(kernel_size, height, width):
    X = images(n=4, height=height, width=width)
    sigma = torch.tensor([0.1, 0.5, 1.3, 2.0])
    found = augment.gaussian_blur(X, sigma, kernel_size)
    half = kernel_size // 2
    for i, s in enumerate(sigma.double()):
        line = torch.exp(-0.5 * (torch.arange(-half, half + 1) / s) ** 2)
        kernel = torch.outer(line, line) / line.sum() ** 2
        padded = F.pad(X[i][:, None], (half,) * 4, mode="reflect")
        torch.testing.assert_close(found[i], F.conv2d(padded, kernel[None, None])[:, 0], atol=1e-6, rtol=0)


def test_blur_reaches_beyond_a_tiny_image():
    """Reflection goes on as often as it must, so the weights still sum to one."""
    for size in (1, 2, 5):
        weights = augment.blurring(torch.tensor([0.1, 2.0]), 23, size)
        torch.testing.assert_close(weights.sum(2), torch.ones(2, size))
    torch.testing.assert_close(
        augment.gaussian_blur(torch.full((2, 3, 3, 3), 0.4), torch.ones(2), 23).mean().item(), 0.4
    )


def test_grey_images_have_three_equal_channels():
    X = images()
    found = augment.grey(X)
    expected = 0.2989 * X[:, 0] + 0.587 * X[:, 1] + 0.114 * X[:, 2]
    for channel in range(3):
        torch.testing.assert_close(found[:, channel], expected)


def test_with_every_chance_at_zero_nothing_changes():
    X = images(height=8, width=8)
    torch.testing.assert_close(NOTHING(X, generator_of(0)), X, atol=1e-6, rtol=0)


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("flip", lambda X: X.flip(3)),
        ("grey", augment.grey),
    ],
)
def test_each_image_takes_its_chance(name, changed):
    X = images(n=1000, height=4, width=4).float()
    found = Augmentation(**vars(NOTHING) | {name: 0.3})(X, generator_of(3))
    kept = torch.isclose(found, X, atol=1e-5).flatten(1).all(1)
    done = torch.isclose(found, changed(X), atol=1e-5).flatten(1).all(1)
    assert (kept ^ done).all()
    assert done.float().mean().item() == pytest.approx(0.3, abs=0.05)


@pytest.mark.parametrize(("name", "chance"), [("jitter", 0.8), ("blur", 0.5)])
def test_jitter_and_blur_take_their_chance_too(name, chance):
    X = images(n=1000, height=6, width=6).float()
    found = Augmentation(**vars(NOTHING) | {name: chance, "sigma": (1, 2)})(X, generator_of(3))
    changed = (~torch.isclose(found, X, atol=1e-4)).flatten(1).any(1)
    assert changed.float().mean().item() == pytest.approx(chance, abs=0.05)


def test_the_generator_decides_everything_and_images_differ():
    X = images(n=1, height=16, width=16).expand(8, -1, -1, -1)
    before = X.clone(), torch.random.get_rng_state()
    one, same, other = (Augmentation()(X, generator_of(7, t)) for t in (1, 1, 2))
    assert torch.equal(one, same)
    assert not torch.isclose(one, other).flatten(1).all(1).any()
    assert not any(torch.allclose(one[i], one[j]) for i in range(8) for j in range(i))
    assert one.shape == X.shape
    assert one.min() >= 0
    assert one.max() <= 1 + 1e-6
    assert torch.equal(before[0], X)
    assert torch.equal(before[1], torch.random.get_rng_state())


def test_an_image_is_augmented_whatever_its_neighbours_are():
    X = images(n=6, height=16, width=16)
    other = X.clone()
    other[1:] = 0.5
    torch.testing.assert_close(
        Augmentation()(X, generator_of(0))[0], Augmentation()(other, generator_of(0))[0], atol=1e-12, rtol=0
    )


def test_bytes_mean_what_their_numbers_over_255_mean():
    bytes_ = (255 * images(height=16, width=16)).to(torch.uint8)
    torch.testing.assert_close(
        Augmentation()(bytes_, generator_of(0)), Augmentation()(bytes_.float() / 255, generator_of(0))
    )


def test_one_channel_keeps_its_one_channel():
    X = images(channels=1, height=16, width=16)
    assert Augmentation()(X, generator_of(0)).shape == X.shape
    assert torch.equal(augment.grey(X), X)
    assert torch.equal(augment.hue(X, torch.full((6,), 0.1)), X)


def test_other_images_are_refused_in_one_sentence():
    with pytest.raises(InputError, match=r"1 or 3 channels, got shape \(2, 8, 8, 3\)"):
        Augmentation()(torch.rand(2, 8, 8, 3), generator_of(0))
    with pytest.raises(InputError, match=r"\[0, 1\], got values from -1 to 2"):
        Augmentation()(torch.tensor([-1.0, 2.0]).expand(1, 3, 2, 2), generator_of(0))


def test_a_generator_is_a_function_of_all_its_numbers():
    draws = {torch.rand(1, generator=generator_of(*key)).item() for key in [(0,), (0, 1), (1, 0), (1, 1), (2, 0)]}
    assert len(draws) == 5
    assert torch.rand(1, generator=generator_of(5, 6)) == torch.rand(1, generator=generator_of(5, 6))


def test_augmented_changes_images_in_training_only_and_goes_on_where_it_stopped():
    X = images(height=16, width=16).float()
    module = Augmented(nn.Flatten(), seed=3)
    assert torch.equal(module.eval()(X), X.flatten(1))
    module.train()
    seen = [module(X) for _ in range(3)]
    assert not torch.allclose(seen[0], seen[1])
    torch.testing.assert_close(seen[2], Augmentation()(X, generator_of(3, 2)).flatten(1))
    resumed = Augmented(nn.Flatten(), seed=3)
    resumed.load_state_dict(module.state_dict())
    assert torch.equal(resumed(X), module(X))
