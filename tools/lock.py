"""`make lock`: write requirements-dev.lock, the versions of everything that development uses.

python tools/lock.py

Run it with an interpreter that has uv. The build of torch (+cpu, +cu130) is left out: it depends on the index that pip
uses, and what such a build brings along (CUDA libraries) is not listed either.
"""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LOCK = ROOT / "requirements-dev.lock"
HEAD = """# Versions of everything that development uses, made by `make lock` for Python 3.11 on Linux.
#     pip install -r requirements-dev.lock && pip install --no-deps -e .
# torch has no build (+cpu, +cu130): which one you get depends on the index that pip uses. The CUDA libraries of a
# GPU build are not listed. There are no hashes, since those of torch differ between builds.
"""
OF_GPU_BUILDS = re.compile(r"^(nvidia-|triton|cuda-)")


def locked() -> str:
    """The text of the file."""
    words = ["pip", "compile", "--quiet", "--system-certs", "--no-header", "--no-annotate", "--no-emit-index-url"]
    words += ["--no-emit-find-links", "--extra", "dev", "--python-version", "3.11", "-c", "constraints.txt"]
    command = [sys.executable, "-m", "uv", *words, "pyproject.toml"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    lines = [line for line in done.stdout.splitlines() if line and not OF_GPU_BUILDS.match(line)]
    return HEAD + "\n".join(re.sub(r"^(torch==[\d.]+)\+\w+", r"\1", line) for line in lines) + "\n"


if __name__ == "__main__":
    LOCK.write_text(locked(), encoding="utf-8")
    print(f"{LOCK.name}: {len(LOCK.read_text().splitlines())} lines")
