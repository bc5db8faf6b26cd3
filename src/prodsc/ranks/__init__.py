"""Several processes as one run: who am I, which rows are mine, how are results combined.

torchrun starts the processes and numbers them; a number is a rank. Every rank holds the whole network and works on its
share of a batch. The shares are gathered before any loss is computed, so each rank computes the loss of the global
batch. With one process every function here does nothing. Importing this module does not import torch.
"""

from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from prodsc.ranks.process import (
    claim_error_report,
    first,
    join,
    joined,
    leave,
    local_device,
    rank,
    share,
    shares,
    size,
    wrap_distributed_errors,
)

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = [
    "any_of",
    "broadcast",
    "claim_error_report",
    "first",
    "gather",
    "global_batch_norm",
    "join",
    "joined",
    "leave",
    "local_device",
    "rank",
    "share",
    "shares",
    "size",
    "sum_gradients",
    "texts",
    "wait",
    "wrap_distributed_errors",
]


def gather(X: "Tensor", n: int) -> "Tensor":
    """Combine the shares of all ranks, in order; gradients flow back to the rank that a row came from.

    Every rank computes the same loss of the same `n` rows, so the gradient of its own rows is all that a rank needs.
    The backward pass therefore sends nothing, and gradients of weights are summed over ranks, not averaged.

    Parameters
    ----------
    X : Tensor
        This rank's share of the rows.
    n : int
        Number of rows of all ranks.

    Returns
    -------
    Tensor
        All `n` rows.
    """
    if size() == 1:
        return X
    from prodsc.ranks import collectives

    return collectives.gather(X, n)


def sum_gradients(network: "nn.Module") -> None:
    """Add up the gradients of all ranks: each has the part that went through its own rows."""
    if size() > 1:
        from prodsc.ranks import collectives

        collectives.sum_gradients(network)


def broadcast(*tensors: "Tensor") -> None:
    """Overwrite tensors with those of the first rank: processors may differ in the last bit, ranks must not."""
    if size() > 1:
        import torch.distributed as dist

        with wrap_distributed_errors():
            for tensor in tensors:
                dist.broadcast(tensor, 0)


def any_of(flag: bool) -> bool:
    """Is the flag true on some rank?"""
    if size() == 1:
        return flag
    from prodsc.ranks import collectives

    return collectives.any_of(flag)


def texts(text: str) -> list[str]:
    """The text of every rank, in order."""
    if size() == 1:
        return [text]
    from prodsc.ranks import collectives

    return collectives.texts(text)


def wait() -> None:
    """Wait until all ranks are here."""
    any_of(False)


def global_batch_norm(network: "nn.Module") -> AbstractContextManager[None]:
    """Within this context, every batch normalisation takes mean and variance over the rows of all ranks.

    torch.nn.SyncBatchNorm does this on GPUs only.

    Parameters
    ----------
    network : nn.Module
        Its batch normalisation layers are changed within the context.
    """
    if size() == 1:
        return nullcontext()
    from prodsc.ranks import batch_norm

    return batch_norm.global_batch_norm(network)
