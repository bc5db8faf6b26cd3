"""Progress of what is counted: a live line in a terminal, a plain line now and then in a log."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from prodsc import ranks

LOG_SECONDS = 10.0
Counted = Callable[[int, int], None]  # done, in all


@contextmanager
def progress_bar(word: str, quiet: bool = False) -> Iterator[Counted | None]:
    """What to call with how much is done of how much; None when nothing is to be shown."""
    console = Console(stderr=True)
    if quiet or not ranks.first():
        yield None
    elif console.is_terminal:
        columns = TextColumn(word), BarColumn(24), MofNCompleteColumn(), TimeRemainingColumn(compact=True)
        with Progress(*columns, console=console) as bar:
            task = None

            def update(done: int, total: int) -> None:
                nonlocal task
                task = bar.add_task(word, total=total) if task is None else task  # nothing is shown of nothing
                bar.update(task, completed=done)

            yield update
    else:
        yield _log(word)


def _log(word: str) -> Counted:
    last = time.monotonic()

    def line(done: int, total: int) -> None:
        nonlocal last
        if done == total or time.monotonic() - last >= LOG_SECONDS:
            last = time.monotonic()
            print(f"{word} {done}/{total}", file=sys.stderr, flush=True)

    return line
