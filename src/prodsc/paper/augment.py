"""The paper's five augmentations on whole batches; every image gets parameters of its own, drawn from a generator.

Crop, flip and blur are linear in the rows and in the columns of an image: two small matrices per image do them.
"""

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from prodsc.errors import InputError

GREY = (0.2989, 0.587, 0.114)  # shares of red, green and blue in luminance (ITU-R 601)


@dataclass(frozen=True)
class Augmentation:
    """Random resized crop, flip, colour jitter, greyscale, blur; the defaults are the paper's list.

    `colour` are the largest changes of brightness, contrast, saturation (as a share) and hue (as a part of a turn).
    """

    scale: tuple[float, float] = (0.08, 1.0)
    ratio: tuple[float, float] = (3 / 4, 4 / 3)
    flip: float = 0.5
    colour: tuple[float, float, float, float] = (0.4, 0.4, 0.2, 0.1)
    jitter: float = 0.8
    grey: float = 0.2
    blur: float = 1.0
    sigma: tuple[float, float] = (0.1, 2.0)
    kernel_size: int = 23

    def __call__(self, X: Tensor, generator: torch.Generator) -> Tensor:
        """A random version of each image of X (n x 1 or 3 x height x width; bytes, or numbers in [0, 1])."""
        X = unit_range(X)
        n, _, height, width = X.shape
        top, left, h, w = random_crops(n, height, width, self.scale, self.ratio, generator)
        flipped = chance(n, self.flip, generator)
        factors, order = random_jitter(n, self.colour, generator)
        jittered, greyed, blurred = (chance(n, p, generator) for p in (self.jitter, self.grey, self.blur))
        sigma = uniform(n, *self.sigma, generator)

        X = resized_crop(X, top, left, h, w, flipped)
        X = torch.where(_each(jittered, X), jitter(X, factors, order), X)
        X = torch.where(_each(greyed, X), grey(X), X)
        return torch.where(_each(blurred, X), gaussian_blur(X, sigma, self.kernel_size), X)


class Augmented(nn.Module):
    """encoder(augmentation(X)) while training, encoder(X) in evaluation.

    The t-th batch is augmented by a generator of (seed, t); t is kept with the weights, so a run resumed from a
    checkpoint sees the same images.
    """

    t: Tensor

    def __init__(self, encoder: nn.Module, augmentation: Augmentation | None = None, seed: int = 0):
        super().__init__()
        self.encoder, self.augmentation, self.seed = encoder, augmentation or Augmentation(), seed
        self.register_buffer("t", torch.zeros((), dtype=torch.int64))

    def forward(self, X: Tensor) -> Tensor:
        if not self.training:
            return self.encoder(unit_range(X))
        generator = generator_of(self.seed, int(self.t))
        self.t += 1
        return self.encoder(self.augmentation(X, generator))


def generator_of(*numbers: int) -> torch.Generator:
    """A generator that is a function of these numbers, such as (seed, step)."""
    state = np.random.SeedSequence(numbers).generate_state(1, np.uint64)
    return torch.Generator().manual_seed(int(state[0]))


def unit_range(X: Tensor) -> Tensor:
    """Images as numbers in [0, 1]."""
    if X.ndim != 4 or X.shape[1] not in (1, 3):
        raise InputError(
            f"images must be n x channels x height x width with 1 or 3 channels, got shape {tuple(X.shape)}. "
            "Move the channels before the height, or add the missing axis."
        )
    if X.dtype == torch.uint8:
        return X.float() / 255
    low, high = (float(value) for value in X.aminmax())
    if low < 0 or high > 1:
        raise InputError(
            f"images must be bytes or numbers in [0, 1], got values from {low:.4g} to {high:.4g}. "
            "Divide them by their largest possible value; do not standardise them."
        )
    return X


# ---- draws: on the CPU, so that a seed means the same on every device ---------------------------------------


def uniform(n: int, low: float, high: float, generator: torch.Generator) -> Tensor:
    return low + (high - low) * torch.rand(n, generator=generator)


def chance(n: int, p: float, generator: torch.Generator) -> Tensor:
    return torch.rand(n, generator=generator) < p


