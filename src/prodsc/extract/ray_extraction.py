"""Batches of items encoded by processes of Ray, in order, for the same file that one process would write."""

import io
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from prodsc.extract.batches import Batch, Dtype, encoded
from prodsc.extract.encoders import load_encoder
from prodsc.extract.inputs import open_items
from prodsc.ray_tasks import map_with_ray


@dataclass(frozen=True)
class EncodingRequest:
    """What every process needs to know: paths and options, no data."""

    source: str
    encoder: str
    checkpoint: str | None
    options_of_items: dict[str, Any]
    device: str
    batch_size: int
    workers: int
    dtype: Dtype
    skip_bad: bool


class BatchEncoder:
    """Encodes batches in a process of Ray: from the number of its first item to the content of a batch.

    Parameters
    ----------
    request : EncodingRequest
    """

    def __init__(self, request: EncodingRequest):
        self.request = request
        self.items = open_items(request.source, **request.options_of_items)
        self.encoder = load_encoder(
            request.encoder, self.items.kind, checkpoint=request.checkpoint, device=request.device
        )

    def __call__(self, first: int) -> bytes:
        r = self.request
        stop = min(first + r.batch_size, len(self.items))
        options = (r.batch_size, r.workers, r.dtype, r.skip_bad)
        (batch,) = encoded(self.items, self.encoder, first, *options, stop=stop)
        content = io.BytesIO()
        np.savez(content, X=batch.X, bad=np.array(json.dumps(batch.bad)))
        return content.getvalue()


def encoded_with_ray(request: EncodingRequest, n_items: int, start: int, processes: int) -> Iterator[Batch]:
    """Features of the items from `start` on, batch by batch and in order.

    Parameters
    ----------
    request : EncodingRequest
    n_items : int
        Number of items.
    start : int
        The first item.
    processes : int
        Processes of Ray.

    Yields
    ------
    Batch
    """
    firsts = range(start, n_items, request.batch_size)
    for first, content in map_with_ray(BatchEncoder, (request,), firsts, processes, ordered=True):
        with np.load(io.BytesIO(content), allow_pickle=False) as held:
            bad = {int(i): reason for i, reason in json.loads(str(held["bad"])).items()}
            yield Batch(min(first + request.batch_size, n_items), held["X"], bad)
