"""HEADS: encoders (mlp, conv) and the network of a pre-feature with two heads."""

from prodsc.nn.encoders import ConvDecoder, ConvEncoder, enliven, mlp
from prodsc.nn.network import Network, built, head

__all__ = ["ConvDecoder", "ConvEncoder", "Network", "built", "enliven", "head", "mlp"]
