"""Several processes as one run: who am I, what is my share, how do results come together.

Every rank holds the whole network and works on its share of a batch; the shares are gathered before any loss, so each
rank sees the loss of the global batch. With one process every function here is a no-op.
"""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from itertools import pairwise
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from prodsc.errors import RankError

SECONDS = float(os.environ.get("PRODSC_RANK_SECONDS", "1800"))  # to wait for a rank that says nothing
_store: Any = None  # torchrun's, which outlives every rank


def join() -> None:
    """Become a rank of the run that torchrun started; nothing happens without torchrun or with one process."""
    global _store
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "MASTER_ADDR" not in os.environ or joined():
        return
    wait = timedelta(seconds=SECONDS)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    with _wrap_distributed_errors():
        _store, number, count = next(iter(dist.rendezvous("env://", timeout=wait)))
        dist.init_process_group(backend, store=_store, rank=number, world_size=count, timeout=wait)
    if torch.cuda.is_available():
        torch.cuda.set_device(local_device())
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _ended)


def _ended(*_: object) -> None:
    """torchrun sends SIGTERM to all when one has failed; the first to hear of it must live to say so."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise RankError(f"rank {rank()} of {size()} was told to stop, as all are when another process of a run has failed.")


def leave() -> None:
    if joined():
        dist.destroy_process_group()


def joined() -> bool:
    return dist.is_available() and dist.is_initialized()


def size() -> int:
    return dist.get_world_size() if joined() else 1


def rank() -> int:
    return dist.get_rank() if joined() else 0


def first() -> bool:
    """The rank that writes files and speaks."""
    return rank() == 0


def local_device() -> torch.device:
    """The GPU of this rank: torchrun numbers the ranks of a machine."""
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


def claim_error_report() -> bool:
    """True for the first rank that asks: what ends a run is said once, by whoever knows it first."""
    if not joined() or _store is None:
        return first()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # this rank is ending; torchrun need not tell it to
    try:
        return _store.add(f"prodsc/said/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", 1) == 1
    except RuntimeError:  # who kept the store is gone, so nobody else has said it
        return True


@contextmanager
def _wrap_distributed_errors() -> Iterator[None]:
    """What torch says when another rank has gone is a page long; this is one sentence."""
    try:
        yield
    except RuntimeError as error:
        raise RankError(
            f"another process of this run was lost or said nothing for {SECONDS:.0f} s, so rank {rank()} of {size()} "
            "stops too."
        ) from error


# ---- shares ----------------------------------------------------------------------------------------------------------


def shares(n: int) -> list[slice]:
    """n things in order, cut into one piece per rank; sizes differ by at most one."""
    count = size()
    ends = [n * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(ends)]


def share(n: int) -> slice:
    """The piece of this rank."""
    return shares(n)[rank()]


# ---- results come together -------------------------------------------------------------------------------------------


def gather(X: Tensor, n: int) -> Tensor:
    """The n rows of which X is this rank's share, in order; gradients flow back to the rank a row came from.

    Every rank computes the same loss of the same n rows, so the gradient of its own rows is all a rank needs: the way
    back costs no traffic, and the gradients of the weights are to be summed over ranks, not averaged.
    """
    if size() == 1:
        return X
    return _Gather.apply(X, n) if X.is_floating_point() else _gathered(X, n)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, X: Tensor, n: int) -> Tensor:
        ctx.n = n
        return _gathered(X, n)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad[share(ctx.n)], None


def _gathered(X: Tensor, n: int) -> Tensor:
    cuts = shares(n)
    most = max(cut.stop - cut.start for cut in cuts)
    padded = X.new_zeros(most, *X.shape[1:])  # gloo wants pieces of one size
    padded[: len(X)] = X.detach()
    pieces = [torch.empty_like(padded) for _ in cuts]
    with _wrap_distributed_errors():
        dist.all_gather(pieces, padded)
    return torch.cat([piece[: cut.stop - cut.start] for piece, cut in zip(pieces, cuts, strict=True)])


def sum_gradients(network: nn.Module) -> None:
    """Each rank's gradients are the part that went through its own rows; one message of all weights adds them up."""
    if size() == 1:
        return
    grads = [p.grad for p in network.parameters() if p.grad is not None]
    if grads:
        flat = torch.cat([grad.flatten() for grad in grads])
        with _wrap_distributed_errors():
            dist.all_reduce(flat)
        for grad, total in zip(grads, flat.split([grad.numel() for grad in grads]), strict=True):
            grad.copy_(total.view_as(grad))


