"""Encoders (mlp, conv), autoencoders, and the network: an encoder with two heads."""

from prodsc.nn.autoencoder import Autoencoder, conv_autoencoder, mlp_autoencoder, relu_layers
from prodsc.nn.compiling import compiled
from prodsc.nn.coordinates import Moments, PrincipalCoordinates
from prodsc.nn.encoders import (
    ConvDecoder,
    ConvEncoder,
    initialise_autoencoder,
    initialise_expression,
    mlp,
    reinit_dead_layers,
)
from prodsc.nn.network import Network, Whitening, build_seeded, head, identity_head
from prodsc.nn.precision import gradient_scaler, resolve_dtype

__all__ = [
    "Autoencoder",
    "ConvDecoder",
    "ConvEncoder",
    "Moments",
    "Network",
    "PrincipalCoordinates",
    "Whitening",
    "build_seeded",
    "compiled",
    "conv_autoencoder",
    "gradient_scaler",
    "head",
    "identity_head",
    "initialise_autoencoder",
    "initialise_expression",
    "mlp",
    "mlp_autoencoder",
    "reinit_dead_layers",
    "relu_layers",
    "resolve_dtype",
]
