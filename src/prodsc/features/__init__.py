"""EXTRACT: images or texts to features with a pre-trained encoder, or an encoder of one's own (BYOL)."""

from prodsc.features.encoders import SHORT_NAMES, Encoder, load_encoder
from prodsc.features.extraction import Features, extract
from prodsc.features.inputs import Items, open_items
from prodsc.features.preprocess import Preprocess

__all__ = ["SHORT_NAMES", "Encoder", "Features", "Items", "Preprocess", "extract", "load_encoder", "open_items"]
