import jaxtyping
import numpy as np
import pytest
import torch
from torch import nn

from prodsc.nn import ConvDecoder, ConvEncoder, Network, build_seeded, head, mlp, reinit_dead_layers
from prodsc.nn.encoders import same_padding


@pytest.mark.parametrize(
    ("shape", "channels", "kernels", "flat"),
    [
        ((1, 48, 42), (10, 20, 30), (5, 3, 3), 1080),  # Extended Yale B
        ((1, 32, 32), (3, 3, 5), (3, 3, 3), 80),  # ORL
        ((1, 32, 32), (50,), (5,), 12800),  # COIL-100
        ((3, 9, 7), (4, 5), (1, 2), 5 * 3 * 2),
    ],
)
def test_conv_shapes_are_the_published_ones_and_the_decoder_mirrors_them(shape, channels, kernels, flat):
    images = torch.rand(2, *shape)
    H = ConvEncoder(shape, channels, kernels)(images)
    assert H.shape == (2, flat)
    assert ConvDecoder(shape, channels, kernels)(H).shape == images.shape


def _reference_same_conv(image, weight, bias):
    """Stride 2, SAME as TensorFlow defines it: output ceil(n/2), the odd padding pixel after."""
    (height, width), kernel = image.shape, weight.shape[-1]
    out_h, out_w = -(-height // 2), -(-width // 2)
    pad_h = max((out_h - 1) * 2 + kernel - height, 0)
    pad_w = max((out_w - 1) * 2 + kernel - width, 0)
    padded = np.pad(image, ((pad_h // 2, pad_h - pad_h // 2), (pad_w // 2, pad_w - pad_w // 2)))
    out = np.empty((out_h, out_w))
    for i in range(out_h):
        for j in range(out_w):
            out[i, j] = (padded[2 * i : 2 * i + kernel, 2 * j : 2 * j + kernel] * weight).sum() + bias
    return np.maximum(out, 0)


@pytest.mark.parametrize(("height", "width", "kernel"), [(8, 8, 3), (9, 6, 5), (5, 7, 2)])
def test_conv_is_tensorflows_same_padding(height, width, kernel):
    encoder = ConvEncoder((1, height, width), (1,), (kernel,)).double()
    image = torch.rand(1, 1, height, width, dtype=torch.float64)
    weight, bias = encoder.convolutions[0].weight[0, 0], encoder.convolutions[0].bias[0]
    expected = _reference_same_conv(image[0, 0].numpy(), weight.detach().numpy(), bias.item())
    np.testing.assert_allclose(encoder.maps(image)[0, 0].detach().numpy(), expected, atol=1e-12)


def test_same_padding_puts_the_odd_pixel_after():
    assert same_padding(32, 3) == (0, 1)
    assert same_padding(21, 3) == (1, 1)


def test_mlp_is_the_published_stack():
    kinds = [type(part) for part in mlp(5, 7)]
    assert kinds == [nn.Linear, nn.BatchNorm1d, nn.ReLU, nn.Linear, nn.ReLU]


def network(seed=0):
    generator = torch.Generator().manual_seed(seed)
    return Network(
        *(
            build_seeded(lambda m=m: m(), generator)
            for m in (lambda: mlp(5, 7), lambda: head(7, 3, None), lambda: head(7, 3, None))
        )
    )


def test_heads_give_unit_rows_and_differ_until_copied():
    net = network()
    H = net.encode(torch.rand(6, 5))
    Z, Y = net.z(H), net.y(H)
    torch.testing.assert_close(Z.norm(dim=1), torch.ones(6))
    torch.testing.assert_close(Y.norm(dim=1), torch.ones(6))
    assert not torch.allclose(Z, Y)
    net.copy_z_to_y()
    torch.testing.assert_close(net.y(H), Z)
    with torch.no_grad():
        net.f.weight.zero_()
    torch.testing.assert_close(net.y(H), Z)  # a copy, not a share


def test_building_draws_only_from_its_generator():
    before = torch.random.get_rng_state()
    one, same, other = network(1), network(1), network(2)
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(one.f.weight, same.f.weight)
    assert not torch.equal(one.f.weight, other.f.weight)
    assert not any(p.is_meta for p in one.parameters())


def test_initialisation_has_the_spread_of_pytorchs_own():
    ours = build_seeded(lambda: nn.Linear(400, 300), torch.Generator().manual_seed(0))
    assert ours.weight.std().item() == pytest.approx(nn.Linear(400, 300).weight.std().item(), rel=0.02)
    assert ours.bias.abs().max() <= 400**-0.5


def test_an_autoencoder_starts_alive():
    """Among 40 seeds of ORL's small autoencoder some start with a dead layer; none does after reinit_dead_layers."""
    images = torch.rand(20, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    shape, channels, kernels = (1, 32, 32), (3, 3, 5), (3, 3, 3)

    def dead(parts):
        X, found = images, 0
        with torch.no_grad():
            for convolution, kernel in zip(parts[0].convolutions, kernels, strict=True):
                X = torch.relu(convolution(torch.nn.functional.pad(X, (*same_padding(X.shape[-1], kernel),) * 2)))
                found += int((X == 0).all())
            found += int((parts[1](X.flatten(1)) == 0).all())
        return found

    before = after = 0
    for seed in range(40):
        generator = torch.Generator().manual_seed(seed)
        makers = (lambda: ConvEncoder(shape, channels, kernels), lambda: ConvDecoder(shape, channels, kernels))
        parts = nn.Sequential(*(build_seeded(make, generator) for make in makers))
        before += dead(parts) > 0
        reinit_dead_layers(parts, images, generator)
        after += dead(parts) > 0
    assert before > 0
    assert after == 0


def test_a_wrong_shape_fails_in_the_tests():
    """conftest.py installs the check; without it, z would take a vector of one row."""
    with pytest.raises(jaxtyping.TypeCheckError, match="parameter 'H'"):
        network().z(torch.rand(7))
