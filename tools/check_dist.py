"""`make dist`: build wheel and source archive, check them, and try the wheel in a clean environment without extras.

python tools/check_dist.py [--python python3.11]

Run it with an interpreter that has build and twine. The clean environment is .venv-clean; torch comes from
constraints.txt, so that a small CPU build is used where pip finds one.
"""

import argparse
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
DIST, CLEAN = ROOT / "dist", ROOT / ".venv-clean"
LIBRARIES = {"torch", "numpy", "scipy", "scikit-learn", "safetensors", "jaxtyping"}  # what prodsc itself asks for
SMOKE = """
import time
began = time.perf_counter()
import sys, tempfile
import numpy as np
from sklearn.datasets import load_digits
import prodsc
from prodsc import PRODSC
X, y = load_digits(return_X_y=True)
X = X[:300]
model = PRODSC(n_clusters=10, random_state=0).fit(X)
print(f"first label after {time.perf_counter() - began:.1f} s of Python: {model.labels_[0]}")
with tempfile.TemporaryDirectory() as folder:
    model.save(folder)
    assert (prodsc.load(folder).predict(X) == model.labels_).all()
assert prodsc.make("pro-dsc", n_clusters=10, random_state=0).fit(X).labels_.max() == 9
assert "site-packages" in prodsc.__file__, prodsc.__file__
try:
    prodsc.export.table("t.parquet", X, model.labels_)
except prodsc.errors.MissingExtraError as error:
    print("without extras:", error)
print("prodsc", prodsc.__version__)
"""


def run(*words: object, **options: object) -> str:
    """Run a command in the root of the project, and give what it printed."""
    command = [str(word) for word in words]
    done = subprocess.run(command, cwd=options.pop("cwd", ROOT), text=True, stdout=subprocess.PIPE)  # type: ignore[call-overload]
    if done.returncode:
        sys.exit(f"{done.stdout}\n{' '.join(command)} failed with exit code {done.returncode}")
    return str(done.stdout)


def build() -> Path:
    """The wheel; beside it in dist/ is the source archive. The wheel is built from the archive."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--outdir", DIST, ROOT)
    print(run(sys.executable, "-m", "twine", "check", "--strict", *DIST.iterdir()).strip())
    for path in sorted(DIST.iterdir()):
        print(f"{path.name}: {path.stat().st_size / 1000:,.0f} kB")
    (wheel,) = DIST.glob("*.whl")
    return wheel


def check_contents(wheel: Path) -> None:
    """The wheel has every file of the package and nothing else."""
    package = ROOT / "src" / "prodsc"
    ours = {f"prodsc/{path.relative_to(package).as_posix()}" for path in package.rglob("*") if path.is_file()}
    ours = {name for name in ours if "__pycache__" not in name}
    packed = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    if packed != ours:
        sys.exit(f"the wheel lacks {sorted(ours - packed)} and has too much: {sorted(packed - ours)}")


def try_it(wheel: Path, python: str) -> None:
    """Install the wheel into a new environment without extras, and use it."""
    shutil.rmtree(CLEAN, ignore_errors=True)
    run(python, "-m", "venv", CLEAN)
    inside = CLEAN / "bin" / "python"
    began = time.perf_counter()
    run(inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", "constraints.txt", wheel)
    installed = time.perf_counter() - began
    print(run(inside, "-c", SMOKE, cwd=CLEAN).strip())
    total = time.perf_counter() - began
    print(f"pip install {installed:.0f} s; from `pip install` to the end of this test {total:.0f} s")
    run(inside, "-m", "pip", "check")
    names = [line.split("==")[0] for line in run(inside, "-m", "pip", "freeze").splitlines()]
    others = sorted({name.split(" @ ")[0] for name in names} - LIBRARIES - {"prodsc"})
    print(f"core dependencies: {', '.join(sorted(LIBRARIES))}; what these bring: {', '.join(others)}")


def main() -> None:
    """Build, check, try."""
    parser = argparse.ArgumentParser(description="Build the wheel and try it.")
    parser.add_argument("--python", default=sys.executable, help="the interpreter of the clean environment")
    options = parser.parse_args()
    wheel = build()
    check_contents(wheel)
    try_it(wheel, options.python)


if __name__ == "__main__":
    main()
