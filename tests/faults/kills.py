"""kill -9 at random moments of fit, compare, extract and a fit on two ranks: `python kills.py 200` (make faults).

A killed command is started again, and may be killed again; in the end its result must be that of an undisturbed one.
"""

import os
import random
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from faults.scenarios import SCENARIOS, Scenario, quick, request_of, runs, with_rows
from prodsc import ranks

EPOCHS = 12


def long_fit(folder: Path) -> None:
    """A fit of many steps, each followed by a checkpoint; goes on with what is in the folder."""
    if runs.is_finished(folder / "run"):
        return
    try:
        request, resume = runs.FitRequest.read(folder / "run"), True
    except runs.ModelFileError:
        request, resume = request_of(folder, epochs=EPOCHS), False
    runs.run(request, resume=resume)


def fit_on_two_ranks(folder: Path) -> None:
    """The same on two processes of the group of this one; fails if one of them does."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1]), "WORLD_SIZE": "2"}
    if runs.is_finished(folder / "run"):
        return
    try:
        request, resume = runs.FitRequest.read(folder / "run"), True
    except runs.ModelFileError:
        request, resume = request_of(folder, epochs=EPOCHS), False

    def one(number: int) -> int:
        child = os.fork()
        if child:
            return child
        code = 1
        try:
            os.environ |= {"RANK": str(number), "LOCAL_RANK": str(number)}
            ranks.join()
            runs.run(request, resume=resume)
            ranks.leave()
            code = 0
        finally:
            os._exit(code)

    children = [one(number) for number in range(2)]
    if any(os.waitpid(child, 0)[1] for child in children):
        raise RuntimeError("a rank has failed")


COMMANDS = {
    "fit": Scenario(with_rows, long_fit, SCENARIOS["fit"].see, long_fit),
    "fit on two ranks": Scenario(with_rows, fit_on_two_ranks, SCENARIOS["fit"].see, fit_on_two_ranks),
    "compare": SCENARIOS["compare"],
    "extract": SCENARIOS["extract .npy"],
}


def start(scenario: Scenario, folder: Path) -> int:
    """Start the command in a forked process; its id."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.setsid()  # a kill reaches all processes of the command
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            scenario.act(folder)
            code = 0
        finally:
            os._exit(code)
    return child


def killed(scenario: Scenario, folder: Path, seconds: float) -> bool:
    """Start the command and kill it after some time; whether it was still running."""
    child = start(scenario, folder)
    time.sleep(seconds)
    try:
        os.killpg(child, signal.SIGKILL)
    except ProcessLookupError:  # not its own group yet
        os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def attempt(name: str, place: Path, rng: random.Random) -> tuple[int, bool]:
    """Kill a command one to three times, then let it end: the number of kills, and whether its result is the same."""
    scenario = COMMANDS[name]
    template, folder = place / f"{name}-before", place / name
    if not template.exists():
        folder.mkdir()
        scenario.before(folder)
        shutil.copytree(folder, template)
    expected, seconds = undisturbed(name, place)
    shutil.rmtree(folder)
    shutil.copytree(template, folder)
    kills = sum(killed(scenario, folder, rng.uniform(0, seconds)) for _ in range(rng.choice((1, 1, 2, 3))))
    done = os.waitpid(start(scenario, folder), 0)[1] == 0
    return kills, done and scenario.see(folder) == expected


RESULTS: dict[str, tuple[object, float]] = {}


def undisturbed(name: str, place: Path) -> tuple[object, float]:
    """The result of a command that nothing disturbs, and its time."""
    if name not in RESULTS:
        began = time.monotonic()
        assert os.waitpid(start(COMMANDS[name], place / name), 0)[1] == 0
        RESULTS[name] = COMMANDS[name].see(place / name), time.monotonic() - began
    return RESULTS[name]


def main(n: int) -> int:
    """Kill n times; print a table and return the number of failures."""
    quick()
    rng = random.Random(0)
    kills: Counter[str] = Counter()
    failures: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="prodsc-kills-") as place:
        while kills.total() < n:
            name = min(COMMANDS, key=lambda each: kills[each])
            count, same = attempt(name, Path(place), rng)
            kills[name] += count
            failures[name] += not same
    for name in COMMANDS:
        print(f"| {name} | {kills[name]} | {failures[name]} |")
    print(f"{kills.total()} kills, {failures.total()} failures")
    return failures.total()


if __name__ == "__main__":
    sys.exit(min(1, main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)))
