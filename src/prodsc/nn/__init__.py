"""HEADS: encoders (mlp, conv) and the network of a pre-feature with two heads."""

from prodsc.nn.autoencoder import Autoencoder, conv_autoencoder, mlp_autoencoder, relu_layers
from prodsc.nn.encoders import ConvDecoder, ConvEncoder, enliven, initialise_autoencoder, mlp
from prodsc.nn.network import Network, Whitening, built, head, identity_head
from prodsc.nn.precision import PRECISIONS, gradient_scaler, used_dtype

__all__ = [
    "PRECISIONS",
    "Autoencoder",
    "ConvDecoder",
    "ConvEncoder",
    "Network",
    "Whitening",
    "built",
    "conv_autoencoder",
    "enliven",
    "gradient_scaler",
    "head",
    "identity_head",
    "initialise_autoencoder",
    "mlp",
    "mlp_autoencoder",
    "relu_layers",
    "used_dtype",
]
