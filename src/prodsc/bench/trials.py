"""A trial: one method on one data set with one seed, in a process of its own, its result a file that is there or not.

Trials are what `compare` and `reproduce` are made of. A folder of trials can be stopped at any moment and gone on with:
a finished trial is not run again, and one that was stopped goes on from its checkpoint.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from prodsc import files
from prodsc.errors import Interrupted, OptionalModule, ProdscError

if TYPE_CHECKING:
    import psutil
else:
    psutil = OptionalModule("psutil", extra="bench", caller="running trials")

LOOK = 0.2  # seconds between looks at a running trial
PATIENCE = 30.0  # seconds that a trial which is told to stop may take for its checkpoint
STOPPED = (
    -signal.SIGINT,
    -signal.SIGTERM,
    128 + signal.SIGINT,
    128 + signal.SIGTERM,
)  # exit codes of a trial told to end


@dataclass(frozen=True)
class Trial:
    dataset: str  # a name or a path, as `load_dataset` takes it
    method: str  # its name on the command line
    seed: int
    parameters: dict[str, Any] = field(default_factory=dict)  # of the method, beyond its defaults
    variant: str = ""  # how a table tells trials of one method apart
    measure: str = "scores"  # which function of measures.py makes the numbers
    options: dict[str, Any] = field(default_factory=dict)  # for it
    rows: int | None = None  # at most so many training rows, a fixed random sample

    @cached_property
    def key(self) -> str:
        """A readable file name that changes with everything the result depends on."""
        words = [Path(self.dataset).stem, self.method, self.variant, self.measure, f"seed{self.seed}"]
        name = "_".join(re.sub(r"[^A-Za-z0-9.=+-]+", "-", word) for word in words if word)
        digest = hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:10]
        return f"{name[:100]}_{digest}"


@dataclass(frozen=True)
class Limits:
    seconds: float | None = None
    memory_mb: float | None = None


@dataclass(frozen=True)
class Outcome:
    """What came of a trial: numbers, or the reason why there are none."""

    trial: Trial
    numbers: dict[str, float] = field(default_factory=dict)
    failed: str = ""
    arrays_path: Path | None = None
    notes: tuple[str, ...] = ()

    @cached_property
    def arrays(self) -> dict[str, np.ndarray]:
        if self.arrays_path is None:
            return {}
        with np.load(self.arrays_path, allow_pickle=False) as content:
            return dict(content)


def run_trials(
    trials: Sequence[Trial],
    folder: Path,
    *,
    limits: Limits | None = None,
    budget_seconds: float | None = None,
    watch: Callable[[int, Trial, Outcome | None], None] = lambda number, trial, outcome: None,
) -> list[Outcome]:
    """Run what is not done yet, one after the other; `watch` is told when a trial begins and how it ended.

    When the budget is used up the trial at work is stopped, to be gone on with by the next call.
    """
    limits = limits or Limits()
    folder.mkdir(parents=True, exist_ok=True)
    began, outcomes = time.monotonic(), []
    for number, trial in enumerate(trials):
        outcome = finished(trial, folder)
        if outcome is None:
            left = None if budget_seconds is None else budget_seconds - (time.monotonic() - began)
            if left is not None and left <= 0:
                outcomes.append(Outcome(trial, failed="not run: the budget was used up; run the command again"))
                continue
            watch(number, trial, None)
            outcome = run_in_process(trial, folder, limits, left)
        watch(number, trial, outcome)
        outcomes.append(outcome)
    return outcomes


def finished(trial: Trial, folder: Path) -> Outcome | None:
    """The result in the folder; None when it is not there (or was cut, or is not ours)."""
    try:
        content = files.read_json(folder / f"{trial.key}.json")
        arrays = folder / f"{trial.key}.npz"
        return Outcome(
            trial,
            {name: float(value) for name, value in content["numbers"].items() if value is not None},
            content["failed"],
            arrays if content["has_arrays"] else None,
            tuple(content["notes"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def run_in_process(trial: Trial, folder: Path, limits: Limits, budget_seconds: float | None) -> Outcome:
    request = folder / f"{trial.key}.request.json"
    files.write_json(request, asdict(trial))
    log = folder / f"{trial.key}.log"
    began = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        process = psutil.Popen(
            [sys.executable, "-W", "ignore::RuntimeWarning:runpy", "-m", "prodsc.bench.trials", str(request)],
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C reaches us alone; we tell the child in our own words
        )
        peak, reason = 0.0, ""
        try:
            while process.poll() is None:
                time.sleep(LOOK)
                with suppress(psutil.Error):
                    peak = max(peak, process.memory_info().rss / 2**20)
                spent = time.monotonic() - began
                if limits.memory_mb is not None and peak > limits.memory_mb:
                    reason = f"out of memory at {peak / 1024:.1f} GB (limit {limits.memory_mb / 1024:.1f} GB)"
                    process.kill()
                elif limits.seconds is not None and spent > limits.seconds:
                    reason = f"out of time at {spent:.0f} s"
                    process.kill()
                elif budget_seconds is not None and spent > budget_seconds:
                    reason = "not finished: the budget was used up; run the command again to go on"
                    _stop(process)
        except BaseException:
            _stop(process)
            raise
    request.unlink(missing_ok=True)
    outcome = finished(trial, folder)
    if outcome is not None:
        log.unlink(missing_ok=True)
        return outcome
    if not reason:
        with suppress(OSError):
            last = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-1:]
        said = f": {last[0]}" if last else ""
        code = process.returncode
        reason = f"ended with code {code}{said}"
        if code == -getattr(signal, "SIGKILL", 9):  # Windows has none
            reason = "killed, most likely out of memory"
        elif code in STOPPED:
            reason = "not finished: stopped by a signal; run again to go on"
    if not reason.startswith("not finished"):
        _write(trial, folder, {}, reason)
        (folder / f"{trial.key}.safetensors").unlink(missing_ok=True)
    return Outcome(trial, failed=reason)


def _stop(process: "psutil.Popen") -> None:
    """Ask, so that a checkpoint is written; then insist."""
    with suppress(psutil.Error):
        process.terminate()
        try:
            process.wait(PATIENCE)
        except psutil.TimeoutExpired:
            process.kill()
            process.wait()


def _write(trial: Trial, folder: Path, numbers: dict[str, float], failed: str = "", **also: Any) -> None:
    plain = {name: float(value) if np.isfinite(value) else None for name, value in numbers.items()}
    content = {"trial": asdict(trial), "numbers": plain, "failed": failed, "has_arrays": False, "notes": []} | also
    files.write_json(folder / f"{trial.key}.json", content)


def work(request: Path) -> None:
    """The child: measure, write arrays, then the result; a failure that can be told is a result too."""
    from prodsc.bench.measures import MEASURES

    trial = Trial(**files.read_json(request))
    folder = request.parent
    checkpoint = folder / f"{trial.key}.safetensors"
    try:
        measured = MEASURES[trial.measure](trial, checkpoint)
    except ProdscError as error:
        _write(trial, folder, {}, str(error))
        return
    except MemoryError:
        _write(trial, folder, {}, "out of memory")
        return
    if measured.arrays:
        with files.atomic(folder / f"{trial.key}.npz") as part, part.open("wb") as file:
            np.savez_compressed(file, **measured.arrays)  # type: ignore[arg-type]
    notes = list(dict.fromkeys(measured.notes))
    _write(trial, folder, measured.numbers, has_arrays=bool(measured.arrays), notes=notes)
    checkpoint.unlink(missing_ok=True)


def missing_reasons(outcomes: Iterable[Outcome]) -> list[str]:
    """'failed 2/5: out of time at 60 s', one for each reason."""
    all_of = list(outcomes)
    counts: dict[str, int] = {}
    for outcome in all_of:
        if outcome.failed:
            counts[outcome.failed] = counts.get(outcome.failed, 0) + 1
    return [f"failed {n}/{len(all_of)}: {reason}" for reason, n in counts.items()]


if __name__ == "__main__":
    try:
        work(Path(sys.argv[1]))
    except Interrupted:
        sys.exit(128 + signal.SIGTERM)
    except Exception:
        traceback.print_exc()
        sys.stdout.flush()
        os._exit(1)  # threads of libraries must not hold a failed trial
