"""An image as its encoder wants it: shorter side resized, centre cut out, channels normalised. Needs Pillow only."""

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
    """(x / 255 - mean) / std of the central `size` x `size` pixels, once the shorter side has `resize` pixels."""

    mean: Channels
    std: Channels
    size: int = 224
    resize: int = 224
    interpolation: str = "bicubic"
    squash: bool = False  # both sides become `resize`, whatever the shape
    rounds: bool = True  # Pillow gives whole numbers; a few encoders were fed what comes before the rounding

    def __call__(self, image: "Image") -> Tensor:
        """3 x size x size."""
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
        return x[0].clamp(0, 255)  # cubic curves overshoot at edges


def rgb(image: "Image") -> "Image":
    """Three channels of bytes; what is transparent shows the colour stored beneath, as in the encoders' own code."""
    from PIL import Image

    if image.mode.startswith("I;16"):  # Pillow would cut everything above 255 off
        return Image.fromarray((np.asarray(image) >> 8).astype(np.uint8)).convert("RGB")
    if image.mode == "P":
        image = image.convert("RGBA")  # straight to RGB, a palette with transparency makes Pillow warn
    return image.convert("RGB")


def _as_tensor(image: "Image") -> Tensor:
    return torch.from_numpy(np.array(image, dtype=np.float32)).permute(2, 0, 1)
