"""How long `import prodsc` and `prodsc --help` take beside `import numpy`: python benchmarks/import_time.py

Median of 7 runs each, taken in turns in one session; the promise is a ratio of at most 3.
"""

import subprocess
import sys
import time
from statistics import median

RUNS = 7
PROGRAMS = {
    "python -c 'import numpy'": "import numpy",
    "python -c 'import prodsc'": "import prodsc",
    "prodsc --help": "import sys; sys.argv[1:] = ['--help']; from prodsc.__main__ import main; main()",
}
COUNT = "import atexit, sys; atexit.register(lambda: print(len(sys.modules), file=sys.stderr)); "


def run(code: str) -> tuple[float, int]:
    """Seconds and number of modules loaded."""
    began = time.perf_counter()
    done = subprocess.run([sys.executable, "-c", COUNT + code], capture_output=True, text=True, check=True)
    return time.perf_counter() - began, int(done.stderr.splitlines()[-1])


def main() -> None:
    """Print seconds, ratio and modules of each program."""
    found: dict[str, list[tuple[float, int]]] = {name: [] for name in PROGRAMS}
    for _ in range(RUNS):
        for name, code in PROGRAMS.items():
            found[name].append(run(code))
    first = median(seconds for seconds, _ in next(iter(found.values())))
    print(f"{'program':<28}{'seconds':>9}{'ratio':>7}{'modules':>9}")
    for name, results in found.items():
        seconds = median(seconds for seconds, _ in results)
        print(f"{name:<28}{seconds:>9.3f}{seconds / first:>7.2f}{results[0][1]:>9}")


if __name__ == "__main__":
    main()
