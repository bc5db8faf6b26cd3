"""ResNet-18 and ResNet-34 for small images: a 3x3 stem of stride 1 and no max-pooling."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from prodsc.nn.network import build_seeded


class ResNet(nn.Module):
    """Stem, four stages of basic blocks with 1, 2, 4 and 8 times `width` channels, mean over space."""

    def __init__(self, blocks: Sequence[int], width: int, in_channels: int):
        super().__init__()
        self.stem = nn.Sequential(_convolution(in_channels, width, 3, 1), nn.BatchNorm2d(width), nn.ReLU())
        self.blocks = nn.Sequential()
        before = width
        for stage, count in enumerate(blocks):
            after = width * 2**stage
            for i in range(count):
                self.blocks.append(BasicBlock(before, after, stride=2 if stage > 0 and i == 0 else 1))
                before = after

    def forward(self, X: Tensor) -> Tensor:
        return self.blocks(self.stem(X)).mean((2, 3))


class BasicBlock(nn.Module):
    """relu(F(x) + x), F two 3x3 convolutions; where shapes differ x goes through a 1x1 convolution."""

    def __init__(self, before: int, after: int, stride: int):
        super().__init__()
        self.residual = nn.Sequential(
            _convolution(before, after, 3, stride),
            nn.BatchNorm2d(after),
            nn.ReLU(),
            _convolution(after, after, 3, 1),
            nn.BatchNorm2d(after),
        )
        self.shortcut: nn.Module = nn.Identity()
        if stride != 1 or before != after:
            self.shortcut = nn.Sequential(_convolution(before, after, 1, stride), nn.BatchNorm2d(after))

    def forward(self, X: Tensor) -> Tensor:
        return F.relu(self.residual(X) + self.shortcut(X))


def resnet18(generator: torch.Generator, width: int = 64, in_channels: int = 3) -> nn.Module:
    """Images to rows of 8 * width, initialised from `generator`; the published one has width 64."""
    return build_seeded(lambda: ResNet((2, 2, 2, 2), width, in_channels), generator)


def resnet34(generator: torch.Generator, width: int = 64, in_channels: int = 3) -> nn.Module:
    """As resnet18, twice as deep."""
    return build_seeded(lambda: ResNet((3, 4, 6, 3), width, in_channels), generator)


def _convolution(before: int, after: int, kernel: int, stride: int) -> nn.Conv2d:
    """Without a bias: batch normalisation follows and would take it away."""
    return nn.Conv2d(before, after, kernel, stride, padding=kernel // 2, bias=False)
