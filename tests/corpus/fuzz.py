"""Try many damaged files, in processes of their own, and print a table: reader, tried, refused, accepted, failures.

python tests/corpus/fuzz.py --minutes 10            all readers
python tests/corpus/fuzz.py --inputs 1000 .npy .mat  some readers, a number of inputs each
"""

import argparse
import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).parents[2]
SECONDS_PER_INPUT = 30  # a longer read is a hang
MAX_GROWTH = 2**31  # bytes of memory that a worker may take beside its libraries
BATCH = 2500  # inputs of one worker


def work(suffix: str, number: int, count: int, folder: Path) -> None:
    """Try `count` inputs of one reader in this process; write the counts, and a line for each failure."""
    from hypothesis import HealthCheck, Phase, given, seed, settings

    from corpus.fuzzing import Corpus, inputs, outcome
    from faults.scenarios import quick

    quick()
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    corpus = Corpus(suffix, folder)
    counts: Counter[str] = Counter()
    start = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    mapped = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    resource.setrlimit(resource.RLIMIT_AS, (mapped + 2 * MAX_GROWTH, hard))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    path = folder / f"damaged{suffix}"

    @seed(number)
    @settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(inputs)
    def attempt(given_input):
        content = corpus.damaged(*given_input)
        path.write_bytes(content)
        signal.alarm(SECONDS_PER_INPUT)
        try:
            counts[outcome(path)] += 1
        except Exception:
            counts["failures"] += 1
            keep(content, suffix, traceback.format_exc())
        signal.alarm(0)
        if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 > start + MAX_GROWTH:
            counts["failures"] += 1
            keep(content, suffix, "took more memory than the limit")
            (folder / "counts.json").write_text(json.dumps(counts))
            raise SystemExit(3)
        (folder / "counts.json").write_text(json.dumps(counts))

    attempt()


def keep(content: bytes, suffix: str, reason: str) -> None:
    """Keep an input that failed, and why."""
    folder = Path(os.environ.get("FUZZ_FAILURES", ROOT / "fuzz-failures"))
    folder.mkdir(parents=True, exist_ok=True)
    name = f"{suffix[1:]}-{abs(hash(content)) % 10**8}{suffix}"
    (folder / name).write_bytes(content)
    (folder / f"{name}.why").write_text(reason)


def run_worker(suffix: str, number: int, count: int) -> Counter[str]:
    """One worker; if it crashes or hangs, its last input is a failure."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz", dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    command = [sys.executable, __file__, "--work", suffix, str(number), str(count), str(folder)]
    process = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, check=False)
    counts = Counter(json.loads((folder / "counts.json").read_text()) if (folder / "counts.json").exists() else {})
    if process.returncode not in (0, 3):
        counts["failures"] += 1
        last = next(folder.glob("damaged*"), None)
        reason = "hang" if process.returncode == -signal.SIGALRM else f"exit {process.returncode}"
        keep(b"" if last is None else last.read_bytes(), suffix, f"{reason}\n{process.stderr[-3000:]}")
    shutil.rmtree(folder)
    return counts


def main() -> None:
    from corpus.fuzzing import GROUPS

    parser = argparse.ArgumentParser()
    parser.add_argument("suffixes", nargs="*", default=GROUPS)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--inputs", type=int, default=0, help="inputs of each reader, instead of a time")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    suffixes = options.suffixes or GROUPS
    totals: dict[str, Counter[str]] = {suffix: Counter() for suffix in suffixes}
    end, number = time.monotonic() + 60 * options.minutes, options.seed

    def tried(suffix: str) -> int:
        return sum(totals[suffix].values())

    def unfinished(suffix: str) -> bool:
        return tried(suffix) < options.inputs if options.inputs else time.monotonic() < end

    while left := [suffix for suffix in suffixes if unfinished(suffix)]:
        for suffix in left:
            number += 1
            totals[suffix] += run_worker(suffix, number, BATCH // 10 if suffix in (".mat", ".h5ad") else BATCH)
        show(totals, options.seed)
    sys.exit(any(counts["failures"] for counts in totals.values()))


def show(totals: dict[str, Counter[str]], seed: int) -> None:
    """The table."""
    print(f"\nseed {seed}\n| reader | tried | refused | accepted | failures |\n|---|---|---|---|---|")
    everything: Counter[str] = sum(totals.values(), Counter())
    for name, counts in [*totals.items(), ("all", everything)]:
        parts = [counts[kind] for kind in ("refused", "accepted", "failures")]
        print(f"| {name} | " + " | ".join(f"{n:,}" for n in [sum(parts), *parts]) + " |", flush=True)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT / "tests"))
    if sys.argv[1:2] == ["--work"]:
        work(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), Path(sys.argv[5]))
    else:
        main()
