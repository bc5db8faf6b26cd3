"""Tensors of all ranks: what `prodsc.ranks` does when there are several processes."""

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from prodsc.ranks.process import share, shares, size, wrap_distributed_errors


def gather(X: Tensor, n: int) -> Tensor:
    """All `n` rows, of which X is this rank's share."""
    return _Gather.apply(X, n) if X.is_floating_point() else gather_values(X, n)


class _Gather(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, X: Tensor, n: int) -> Tensor:
        ctx.n = n
        return gather_values(X, n)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        return grad[share(ctx.n)], None


def gather_values(X: Tensor, n: int) -> Tensor:
    """All `n` rows, without gradients."""
    cuts = shares(n)
    most = max(cut.stop - cut.start for cut in cuts)
    padded = X.new_zeros(most, *X.shape[1:])  # gloo needs pieces of equal size
    padded[: len(X)] = X.detach()
    pieces = [torch.empty_like(padded) for _ in cuts]
    with wrap_distributed_errors():
        dist.all_gather(pieces, padded)
    return torch.cat([piece[: cut.stop - cut.start] for piece, cut in zip(pieces, cuts, strict=True)])


def sum_gradients(network: nn.Module) -> None:
    """Add up the gradients of all ranks, in one message."""
    grads = [p.grad for p in network.parameters() if p.grad is not None]
    if grads:
        flat = torch.cat([grad.flatten() for grad in grads])
        with wrap_distributed_errors():
            dist.all_reduce(flat)
        for grad, total in zip(grads, flat.split([grad.numel() for grad in grads]), strict=True):
            grad.copy_(total.view_as(grad))


def any_of(flag: bool) -> bool:
    """Is the flag true on some rank?"""
    count = torch.tensor(int(flag))
    with wrap_distributed_errors():
        dist.all_reduce(count)
    return bool(count)


def texts(text: str) -> list[str]:
    """The text of every rank, in order."""
    sent = torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8) if text else torch.empty(0, dtype=torch.uint8)
    lengths = gather_values(torch.tensor([len(sent)]), size()).tolist()
    padded = torch.zeros(max(1, *lengths), dtype=torch.uint8)
    padded[: len(sent)] = sent
    pieces = [torch.empty_like(padded) for _ in lengths]
    with wrap_distributed_errors():
        dist.all_gather(pieces, padded)
    return [bytes(piece[:n].tolist()).decode() for piece, n in zip(pieces, lengths, strict=True)]
