"""Batch normalisation over the global batch."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from prodsc.ranks.collectives import gather_values
from prodsc.ranks.process import size, wrap_distributed_errors


@contextmanager
def global_batch_norm(network: nn.Module) -> Iterator[None]:
    """Within this context, every batch normalisation takes mean and variance over the rows of all ranks."""
    layers = [m for m in network.modules() if isinstance(m, _BatchNorm) and not isinstance(m, nn.SyncBatchNorm)]
    for layer in layers:
        layer.forward = partial(_normalise, layer)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _normalise(layer: _BatchNorm, X: Tensor) -> Tensor:
    """The layer's forward pass, with the statistics of all ranks."""
    if not layer.training:
        return type(layer).forward(layer, X)
    weight = layer.weight if layer.weight is not None else X.new_ones(X.shape[1])
    bias = layer.bias if layer.bias is not None else X.new_zeros(X.shape[1])
    Y, mean, variance, count = BatchNormOverRanks.apply(
        X.to(weight.dtype), weight, bias, layer.eps
    )  # never in half precision
    if layer.running_mean is not None and layer.running_var is not None:
        with torch.no_grad():
            assert layer.num_batches_tracked is not None
            layer.num_batches_tracked += 1
            share = 1 / float(layer.num_batches_tracked) if layer.momentum is None else layer.momentum
            layer.running_mean.lerp_(mean, share)
            layer.running_var.lerp_(variance * (count / (count - 1).clamp_min(1)), share)
    return Y


class BatchNormOverRanks(torch.autograd.Function):
    """y = weight (x - mean) / sqrt(variance + eps) + bias, mean and variance of each channel over all ranks."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, ...]:
        over = [i for i in range(X.ndim) if i != 1]
        here = X.new_tensor([X.numel() / X.shape[1]])
        if X.numel():
            variance, mean = torch.var_mean(X, over, correction=0)
        else:
            variance = mean = X.new_zeros(X.shape[1])
        parts = _rows_of_ranks(torch.cat([here, mean, variance]))
        counts, means, variances = parts[:, :1], *parts[:, 1:].chunk(2, 1)
        count = counts.sum()
        mean = (counts * means).sum(0) / count
        variance = (counts * (variances + (means - mean).square())).sum(0) / count  # with the variance of the means
        shape = [1, -1, *[1] * (X.ndim - 2)]
        scale = (variance + eps).rsqrt()
        unit = (X - mean.view(shape)) * scale.view(shape)
        ctx.save_for_backward(unit, weight, scale, count)
        ctx.over, ctx.shape = over, shape
        ctx.mark_non_differentiable(mean, variance, count)
        return unit * weight.view(shape) + bias.view(shape), mean, variance, count

    @staticmethod
    def backward(ctx: Any, grad: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        unit, weight, scale, count = ctx.saved_tensors
        of_bias, of_weight = grad.sum(ctx.over), (grad * unit).sum(ctx.over)
        totals = torch.cat([of_bias, of_weight])
        if size() > 1:
            with wrap_distributed_errors():
                dist.all_reduce(totals)
        along_ones, along_unit = (total.view(ctx.shape) / count for total in totals.chunk(2))
        of_X = (weight * scale).view(ctx.shape) * (grad - along_ones - unit * along_unit)
        return of_X, of_weight, of_bias, None


def _rows_of_ranks(row: Tensor) -> Tensor:
    """One row per rank."""
    return row[None] if size() == 1 else gather_values(row[None], size())
