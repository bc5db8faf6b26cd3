"""A trial: one method on one data set with one seed, fitted in a process of its own; its result is a file.

`compare`, `tune` and `reproduce` run lists of trials. A list can be stopped at any moment and continued: a finished
trial is not run again, and a stopped one continues from its checkpoint.
"""

import ctypes
import hashlib
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
import traceback
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self
from zipfile import BadZipFile

import numpy as np

from prodsc import files
from prodsc._version import __version__
from prodsc.bench.data import content_digest
from prodsc.errors import InputError, Interrupted, MissingExtraError, OptionalModule, ProdscError, reason_of

if TYPE_CHECKING:
    import psutil
else:
    psutil = OptionalModule("psutil", extra="bench", caller="running trials")

# Exit codes of a child process that a signal stopped: as the system reports them, and as the child itself exits.
STOP_CODES = tuple(code for s in (signal.SIGINT, signal.SIGTERM) for code in (-s, 128 + s))


@dataclass(frozen=True)
class Limits:
    """The most that one trial may use; None: no limit."""

    seconds: float | None = None
    memory_mb: float | None = None


@dataclass(frozen=True)
class Trial:
    """Everything the result of one run depends on."""

    dataset: str  # a name or a path, as `open_source` takes it
    method: str  # its name on the command line
    seed: int
    parameters: dict[str, Any] = field(default_factory=dict)  # of the method, beyond its defaults
    variant: str = ""  # distinguishes trials of one method in a table
    measure: str = "prodsc.bench.measures:scores"  # module:function that fits and measures
    options: dict[str, Any] = field(default_factory=dict)  # for that function
    rows: int | None = None  # fit at most so many rows, a fixed random sample
    limits: Limits = field(default_factory=Limits)  # a trial that exceeds them has failed

    @classmethod
    def from_json(cls, content: dict[str, Any]) -> Self:
        """The trial that `asdict` made a dictionary of."""
        return cls(**(content | {"limits": Limits(**content["limits"])}))

    @cached_property
    def key(self) -> str:
        """A readable file name that changes with everything the result depends on, the content of the data too."""
        function = self.measure.partition(":")[2]
        names = [Path(self.dataset).stem, self.method, self.variant, function, f"seed{self.seed}"]
        name = "_".join(re.sub(r"[^A-Za-z0-9.=+-]+", "-", part) for part in names if part)
        depends_on = [asdict(self), __version__, content_digest(self.dataset)]
        return f"{name[:100]}_{_digest(depends_on)[:10]}"


@dataclass
class Measured:
    """What the function of a trial returns."""

    numbers: dict[str, float]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)  # for figures
    notes: list[str] = field(default_factory=list)


class Status(StrEnum):
    """How a trial ended."""

    FINISHED = "finished"
    FAILED = "failed"  # recorded: the next call does not run it again
    KILLED = "killed"  # from outside, twice; recorded, and the next call continues it
    STOPPED = "stopped"  # the next call continues it
    NOT_RUN = "not run"  # the next call runs it


@dataclass(frozen=True)
class Outcome:
    """The numbers of a trial, or the reason why there are none."""

    trial: Trial
    numbers: dict[str, float] = field(default_factory=dict)
    status: Status = Status.FINISHED
    reason: str = ""  # of every status but FINISHED
    arrays_path: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def finished(self) -> bool:
        return self.status is Status.FINISHED

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        if self.arrays_path is None:
            return {}
        try:
            with np.load(self.arrays_path, allow_pickle=False) as content:
                return dict(content)
        except (OSError, ValueError, KeyError, EOFError, BadZipFile, zlib.error) as error:
            raise InputError(
                f"{self.arrays_path} cannot be read ({reason_of(error)}); run the command again."
            ) from error


TrialCallback = Callable[[int, Trial, Outcome | None], None]  # number, trial, and its outcome once it has ended


def ignore(number: int, trial: Trial, outcome: Any) -> None:
    """The callback that does nothing."""


def run_trials(
    trials: Sequence[Trial],
    folder: Path,
    *,
    budget_seconds: float | None = None,
    on_trial: TrialCallback = ignore,
) -> list[Outcome]:
    """Run the trials that have no result yet, one after the other.

    Parameters
    ----------
    trials : sequence of Trial
        What to run.
    folder : Path
        Where results and checkpoints are kept.
    budget_seconds : float, optional
        Time of this call. When it is used up, the running trial is stopped; the next call continues it.
    on_trial : callable(number, trial, outcome), optional
        Called when a trial starts (outcome None) and when it has ended.

    Returns
    -------
    list of Outcome
        One for each trial, in their order.
    """
    folder.mkdir(parents=True, exist_ok=True)
    start, outcomes = time.monotonic(), []
    for number, trial in enumerate(trials):
        outcome = read_outcome(trial, folder)
        if outcome is None or outcome.status in (Status.NOT_RUN, Status.KILLED):
            left = None if budget_seconds is None else budget_seconds - (time.monotonic() - start)
            if left is not None and left <= 0:
                reason = "not run: the budget was used up; run the command again"
                outcomes.append(Outcome(trial, status=Status.NOT_RUN, reason=reason))
                continue
            on_trial(number, trial, None)
            outcome = run_in_process(trial, folder, left)
        on_trial(number, trial, outcome)
        outcomes.append(outcome)
    return outcomes