def broadcast(*tensors: Tensor) -> None:
    """Overwrite them with those of the first rank: processors may differ in the last bit, ranks may not."""
    if size() > 1:
        with _wrap_distributed_errors():
            for tensor in tensors:
                dist.broadcast(tensor, 0)


def any_of(flag: bool) -> bool:
    """Is it so on some rank?"""
    if size() == 1:
        return flag
    found = torch.tensor(int(flag))
    with _wrap_distributed_errors():
        dist.all_reduce(found)
    return bool(found)


def texts(text: str) -> list[str]:
    """The text of every rank, in order."""
    if size() == 1:
        return [text]
    sent = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8) if text else torch.empty(0, dtype=torch.uint8)
    lengths = _gathered(torch.tensor([len(sent)]), size()).tolist()
    padded = torch.zeros(max(1, *lengths), dtype=torch.uint8)
    padded[: len(sent)] = sent
    pieces = [torch.empty_like(padded) for _ in lengths]
    with _wrap_distributed_errors():
        dist.all_gather(pieces, padded)
    return [bytes(piece[:n].tolist()).decode() for piece, n in zip(pieces, lengths, strict=True)]


def wait() -> None:
    """Until all ranks are here."""
    any_of(False)


# ---- batch normalisation over the global batch -----------------------------------------------------------------------


@contextmanager
def global_batch_norm(network: nn.Module) -> Iterator[None]:
    """Inside, every batch normalisation of the network takes mean and variance over the rows of all ranks.

    torch.nn.SyncBatchNorm does this on GPUs only.
    """
    layers = [m for m in network.modules() if isinstance(m, _BatchNorm) and not isinstance(m, nn.SyncBatchNorm)]
    if size() == 1:
        layers = []
    for layer in layers:
        layer.forward = partial(_normalised, layer)  # type: ignore[method-assign]
    try:
        yield
    finally:
        for layer in layers:
            del layer.forward


def _normalised(layer: _BatchNorm, X: Tensor) -> Tensor:
    if not layer.training:
        return type(layer).forward(layer, X)
    weight = layer.weight if layer.weight is not None else X.new_ones(X.shape[1])
    bias = layer.bias if layer.bias is not None else X.new_zeros(X.shape[1])
    Y, mean, variance, count = _BatchNormOverRanks.apply(X.to(weight.dtype), weight, bias, layer.eps)  # not in halves
    if layer.running_mean is not None and layer.running_var is not None:
        with torch.no_grad():
            assert layer.num_batches_tracked is not None
            layer.num_batches_tracked += 1
            share = 1 / float(layer.num_batches_tracked) if layer.momentum is None else layer.momentum
            layer.running_mean.lerp_(mean, share)
            layer.running_var.lerp_(variance * (count / (count - 1).clamp_min(1)), share)
    return Y


class _BatchNormOverRanks(torch.autograd.Function):
    """y = weight (x - mean) / sqrt(variance + eps) + bias, mean and variance of each channel over all ranks."""

    @staticmethod
    def forward(ctx: Any, X: Tensor, weight: Tensor, bias: Tensor, eps: float) -> tuple[Tensor, ...]:
        over = [i for i in range(X.ndim) if i != 1]
        here = X.new_tensor([X.numel() / X.shape[1]])
        if X.numel():
            variance, mean = torch.var_mean(X, over, correction=0)
        else:
            variance = mean = X.new_zeros(X.shape[1])
        parts = _all(torch.cat([here, mean, variance]))
        counts, means, variances = parts[:, :1], *parts[:, 1:].chunk(2, 1)
        count = counts.sum()
        mean = (counts * means).sum(0) / count
        variance = (counts * (variances + (means - mean).square())).sum(0) / count  # the spread of the means counts too
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
            with _wrap_distributed_errors():
                dist.all_reduce(totals)
        along_ones, along_unit = (total.view(ctx.shape) / count for total in totals.chunk(2))
        of_X = (weight * scale).view(ctx.shape) * (grad - along_ones - unit * along_unit)
        return of_X, of_weight, of_bias, None


def _all(row: Tensor) -> Tensor:
    """ranks x length."""
    return row[None] if size() == 1 else _gathered(row[None], size())
