"""Precision of a network: float32, or half precision on a device that is fast at it.

Only the products inside the network are computed in half precision. Z and Y are float32, and so are Gram matrices,
coefficients, log-determinants and eigenvectors.
"""

from contextlib import AbstractContextManager, nullcontext

import torch
from torch import nn

DTYPES = {"float32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}


def resolve_dtype(precision: str, device: torch.device) -> torch.dtype:
    """The type of a network's products.

    Parameters
    ----------
    precision : {"auto", "float32", "bf16", "fp16"}
        "auto" is bf16 on a GPU that supports it, fp16 on an older GPU, and float32 on a CPU, where half precision is
        rarely faster.
    device : torch.device
        Where the network is.
    """
    if precision != "auto":
        return DTYPES[precision]
    if device.type != "cuda":
        return torch.float32
    return torch.bfloat16 if torch.cuda.is_bf16_supported(including_emulation=False) else torch.float16


def autocast_to(dtype: torch.dtype, device: torch.device) -> AbstractContextManager[object]:
    """A context in which products are computed in `dtype`; for float32 it leaves the caller's autocast unchanged."""
    return nullcontext() if dtype == torch.float32 else torch.autocast(device.type, dtype)


def gradient_scaler(network: nn.Module, init_scale: float = 2.0**10) -> torch.amp.GradScaler:
    """A scaler of gradients for a network in fp16, which would round small gradients to zero.

    It scales by powers of two, which is exact, so a checkpoint need not store the scale.

    Parameters
    ----------
    network : nn.Module
        The scaler is active only if its attribute `dtype` is fp16.
    init_scale : float, default=2**10
        PyTorch's default, 2**16, overflows in the first steps and skips them.
    """
    parameter = next(network.parameters(), torch.zeros(()))
    half = getattr(network, "dtype", None) == torch.float16
    return torch.amp.GradScaler(parameter.device.type, init_scale=init_scale, enabled=half)