def read_outcome(trial: Trial, folder: Path) -> Outcome | None:
    """The recorded result of a trial; None when there is none, or when its file is damaged."""
    try:
        content = files.read_json(folder / f"{trial.key}.json")
        arrays = folder / f"{trial.key}.npz"
        if content.pop("sha256") != _digest(content) or (
            content["arrays"] and files.sha256(arrays) != content["arrays"]
        ):
            return None
        return Outcome(
            trial,
            {name: float(value) for name, value in content["numbers"].items() if value is not None},
            Status(content["status"]),
            content["reason"],
            arrays if content["arrays"] else None,
            tuple(content["notes"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def run_in_process(trial: Trial, folder: Path, budget_seconds: float | None) -> Outcome:
    """Run one trial in a child process, again if something outside kills it, and record a failure."""
    (folder / f"{trial.key}.json").unlink(missing_ok=True)  # of a trial that was not run or was killed
    outcome = _run_once(trial, folder, budget_seconds)
    if outcome.status is Status.KILLED:
        outcome = _run_once(trial, folder, budget_seconds)
    if outcome.status in (Status.FAILED, Status.KILLED) and read_outcome(trial, folder) is None:
        _record(trial, folder, status=outcome.status, reason=outcome.reason)
    if outcome.status is Status.FAILED:
        (folder / f"{trial.key}.safetensors").unlink(missing_ok=True)
    return outcome


def _run_once(trial: Trial, folder: Path, budget_seconds: float | None) -> Outcome:
    request = folder / f"{trial.key}.request.json"
    files.write_json(request, asdict(trial) | {"key": trial.key})
    log = folder / f"{trial.key}.log"
    command = [sys.executable, "-W", "ignore::RuntimeWarning:runpy", "-m", "prodsc.bench.trials", str(request)]
    command.append(str(os.getpid()))
    process = None
    with log.open("w", encoding="utf-8") as output:
        try:
            with _delayed_interrupt():  # Ctrl-C while the process is started would leave it behind
                process = subprocess.Popen(
                    command,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,  # Ctrl-C reaches the parent only, which then stops the child
                )
            stopped = _wait(process, trial.limits, budget_seconds)
        except BaseException:
            if process is not None:
                _terminate(process)
            raise
    request.unlink(missing_ok=True)
    outcome = read_outcome(trial, folder)
    if outcome is not None:
        log.unlink(missing_ok=True)
        return outcome
    if process.returncode == 0:
        return unreadable(trial, folder)
    status, reason = stopped or _why_it_died(process.returncode, log)
    return Outcome(trial, status=status, reason=reason)


def unreadable(trial: Trial, folder: Path) -> Outcome:
    """The outcome of a trial that has ended well, but whose result file the system does not give back."""
    reason = f"not run: its result cannot be read from {folder}; run the command again"
    return Outcome(trial, status=Status.NOT_RUN, reason=reason)


@contextmanager
def _delayed_interrupt() -> Iterator[None]:
    """Within this context Ctrl-C has no effect; at its end it raises KeyboardInterrupt."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
    if received:
        raise KeyboardInterrupt


def _wait(
    process: "subprocess.Popen[bytes]", limits: Limits, budget_seconds: float | None, poll_seconds: float = 0.2
) -> tuple[Status, str] | None:
    """Wait for the end of a process; when a limit is exceeded, end it and say so."""
    start, peak, ended = time.monotonic(), 0.0, None
    watched = None
    with suppress(psutil.Error):
        watched = psutil.Process(process.pid)
    while process.poll() is None:
        time.sleep(poll_seconds)
        with suppress(psutil.Error):
            peak = max(peak, watched.memory_info().rss / 2**20 if watched is not None else 0.0)
        spent = time.monotonic() - start
        if limits.memory_mb is not None and peak > limits.memory_mb:
            limit = f"limit {limits.memory_mb / 1024:.1f} GB"
            ended = Status.FAILED, f"out of memory at {peak / 1024:.1f} GB ({limit})"
            process.kill()
        elif limits.seconds is not None and spent > limits.seconds:
            ended = Status.FAILED, f"out of time at {spent:.0f} s"
            process.kill()
        elif budget_seconds is not None and spent > budget_seconds:
            ended = Status.STOPPED, "not finished: the budget was used up; run the command again to continue"
            _terminate(process)
    return ended


def _why_it_died(code: int, log: Path) -> tuple[Status, str]:
    """The status and reason of a process that ended without a result."""
    if code in STOP_CODES:
        return Status.STOPPED, "not finished: stopped by a signal; run again to continue"
    if code == -getattr(signal, "SIGKILL", 9):
        return Status.KILLED, "killed from outside, perhaps for want of memory; run the command again to continue"
    last: list[str] = []
    with suppress(OSError):
        last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
    return Status.FAILED, f"ended with code {code}{f': {last[0]}' if last else ''}"


def _terminate(process: "subprocess.Popen[bytes]", patience_seconds: float = 30.0) -> None:
    """Ask a process to end, so that it can write its checkpoint; kill it when it takes too long.

    psutil is not used here: it refuses to send a signal to a process whose start time seems to have changed, as it
    does when the clock of a busy machine is corrected.
    """
    process.terminate()
    try:
        process.wait(patience_seconds)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _record(
    trial: Trial,
    folder: Path,
    numbers: dict[str, float] | None = None,
    *,
    status: Status = Status.FINISHED,
    reason: str = "",
    arrays: str = "",
    notes: Sequence[str] = (),
    key: str | None = None,
) -> None:
    """Write the result file, with its own digest and that of the file of arrays: a damaged number must not be shown."""
    plain = {name: float(value) if np.isfinite(value) else None for name, value in (numbers or {}).items()}
    content = {"trial": asdict(trial), "numbers": plain, "status": status, "reason": reason}
    content |= {"arrays": arrays, "notes": list(notes)}
    files.write_json(folder / f"{key or trial.key}.json", content | {"sha256": _digest(content)})


def _digest(content: Any) -> str:
    """The sha256 of what JSON can hold, the same before it is written and after it is read."""
    as_read = json.loads(json.dumps(content))
    return hashlib.sha256(json.dumps(as_read, sort_keys=True).encode()).hexdigest()


def find_measure(name: str) -> Callable[[Trial, Path], Measured]:
    """The function that a trial names as "module:function"."""
    module, _, function = name.partition(":")
    return getattr(importlib.import_module(module), function)


def run_child(request: Path) -> None:
    """Run the trial of a request file in this process, and write its result; an expected error is a result too."""
    content = files.read_json(request)
    key, trial, folder = content.pop("key"), Trial.from_json(content), request.parent
    if trial.key != key:
        reason = f"not run: {trial.dataset} has changed since the command was started; run it again"
        _record(trial, folder, status=Status.NOT_RUN, reason=reason, key=key)
        return
    checkpoint = folder / f"{trial.key}.safetensors"
    try:
        measured = find_measure(trial.measure)(trial, checkpoint)
    except MissingExtraError as error:  # once the user has installed it, the trial can run
        _record(trial, folder, status=Status.NOT_RUN, reason=str(error))
        return
    except (ProdscError, OSError) as error:
        status = Status.NOT_RUN if _of_the_system(error) else Status.FAILED  # a disk may work again
        _record(trial, folder, status=status, reason=str(error))
        return
    except MemoryError:
        _record(trial, folder, status=Status.FAILED, reason="out of memory")
        return
    arrays = folder / f"{trial.key}.npz"
    if measured.arrays:
        with files.atomic(arrays) as part, part.open("wb") as file:
            np.savez_compressed(file, **measured.arrays)  # type: ignore[arg-type]
    notes = list(dict.fromkeys(measured.notes))
    _record(trial, folder, measured.numbers, arrays=files.sha256(arrays) if measured.arrays else "", notes=notes)
    checkpoint.unlink(missing_ok=True)


def _of_the_system(error: BaseException) -> bool:
    """Whether a read or write of a file that is there has failed."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, OSError):
        cause = cause.__cause__ or cause.__context__  # zipfile says "not a zip file" while it handles an OSError
    return cause is not None and not isinstance(cause, FileNotFoundError)


def failure_reasons(outcomes: Iterable[Outcome]) -> list[str]:
    """'failed 2/5: out of time at 60 s', one for each reason."""
    everything = list(outcomes)
    counts: dict[str, int] = {}
    for outcome in everything:
        if not outcome.finished:
            counts[outcome.reason] = counts.get(outcome.reason, 0) + 1
    return [f"failed {n}/{len(everything)}: {reason}" for reason, n in counts.items()]


def _end_with_parent(parent: int) -> None:
    """Have Linux kill this process when its parent is killed, so that no trial is left behind."""
    signal_of_parents_death = 1  # PR_SET_PDEATHSIG
    with suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).prctl(signal_of_parents_death, signal.SIGKILL)
    if hasattr(os, "getppid") and os.name != "nt" and os.getppid() != parent:  # it was killed before that
        sys.exit(128 + signal.SIGKILL)


if __name__ == "__main__":
    _end_with_parent(int(sys.argv[2]))
    try:
        run_child(Path(sys.argv[1]))
    except Interrupted:
        sys.exit(128 + signal.SIGTERM)
    except Exception:
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)  # threads of libraries must not keep a failed trial alive