def random_crops(
    n: int,
    height: int,
    width: int,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    generator: torch.Generator,
    attempts: int = 10,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Integer top, left, h, w of n crops: area uniform in `scale`, w/h log-uniform in `ratio`.

    Where no crop of `attempts` fits inside the image, the largest central one is taken.
    """
    tries = attempts * n
    area = height * width * uniform(tries, *scale, generator)
    aspect = uniform(tries, math.log(ratio[0]), math.log(ratio[1]), generator).exp()
    h, w = ((area / aspect).sqrt().round().view(n, attempts), (area * aspect).sqrt().round().view(n, attempts))
    fits = (h > 0) & (h <= height) & (w > 0) & (w <= width)
    first = fits.int().argmax(1, keepdim=True)  # 0 when none fits
    widest, highest = min(width, round(height * ratio[1])), min(height, round(width / ratio[0]))
    fitting = fits.any(1)
    h = torch.where(fitting, h.gather(1, first)[:, 0], highest)
    w = torch.where(fitting, w.gather(1, first)[:, 0], widest)
    top = (torch.rand(n, generator=generator) * (height - h + 1)).floor()
    left = (torch.rand(n, generator=generator) * (width - w + 1)).floor()
    middle = ((height - h) / 2).floor(), ((width - w) / 2).floor()
    return torch.where(fitting, top, middle[0]), torch.where(fitting, left, middle[1]), h, w


def random_jitter(
    n: int, colour: tuple[float, float, float, float], generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """n x 4 factors (brightness, contrast, saturation around 1; hue around 0), and n orders to apply them in."""
    low = [max(0.0, 1 - change) for change in colour[:3]] + [-colour[3]]
    high = [1 + change for change in colour[:3]] + [colour[3]]
    factors = torch.stack([uniform(n, a, b, generator) for a, b in zip(low, high, strict=True)], 1)
    return factors, torch.rand(n, 4, generator=generator).argsort(1)


# ---- what is done with them ---------------------------------------------------------------------------------


def resized_crop(X: Tensor, top: Tensor, left: Tensor, h: Tensor, w: Tensor, flipped: Tensor) -> Tensor:
    """Image i cut to rows top..top+h and columns left..left+w, stretched to its old size, and mirrored if flipped."""
    rows = resampling(top, h, X.shape[2])
    columns = resampling(left, w, X.shape[3])
    columns = torch.where(flipped[:, None, None], columns.flip(1), columns)
    return _both_ways(rows, X, columns)


def resampling(start: Tensor, length: Tensor, size: int) -> Tensor:
    """n x size x size: row o holds the bilinear weights by which pixel o is made of start..start+length."""
    pixels = torch.arange(size)
    position = (pixels + 0.5) * length[:, None] / size - 0.5
    position = start[:, None] + position.clamp(min=0).minimum(length[:, None] - 1)  # the crop's edge is repeated
    return (1 - (position[:, :, None] - pixels).abs()).clamp(min=0)


def jitter(X: Tensor, factors: Tensor, order: Tensor) -> Tensor:
    """Brightness, contrast, saturation and hue of image i changed by row i of factors, in the order of row i."""
    X, order, factors = X.clone(), order.to(X.device), factors.to(X.device)
    for place in range(4):
        for number, change in enumerate((brightness, contrast, saturation, hue)):
            mine = (order[:, place] == number).nonzero()[:, 0]
            X[mine] = change(X[mine], factors[mine, number])
    return X


def brightness(X: Tensor, factor: Tensor) -> Tensor:
    """factor * x, in [0, 1]."""
    return _blend(X, torch.zeros_like(X), factor)


def contrast(X: Tensor, factor: Tensor) -> Tensor:
    """Away from (factor > 1) or towards the mean luminance of the image."""
    return _blend(X, luminance(X).mean((2, 3), keepdim=True), factor)


def saturation(X: Tensor, factor: Tensor) -> Tensor:
    """Away from or towards the grey of each pixel."""
    return _blend(X, luminance(X), factor)


def hue(X: Tensor, turn: Tensor) -> Tensor:
    """The hue of HSV turned by a part of a full turn; saturation and value stay."""
    if X.shape[1] == 1:
        return X
    red, green, blue = X.unbind(1)
    value = X.amax(1)
    chroma = value - X.amin(1)
    safe = torch.where(chroma > 0, chroma, 1)  # grey has no hue: any will do
    sixths = torch.where(value == green, 2 + (blue - red) / safe, 4 + (red - green) / safe)
    sixths = torch.where(value == red, (green - blue) / safe, sixths) + 6 * turn.to(X)[:, None, None]
    k = (sixths[:, None] + sixths.new_tensor([5, 3, 1])[:, None, None]) % 6  # of red, green, blue
    return value[:, None] - chroma[:, None] * k.minimum(4 - k).clamp(0, 1)


def grey(X: Tensor) -> Tensor:
    """Every channel the luminance."""
    return luminance(X).expand_as(X)


def luminance(X: Tensor) -> Tensor:
    """n x 1 x height x width: a weighted mean of the channels."""
    return X if X.shape[1] == 1 else (X * X.new_tensor(GREY)[:, None, None]).sum(1, keepdim=True)


def gaussian_blur(X: Tensor, sigma: Tensor, kernel_size: int) -> Tensor:
    """Image i convolved with a Gaussian of sigma_i, cut to kernel_size pixels; beyond its border it is mirrored."""
    return _both_ways(blurring(sigma, kernel_size, X.shape[2]), X, blurring(sigma, kernel_size, X.shape[3]))


def blurring(sigma: Tensor, kernel_size: int, size: int) -> Tensor:
    """n x size x size: row o holds the weights of the pixels around o."""
    offsets = torch.arange(kernel_size) - kernel_size // 2
    weights = torch.exp(-0.5 * (offsets / sigma[:, None]) ** 2)
    weights = weights / weights.sum(1, keepdim=True)
    period = max(2 * (size - 1), 1)  # of the mirrored line 0 1 2 ... size-1 ... 2 1 0 1 2 ...
    source = (torch.arange(size)[:, None] + offsets) % period
    source = source.minimum(period - source)  # size x kernel_size: the pixel that an offset from o falls on
    shape = (len(sigma), size, kernel_size)
    return torch.zeros(len(sigma), size, size).scatter_add_(2, source.expand(shape), weights[:, None].expand(shape))


def _both_ways(rows: Tensor, X: Tensor, columns: Tensor) -> Tensor:
    """rows_i x_i columns_i', for every channel of every image."""
    return rows.to(X)[:, None] @ X @ columns.to(X).mT[:, None]


def _blend(X: Tensor, other: Tensor, factor: Tensor) -> Tensor:
    """factor * x + (1 - factor) * other, in [0, 1]."""
    return torch.lerp(other.expand_as(X), X, _each(factor.to(X), X)).clamp(0, 1)


def _each(values: Tensor, X: Tensor) -> Tensor:
    """One value an image, shaped to meet its pixels."""
    return values.to(X.device)[:, None, None, None]
