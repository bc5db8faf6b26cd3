"""Every read and write of every command made to fail in every way: `python campaign.py` (make faults).

Each case runs in a forked process, which has everything imported. Afterwards a reader must see the state before or
after the command, and going on must lead to the same result as an undisturbed command.
"""

import json
import os
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from faults.injector import FAULTS, Injector
from faults.scenarios import SCENARIOS, quick
from prodsc.bench.data import _file_digest
from prodsc.errors import ProdscError

UNCLEAN = 11  # exit code of a child that ended in a traceback


@dataclass(frozen=True)
class Case:
    """One operation of one command, and how it fails."""

    scenario: str
    at: int
    fault: str


class Campaign:
    """The cases of one command.

    Parameters
    ----------
    name : str
        One of `SCENARIOS`.
    place : Path
        A folder to work in.
    """

    def __init__(self, name: str, place: Path):
        self.name, self.scenario = name, SCENARIOS[name]
        self.template, self.folder, self.spare = place / "template", place / "work", place / "spare"
        self.template.mkdir(parents=True)
        self.scenario.before(self._at(self.template))
        self.old = self._seen(self.template)
        self._fresh()
        self.points = self._count()
        self.new = self.scenario.see(self.folder)

    def _at(self, path: Path) -> Path:
        """Runs store paths: a template is made where it is used, and then moved."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        return self.folder

    def _seen(self, template: Path) -> Any:
        seen = self.scenario.see(self.folder)
        shutil.rmtree(template)
        shutil.copytree(self.folder, template, symlinks=True)
        return seen

    def _fresh(self) -> None:
        for path in (self.folder, self.spare):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(self.template, self.folder, symlinks=True)
        self.spare.mkdir()

    def _child(self, at: int, fault: str) -> tuple[int, str]:
        """Run the command in a child; its wait status and what it said."""
        said = self.spare.parent / "said.txt"
        child = os.fork()
        if child == 0:
            code = 0
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, 1)
            os.dup2(null, 2)
            injector = Injector(self.folder, self.spare, at, fault)
            real_open, real_exit = open, os._exit
            _file_digest.cache_clear()  # of earlier cases: every case has the same operations
            try:
                injector.install()
                self.scenario.act(self.folder)
            except (ProdscError, OSError) as error:  # the command line prints these as one sentence
                with real_open(said, "w") as file:
                    file.write(f"{type(error).__name__}: {error}")
                code = 1
            except BaseException:
                with real_open(said, "w") as file:
                    file.write(traceback.format_exc())
                code = UNCLEAN
            if at == code == 0:
                with real_open(said, "w") as file:
                    json.dump(injector.points, file)
            real_exit(code)
        status = os.waitpid(child, 0)[1]
        text = said.read_text() if said.exists() else ""
        said.unlink(missing_ok=True)
        return status, text

    def _count(self) -> list[tuple[str, str]]:
        status, text = self._child(0, FAULTS[0])
        assert status == 0, text
        return [tuple(point) for point in json.loads(text)]

    def problem(self, at: int, fault: str) -> str:
        """What is wrong after one case; empty if nothing is."""
        self._fresh()
        status, text = self._child(at, fault)
        if os.WIFEXITED(status) and os.WEXITSTATUS(status) == UNCLEAN:
            return f"traceback: {text.strip().splitlines()[-1]}"
        try:
            seen = self.scenario.see(self.folder)
            if seen not in (self.old, self.new) and not self.scenario.between(seen):
                return "neither old nor new"
            if status == 0 and seen == self.old != self.new:
                return "success, but the old state"
            self.scenario.go_on(self.folder)
            if self.scenario.see(self.folder) != self.new:
                return "going on gives another result"
        except Exception as error:
            place = traceback.extract_tb(error.__traceback__)[-1]
            return (
                f"{type(error).__name__}: {error} ({place.filename.rpartition('/')[2]}:{place.lineno}); child: {text}"
            )
        left = [p.name for p in self.folder.rglob(".*") if p.suffix in (".part", ".prodsc-next", ".old")]
        return f"left behind: {left}" if left else ""

    def cases(self) -> Iterator[Case]:
        """All cases."""
        for at in range(1, len(self.points) + 1):
            for fault in FAULTS:
                yield Case(self.name, at, fault)


def main(names: list[str]) -> int:
    """Run everything, print a table, and return the number of failures."""
    quick()
    failures, total = 0, 0
    print("| command | points | cases | failures | seconds |\n|---|---|---|---|---|")
    for name in names or SCENARIOS:
        start = time.monotonic()
        with tempfile.TemporaryDirectory(prefix="prodsc-faults-") as place:
            campaign = Campaign(name, Path(place))
            found = [(case, problem) for case in campaign.cases() if (problem := campaign.problem(case.at, case.fault))]
            n = len(campaign.points) * len(FAULTS)
            print(
                f"| {name} | {len(campaign.points)} | {n} | {len(found)} | {time.monotonic() - start:.0f} |", flush=True
            )
            kinds = Counter(kind for kind, _ in campaign.points)
            print(f"{name}: {dict(kinds)}", file=sys.stderr)
            for case, problem in found:
                operation, path = campaign.points[case.at - 1]
                print(f"{case.fault} at {case.at} ({operation} {path}): {problem}", file=sys.stderr, flush=True)
        failures, total = failures + len(found), total + n
    print(f"{total} cases, {failures} failures")
    return failures


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)
    sys.exit(min(1, main(sys.argv[1:])))
