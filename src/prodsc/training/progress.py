"""Progress of a run: a live line in a terminal, a plain line now and then in a log."""

import sys
import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from prodsc.training.loop import Callback, Training

SHORT = {
    "coding_rate": "coding rate",
    "self_expression": "self-expression",
    "block_diagonal": "block-diagonal",
}


class ProgressCallback(Callback):
    """Phase, step, the losses and the time left. Use as a context manager so that the line is closed on errors."""

    def __init__(self, console: Console | None = None, log_seconds: float = 10.0):
        self.console = console or Console(stderr=True, file=None)
        self.log_seconds = log_seconds
        self._last = 0.0
        self._began = (-1, 0, time.monotonic())  # phase, step, moment: speed is measured within a phase
        self._task: TaskID | None = None
        self._live = Progress(
            TextColumn("{task.description:<9}"),
            BarColumn(bar_width=24),
            MofNCompleteColumn(),
            TextColumn("{task.fields[losses]}"),
            TimeRemainingColumn(compact=True, elapsed_when_finished=True),
            console=self.console,
            refresh_per_second=8,
        )

    def __enter__(self) -> "ProgressCallback":
        if self.console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.console.is_terminal:
            self._live.stop()

    def on_step(self, training: Training) -> None:
        now = time.monotonic()
        phase, step, steps = training.phase, training.step, training.current.steps
        begins, ends = self._began[0] != phase, step == steps
        if begins:
            self._began = (phase, step, now)
        if not (begins or ends) and now - self._last < (0.1 if self.console.is_terminal else self.log_seconds):
            return  # reading the losses waits for the device
        self._last = now
        losses = "  ".join(
            f"{SHORT.get(name, name)} {value:.4g}" for name, value in training.history.last().items() if name != "total"
        )
        if self.console.is_terminal:
            if begins:
                self._task = self._live.add_task(training.current.name, total=steps, losses="")
            assert self._task is not None
            self._live.update(self._task, completed=step, losses=losses)
        else:
            left = (now - self._began[2]) / max(step - self._began[1], 1) * (steps - step)
            print(f"{training.current.name} {step}/{steps}  {losses}  {left:.0f} s left", file=sys.stderr, flush=True)
