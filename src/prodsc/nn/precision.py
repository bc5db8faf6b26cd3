"""Arithmetic of a network: float32, or products in half precision on a device that is fast at them.

Only what is inside the network is halved. Z and Y come out in float32, so that Gram matrices, coefficients, the
log-determinant and eigenvectors never see a rounded number.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

PRECISIONS = ("auto", "float32", "bf16", "fp16")
DTYPES = {"float32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
FIRST_SCALE = 2.0**10  # of gradients in fp16; PyTorch's own, 2^16, overflows on the first steps and skips them


def used_dtype(precision: str, device: torch.device) -> torch.dtype:
    """'auto' is bf16 on a GPU that has it, fp16 on an older one, float32 on a CPU: there halves are seldom faster."""
    if precision != "auto":
        return DTYPES[precision]
    if device.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16


def products_in(dtype: torch.dtype, device: torch.device) -> AbstractContextManager[object]:
    """Autocast, or nothing for float32: a caller who trains under an autocast of their own is left alone."""
    return nullcontext() if dtype == torch.float32 else torch.autocast(device.type, dtype)


def gradient_scaler(network: nn.Module) -> torch.amp.GradScaler:
    """For a network in fp16, which would round small gradients to zero; for any other it does nothing.

    It scales by powers of two, which changes no digit, so a checkpoint need not remember by which.
    """
    parameter = next(network.parameters(), torch.zeros(()))
    half = getattr(network, "dtype", None) == torch.float16
    return torch.amp.GradScaler(parameter.device.type, init_scale=FIRST_SCALE, enabled=half)
