"""Autoencoders: an encoder, and the decoder that mirrors it."""

from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from prodsc.errors import ParameterError
from prodsc.nn.encoders import ConvDecoder, ConvEncoder, initialise, initialise_autoencoder, reinit_dead_layers
from prodsc.nn.network import build_seeded
from prodsc.types import Rows


def relu_layers(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers of the given sizes with ReLU between them, none after the last.

    Parameters
    ----------
    sizes : sequence of int
        Number of columns of the input and after each layer.
    """
    layers: list[nn.Module] = []
    for before, after in pairwise(sizes):
        layers += [nn.Linear(before, after), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Autoencoder(nn.Module):
    """X -> Z -> X_hat; Z has one flat row per row or image.

    Parameters
    ----------
    encoder, decoder : nn.Module
        X -> Z and Z -> X_hat.
    """

    def __init__(self, encoder: nn.Module, decoder: nn.Module):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def encode(self, X: Tensor) -> Rows:
        """Z."""
        return self.encoder(X)

    def decode(self, Z: Rows) -> Tensor:
        """X_hat."""
        return self.decoder(Z)


def mlp_autoencoder(
    sizes: Sequence[int],
    generator: torch.Generator,
    draw: Callable[[nn.Module, torch.Generator], None] = initialise,
) -> Autoencoder:
    """A multilayer perceptron of these sizes and its mirror.

    Parameters
    ----------
    sizes : sequence of int
        From the input to the code.
    generator : torch.Generator
        Source of the weights.
    draw : callable, default=initialise
        Initialises the weights from the generator.
    """
    return Autoencoder(
        build_seeded(lambda: relu_layers(sizes), generator, draw),
        build_seeded(lambda: relu_layers([*sizes][::-1]), generator, draw),
    )


def conv_autoencoder(
    sample: Tensor, channels: Sequence[int], kernel_sizes: Sequence[int], generator: torch.Generator
) -> Autoencoder:
    """DSC-Net's autoencoder: stride-2 convolutions and their mirror, with Xavier weights and no dead layers.

    Parameters
    ----------
    sample : Tensor of shape (n, channels, height, width)
        Some images, on which no layer may be dead.
    channels, kernel_sizes : sequence of int
        Output channels and kernel size of each layer.
    generator : torch.Generator
        Source of the weights.
    """
    if len(channels) != len(kernel_sizes):
        raise ParameterError(
            f"channels and kernel_sizes must have one entry per layer, got {len(channels)} and {len(kernel_sizes)}."
        )
    shape = (sample.shape[1], sample.shape[2], sample.shape[3])
    encoder = build_seeded(lambda: ConvEncoder(shape, channels, kernel_sizes), generator, initialise_autoencoder)
    decoder = build_seeded(lambda: ConvDecoder(shape, channels, kernel_sizes), generator, initialise_autoencoder)
    reinit_dead_layers(nn.Sequential(encoder, decoder), sample, generator)
    return Autoencoder(encoder, decoder)
