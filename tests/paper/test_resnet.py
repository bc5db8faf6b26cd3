import pytest
import torch
from torch import nn

from prodsc.paper.resnet import BasicBlock, resnet18, resnet34


def draw(seed=0):
    return torch.Generator().manual_seed(seed)


@pytest.mark.parametrize(
    ("make", "n_weights"),
    [
        (resnet18, 11_173_962 - 5_130),  # the counts usually given for CIFAR-10, without its layer of 10 classes
        (resnet34, 21_282_122 - 5_130),
    ],
)
def test_the_published_widths_have_the_known_number_of_weights(make, n_weights):
    assert sum(p.numel() for p in make(draw()).parameters()) == n_weights


def test_the_stem_keeps_the_resolution_and_three_stages_halve_it():
    net = resnet18(draw(), width=4)
    X = torch.rand(2, 3, 32, 32)
    maps = net.stem(X)
    assert maps.shape == (2, 4, 32, 32)
    seen = []
    for block in net.blocks:
        maps = block(maps)
        seen.append(tuple(maps.shape[1:]))
    assert seen[1::2] == [(4, 32, 32), (8, 16, 16), (16, 8, 8), (32, 4, 4)]
    assert not any(isinstance(part, nn.MaxPool2d) for part in net.modules())
    torch.testing.assert_close(net.eval()(X), net.blocks(net.stem(X)).flatten(2).mean(2))


def test_a_block_adds_its_input_to_what_two_convolutions_make_of_it():
    block = BasicBlock(3, 3, stride=1).eval()
    X = torch.rand(2, 3, 5, 5)
    torch.testing.assert_close(block(X), torch.relu(block.residual(X) + X))
    wider = BasicBlock(3, 6, stride=2).eval()
    torch.testing.assert_close(wider(X), torch.relu(wider.residual(X) + wider.shortcut(X)))
    assert wider(X).shape == (2, 6, 3, 3)


def test_building_draws_from_its_generator_alone_and_leaves_nothing_undefined():
    before = torch.random.get_rng_state()
    one, same, other = (resnet34(draw(seed), width=4, in_channels=1) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert torch.equal(one.stem[0].weight, same.stem[0].weight)
    assert not torch.equal(one.stem[0].weight, other.stem[0].weight)
    for part in one.modules():
        if isinstance(part, nn.BatchNorm2d):
            assert torch.equal(part.running_mean, torch.zeros_like(part.running_mean))
            assert torch.equal(part.running_var, torch.ones_like(part.running_var))
            assert torch.equal(part.weight.detach(), torch.ones_like(part.weight))
            assert part.num_batches_tracked == 0
    assert torch.isfinite(one.eval()(torch.rand(2, 1, 28, 28))).all()
