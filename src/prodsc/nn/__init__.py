"""HEADS: encoders (mlp, conv) and the network of a pre-feature with two heads."""

from prodsc.nn.encoders import ConvDecoder, ConvEncoder, mlp
from prodsc.nn.network import Network, built, head

__all__ = ["ConvDecoder", "ConvEncoder", "Network", "built", "head", "mlp"]
