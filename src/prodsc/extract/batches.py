"""Items loaded in threads and encoded batch by batch; on several ranks each encodes one batch of every round."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import torch

from prodsc import ranks
from prodsc.errors import InputError
from prodsc.extract.encoders import Encoder
from prodsc.extract.inputs import Items

Dtype = Literal["float32", "float16"]


@dataclass(frozen=True)
class Batch:
    """Features of some items; items before `stop` are done, and those that could not be loaded have no row."""

    stop: int
    X: np.ndarray
    bad: dict[int, str]


def encoded(
    items: Items,
    encoder: Encoder,
    start: int,
    batch_size: int,
    workers: int,
    dtype: Dtype,
    skip_bad: bool,
    stop: int | None = None,
) -> Iterator[Batch]:
    """Features of the items from `start` on, and before `stop` if it is given, batch by batch.

    An item that cannot be loaded is an error, unless `skip_bad`. On several ranks each encodes one batch of every
    round, and all yield all batches, in order.
    """
    for first, loaded in _prepared(items, encoder.prepare, start, batch_size, workers, stop):
        bad = {first + i: str(item) for i, item in enumerate(loaded) if isinstance(item, InputError)}
        if bad and not skip_bad:
            raise InputError(f"{next(iter(bad.values()))} Repair or remove it, or leave such items out: --skip-bad.")
        good = [item for item in loaded if not isinstance(item, InputError)]
        ids = [items.ids[first + i] for i in range(len(loaded)) if first + i not in bad]
        X = _finite(encoder.embed(good), dtype, ids) if good else np.empty((0, 0), dtype)
        yield _of_all_ranks(Batch(first + len(loaded), X, bad), batch_size)


def _of_all_ranks(batch: Batch, batch_size: int) -> Batch:
    """The batches of all ranks in a round as one; that of a rank without items is empty."""
    if ranks.size() == 1:
        return batch
    about = {"stop": batch.stop, "shape": batch.X.shape, "bad": batch.bad}
    every = [json.loads(text) for text in ranks.texts(json.dumps(about))]
    padded = np.zeros((batch_size, max(one["shape"][1] for one in every)), batch.X.dtype)
    padded[: len(batch.X), : batch.X.shape[1]] = batch.X
    X = ranks.gather(torch.from_numpy(padded), batch_size * len(every)).numpy()
    kept = [X[i * batch_size : i * batch_size + one["shape"][0]] for i, one in enumerate(every)]
    bad = {int(item): reason for one in every for item, reason in one["bad"].items()}
    return Batch(max(one["stop"] for one in every), np.concatenate(kept), bad)


def _prepared(
    items: Items, prepare: Callable[[Any], Any], start: int, batch_size: int, workers: int, stop: int | None
) -> Iterator[tuple[int, list[Any]]]:
    """Items loaded and prepared in threads: the next batch while the encoder works on this one.

    On several ranks each gets one batch of every round; in the last round it may be empty.
    """

    def one(i: int) -> Any:
        try:
            return prepare(items.load(i))
        except InputError as error:
            return error

    pool, end = ThreadPoolExecutor(workers), len(items) if stop is None else stop

    def submitted(first: int) -> list[Future[Any]]:
        return [pool.submit(one, i) for i in range(first, min(first + batch_size, end))]

    rounds = range(start, end, batch_size * ranks.size())
    before = batch_size * ranks.rank()  # items of other ranks' batches that come before this one's in a round
    try:
        pending = submitted(start + before)
        for first in rounds:
            current, pending = pending, submitted(first + rounds.step + before)
            yield min(first + before, end), [future.result() for future in current]
    finally:
        pool.shutdown(cancel_futures=True)


def _finite(X: torch.Tensor, dtype: Dtype, ids: list[str]) -> np.ndarray:
    X = X.to(getattr(torch, dtype))
    bad = ~torch.isfinite(X).all(1)
    if bad.any():
        way = "; use float32" if dtype == "float16" else "; look at that item, and at the checkpoint if you gave one"
        raise InputError(f"the features of {ids[int(bad.int().argmax())]} are not finite in {dtype}{way}.")
    return X.numpy()
