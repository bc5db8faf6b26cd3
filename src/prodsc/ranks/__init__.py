"""Several processes as one run: who am I, which rows are mine, how are results combined.

torchrun starts the processes and numbers them; a number is a rank. Every rank holds the whole network and works on its
share of a batch. The shares are gathered before any loss is computed, so each rank computes the loss of the global
batch. With one process every function here does nothing. Importing this module does not import torch.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from prodsc.errors import RankError

if TYPE_CHECKING:
    import torch
    from torch import Tensor, nn

TIMEOUT_SECONDS = float(os.environ.get("PRODSC_RANK_SECONDS", "1800"))  # for an answer of another rank
_store: Any = None  # torchrun's key-value store; it outlives every rank


# ---- this process ----------------------------------------------------------------------------------------------------


def join() -> None:
    """Join the run that torchrun started; without torchrun, or with one process, nothing happens."""
    global _store
    if int(os.environ.get("WORLD_SIZE", "1")) < 2 or "MASTER_ADDR" not in os.environ or joined():
        return
    import torch
    import torch.distributed as dist

    timeout = timedelta(seconds=TIMEOUT_SECONDS)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    with wrap_distributed_errors():
        _store, number, count = next(iter(dist.rendezvous("env://", timeout=timeout)))
        dist.init_process_group(backend, store=_store, rank=number, world_size=count, timeout=timeout)
    if torch.cuda.is_available():
        torch.cuda.set_device(local_device())
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, _on_terminate)


def _on_terminate(*_: object) -> None:
    """torchrun sends SIGTERM to all ranks when one has failed; this rank must live on to report the error."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise RankError(f"rank {rank()} of {size()} was told to stop, as all are when another process of a run has failed.")


def leave() -> None:
    """Leave the run."""
    if joined():
        _dist().destroy_process_group()


def joined() -> bool:
    """Is this process part of a run on several processes?"""
    dist = sys.modules.get("torch.distributed")  # who has joined has imported it
    return dist is not None and dist.is_available() and dist.is_initialized()


def size() -> int:
    """Number of processes of this run."""
    return _dist().get_world_size() if joined() else 1


def rank() -> int:
    """Number of this process, from 0."""
    return _dist().get_rank() if joined() else 0


def first() -> bool:
    """Is this rank 0, which writes files and prints messages?"""
    return rank() == 0


def local_device() -> "torch.device":
    """The GPU of this rank: torchrun numbers the ranks of a machine."""
    import torch

    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count())


def claim_error_report() -> bool:
    """True for the first rank that asks, so that the error that ends a run is printed once."""
    if not joined() or _store is None:
        return first()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # this rank is about to end by itself
    try:
        return bool(_store.add(f"prodsc/said/{os.environ.get('TORCHELASTIC_RESTART_COUNT', 0)}", 1) == 1)
    except RuntimeError:  # the process that held the store is gone, so no other rank has reported the error
        return True


@contextmanager
def wrap_distributed_errors() -> Iterator[None]:
    """Turn torch's long message about a lost rank into a RankError of one sentence."""
    try:
        yield
    except RuntimeError as error:
        raise RankError(
            f"another process of this run was lost or did not answer for {TIMEOUT_SECONDS:.0f} s, so rank {rank()} of "
            f"{size()} stops too."
        ) from error


def _dist() -> Any:
    import torch.distributed

    return torch.distributed


# ---- shares ----------------------------------------------------------------------------------------------------------


def shares(n: int) -> list[slice]:
    """Cut `n` items in order into one slice per rank; sizes differ by at most one.

    Parameters
    ----------
    n : int
        Number of items.

    Returns
    -------
    list of slice
        The slice of each rank.
    """
    count = size()
    ends = [n * i // count for i in range(count + 1)]
    return [slice(a, b) for a, b in pairwise(ends)]


def share(n: int) -> slice:
    """The slice of this rank; see `shares`."""
    return shares(n)[rank()]


# ---- results of all ranks --------------------------------------------------------------------------------------------


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
        with wrap_distributed_errors():
            for tensor in tensors:
                _dist().broadcast(tensor, 0)


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
