"""Prepare an image for an encoder: resize the shorter side, crop the centre, normalise the channels."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

if TYPE_CHECKING:
    from PIL.Image import Image

Channels = tuple[float, float, float]


@dataclass(frozen=True)
class Preprocess:
    """(x / 255 - mean) / std of the centre crop of a resized image.

    Parameters
    ----------
    mean, std : tuple of three floats
        Of the channels.
    size : int
        Pixels of a side of the crop.
    resize : int
        Pixels of the shorter side before the crop.
    interpolation : str
        Name of a filter of Pillow.
    squash : bool
        Resize both sides to `resize`, without keeping the proportions.
    rounds : bool
        Round resized pixels to whole numbers, as Pillow does; a few encoders were trained without rounding.
    """

    mean: Channels
    std: Channels
    size: int = 224
    resize: int = 224
    interpolation: str = "bicubic"
    squash: bool = False
    rounds: bool = True

    def __call__(self, image: "Image") -> Tensor:
        """The prepared image, 3 x size x size."""
        width, height = self._resized(*image.size)
        x = self._rounded(image, width, height) if self.rounds else self._exact(image, width, height)
        left, top = round((width - self.size) / 2), round((height - self.size) / 2)
        x = x[:, top : top + self.size, left : left + self.size]
        return (x / 255 - torch.tensor(self.mean)[:, None, None]) / torch.tensor(self.std)[:, None, None]

    def _resized(self, width: int, height: int) -> tuple[int, int]:
        if self.squash:
            return self.resize, self.resize
        short, long = sorted((width, height))
        other = int(self.resize * long / short)
        return (self.resize, other) if width <= height else (other, self.resize)

    def _rounded(self, image: "Image", width: int, height: int) -> Tensor:
        from PIL import Image

        how = Image.Resampling[self.interpolation.upper()]
        return _as_tensor(rgb(image).resize((width, height), how))

    def _exact(self, image: "Image", width: int, height: int) -> Tensor:
        x = _as_tensor(rgb(image))[None]
        x = F.interpolate(x, (height, width), mode=self.interpolation, antialias=True, align_corners=False)
        return x[0].clamp(0, 255)  # bicubic interpolation overshoots at edges


def rgb(image: "Image") -> "Image":
    """Three channels of bytes. Transparent pixels get the colour stored with them, as in the encoders' own code."""
    from PIL import Image

    if image.mode.startswith("I;16"):  # Pillow would clip values above 255
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode in ("I", "F"):  # likewise: 32 bits, of which 16 are used, or any numbers
        values = np.asarray(image, dtype=np.float64)
        low, high = (0.0, 65535.0) if image.mode == "I" else (values.min(), values.max())
        grey = np.clip((values - low) / ((high - low) or 1.0) * 255, 0, 255).astype(np.uint8)
        return Image.fromarray(grey).convert("RGB")
    if image.mode == "P":
        image = image.convert("RGBA")  # straight to RGB, a palette with transparency makes Pillow warn
    return image.convert("RGB")


def _as_tensor(image: "Image") -> Tensor:
    return torch.from_numpy(np.array(image, dtype=np.float32)).permute(2, 0, 1)
