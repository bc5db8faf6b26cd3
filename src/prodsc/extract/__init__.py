"""Extract features of images or texts with a pre-trained encoder."""

from prodsc.extract.encoders import SHORT_NAMES, Encoder, load_encoder
from prodsc.extract.extraction import Features, extract
from prodsc.extract.inputs import Items, open_items
from prodsc.extract.preprocess import Preprocess

__all__ = ["SHORT_NAMES", "Encoder", "Features", "Items", "Preprocess", "extract", "load_encoder", "open_items"]
