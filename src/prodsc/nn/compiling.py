"""torch.compile for the time of training. It pays on a GPU; on a CPU the translation takes longer than most fits."""

from collections.abc import Iterator
from contextlib import contextmanager

from torch import nn

from prodsc.nn.network import Network


@contextmanager
def compiled(network: Network, enabled: bool, backend: str = "inductor") -> Iterator[None]:
    """Within this context the parts of a network are compiled; names and values of its weights do not change.

    Parameters
    ----------
    network : Network
        Its encoder, heads and decoder are compiled at their first call.
    enabled : bool
        If False, nothing happens.
    backend : str
        Of torch.compile. On a GPU, "cudagraphs" records the kernels instead of translating them.

    Raises
    ------
    RuntimeError
        At the first call, if there is no compiler for the device (Triton, or a C++ compiler on a CPU).
    """
    parts = [network.encoder, network.f, network.h, network.g, network.decoder] if enabled else []
    modules = [part for part in parts if isinstance(part, nn.Module)]
    for module in modules:
        module.compile(backend=backend)
    try:
        yield
    finally:
        for module in modules:
            module._compiled_call_impl = None  # as torch itself does where a module is copied
