"""A limit of memory: sizes as text, what may be read, and a process that keeps it or says why not."""

import os
import subprocess
import sys

import numpy as np
import pytest

from prodsc import memory
from prodsc.errors import ParameterError
from prodsc.sources.limits import available_memory

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory need Linux")


@pytest.mark.parametrize(
    ("text", "size"), [("4GB", 2**32), ("500 MB", 500 * 2**20), ("1.5g", 3 * 2**29), ("2GiB", 2**31), ("1024", 1024)]
)
def test_sizes(text, size):
    assert memory.parse_size(text) == size


@pytest.mark.parametrize("text", ["", "many", "4 apples", "-1GB", "GB"])
def test_what_is_no_size(text):
    with pytest.raises(ParameterError, match="such as 4GB"):
        memory.parse_size(text)


def test_a_limit_bounds_what_may_be_read(monkeypatch):
    assert memory.memory_left() == float("inf")
    assert memory.affordable(2**27) == 2**27
    used = memory._status("VmData")
    monkeypatch.setattr(memory, "_limit", used + memory.LIBRARIES + 2**26)
    assert available_memory() <= 2**26
    assert memory.affordable(2**27, copies=4) <= 2**22
    assert "Raise --memory" in memory.limit_sentence()


def test_a_limit_below_what_is_in_use_is_refused():
    with pytest.raises(ParameterError, match="200 MB cannot be kept"):
        memory.limit_memory(200 * 2**20)
    assert memory.memory_left() == float("inf")


def command(*words):
    """Run prodsc in a process of its own; its result, and its peak memory in MB."""
    code = (
        "import sys\nfrom prodsc.cli import main\n"
        "try:\n    main(sys.argv[1:])\nfinally:\n"
        "    print(*[line for line in open('/proc/self/status') if line.startswith('VmHWM')], file=sys.stderr)"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=environment)
    return done, int(done.stderr.rpartition("VmHWM:")[2].split()[0]) / 2**10


def test_a_fit_keeps_its_limit_or_says_that_it_cannot(tmp_path):
    X = np.random.default_rng(0).normal(size=(3000, 32)).astype(np.float32)
    np.save(tmp_path / "rows.npy", X)
    fit = ["fit", str(tmp_path / "rows.npy"), "-k", "3", "--quick", "--no-report", "--quiet", "--out"]
    done, peak = command(*fit, str(tmp_path / "kept"), "--memory", "1500MB")
    assert done.returncode == 0, done.stderr
    assert peak < 1500
    done, peak = command(*fit, str(tmp_path / "wide"), "--memory", "1000MB", "--hidden-size", "16384")
    assert done.returncode == 1
    assert "the limit of 1,000 MB cannot be kept" in done.stderr
    assert peak < 1000
