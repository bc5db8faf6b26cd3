"""Progress of long work: live bars in a terminal, a plain line now and then in a log.

Every part of prodsc that reports progress uses `ProgressDisplay`. Code that only counts takes a `ProgressFunction`.
"""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, TypeAlias, TypeVar

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress, TaskID

ProgressFunction: TypeAlias = Callable[[int, int], None]
"""Called with the number of items done and the number of items in total."""

Item = TypeVar("Item")


@dataclass
class _Task:
    """What is known about one named piece of work."""

    done: int
    began_at: float = 0.0
    began_with: int = 0
    shown_at: float = float("-inf")
    bar: "TaskID | None" = None

    def seconds_left(self, done: int, total: int) -> float:
        """Time to the end, at the average speed so far."""
        return (time.monotonic() - self.began_at) / max(done - self.began_with, 1) * (total - done)


class ProgressDisplay:
    """Shows how far one or more named tasks are.

    In a terminal, and with rich installed, each task is a live bar. Otherwise each task writes a line to stderr when it
    begins, when it ends, and at most every `log_seconds` in between. Nothing is shown before the first update. Use it
    as a context manager, so that live bars are closed on errors.

    Parameters
    ----------
    enabled : bool, default=True
        False shows nothing.
    unit : {"items", "bytes"}, default="items"
        What `done` and `total` count.
    log_seconds : float, default=10.0
        Least time between two lines of one task in a log.
    refresh_seconds : float, default=0.1
        Least time between two updates of one task in a terminal.
    console : rich.console.Console, optional
        Where live bars are drawn; stderr by default.
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        unit: str = "items",
        log_seconds: float = 10.0,
        refresh_seconds: float = 0.1,
        console: "Console | None" = None,
    ) -> None:
        self.enabled = enabled
        self._unit = unit
        self._bars = _live_bars(console, unit) if enabled else None
        self._notebook = _in_notebook()
        self._seconds = log_seconds if self._bars is None and not self._notebook else refresh_seconds
        self._tasks: dict[str, _Task] = {}
        self._started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._bars is not None and self._started:
            self._bars.stop()
            self._started = False

    def is_due(self, name: str, done: int, total: int | None) -> bool:
        """Would `update` show something now? For callers whose `detail` is costly to compute."""
        task = self._tasks.get(name)
        if not self.enabled:
            return False
        return task is None or done < task.done or done == total or time.monotonic() - task.shown_at >= self._seconds

    def update(self, name: str, done: int, total: int | None, detail: str = "") -> None:
        """Show that `done` of `total` is done.

        Parameters
        ----------
        name : str
            The task. A smaller `done` than before begins it again.
        done : int
            How much is done.
        total : int or None
            How much there is in total; None if unknown.
        detail : str, default=""
            Text to show behind the numbers, such as losses.
        """
        if not self.is_due(name, done, total):
            return
        task = self._tasks.get(name)
        if task is None or done < task.done:
            task = self._tasks[name] = _Task(done, began_at=time.monotonic(), began_with=done)
        task.done, task.shown_at = done, time.monotonic()
        if self._bars is None:
            self._print(self._line(name, task, total, detail), ended=done == total)
            return
        if not self._started:
            self._bars.start()
            self._started = True
        if task.bar is None:
            task.bar = self._bars.add_task(name, total=total, detail="")
        self._bars.update(task.bar, completed=done, total=total, detail=detail)

    def _print(self, line: str, ended: bool) -> None:
        """A line of a log; in a notebook one line that is written again until its task has ended."""
        if self._notebook:
            print(f"\r{line:<100}", end="\n" if ended else "", file=sys.stderr, flush=True)
        else:
            print(line, file=sys.stderr, flush=True)

    def function(self, name: str) -> ProgressFunction | None:
        """A `ProgressFunction` that updates one task; None if the display is not enabled."""
        return (lambda done, total: self.update(name, done, total)) if self.enabled else None

    def _line(self, name: str, task: _Task, total: int | None, detail: str) -> str:
        """One line of a log."""
        amount = str if self._unit == "items" else _megabytes
        parts = [f"{name} {amount(task.done)}" + ("" if total is None else f"/{amount(total)}"), detail]
        if total is not None and task.began_with < task.done < total:
            parts.append(f"{task.seconds_left(task.done, total):.0f} s left")
        return "  ".join(filter(None, parts))


@contextmanager
def progress_bar(name: str, enabled: bool = True, unit: str = "items") -> Iterator[ProgressFunction | None]:
    """A display of one task.

    Parameters
    ----------
    name : str
        The task.
    enabled : bool, default=True
        False shows nothing and gives None.
    unit : {"items", "bytes"}, default="items"
        What is counted.

    Yields
    ------
    ProgressFunction or None
        To be called with the amount done and the total.
    """
    with ProgressDisplay(enabled, unit=unit) as display:
        yield display.function(name)


def track(items: Sequence[Item], name: str, enabled: bool = True) -> Iterator[Item]:
    """Iterate over `items` and show how many are done.

    Parameters
    ----------
    items : sequence
        What to iterate over.
    name : str
        The task.
    enabled : bool, default=True
        False shows nothing.
    """
    with ProgressDisplay(enabled) as display:
        for i, item in enumerate(items):
            yield item
            display.update(name, i + 1, len(items))


def _in_notebook() -> bool:
    """Is this the kernel of a notebook?"""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return type(shell).__name__ == "ZMQInteractiveShell"


def _live_bars(console: "Console | None", unit: str) -> "Progress | None":
    """rich's bars, if rich is installed and stderr is a terminal."""
    if console is None and not sys.stderr.isatty():
        return None
    try:
        from rich import progress as rich_progress
        from rich.console import Console
    except ImportError:
        return None
    console = console or Console(stderr=True)
    if not console.is_terminal:
        return None
    counts = (
        (rich_progress.MofNCompleteColumn(),)
        if unit == "items"
        else (rich_progress.DownloadColumn(), rich_progress.TransferSpeedColumn())
    )
    return rich_progress.Progress(
        rich_progress.TextColumn("{task.description:<9}"),
        rich_progress.BarColumn(bar_width=24),
        *counts,
        rich_progress.TextColumn("{task.fields[detail]}"),
        rich_progress.TimeRemainingColumn(compact=True, elapsed_when_finished=True),
        console=console,
        refresh_per_second=8,
    )


def _megabytes(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:.1f} MB"
