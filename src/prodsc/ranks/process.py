"""This process among the processes of a run: its number, its share of the rows, errors that end a run."""

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from prodsc.errors import RankError

if TYPE_CHECKING:
    import torch

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
    from torch.distributed.rendezvous import rendezvous

    timeout = timedelta(seconds=TIMEOUT_SECONDS)
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    with wrap_distributed_errors():
        _store, number, count = next(iter(rendezvous("env://", timeout=timeout)))
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
    """Turn torch's long message about a lost rank into a RankError of one sentence, which says when it was lost."""
    start = time.monotonic()
    try:
        yield
    except RuntimeError as error:
        waited = time.monotonic() - start
        at = time.strftime("%H:%M:%S")
        lost = f"did not answer for {waited:.0f} s" if waited >= TIMEOUT_SECONDS else f"ended at {at}"
        raise RankError(f"another process of this run {lost}, so rank {rank()} of {size()} stops too.") from error


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
