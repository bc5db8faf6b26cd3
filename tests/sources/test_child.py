"""A reader that crashes, hangs or takes too much memory ends as one sentence, and its process ends with it."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.io

from prodsc.errors import InputError
from prodsc.sources import child, limits
from prodsc.sources.formats import opened
from prodsc.sources.limits import LIMITS, available_memory, check_size
from prodsc.sources.readers import read

X = np.random.default_rng(0).normal(size=(12, 5))


@pytest.fixture
def path(tmp_path):
    cell = np.array([1, "a"], dtype=object)
    scipy.io.savemat(tmp_path / "f.mat", {"X": X, "y": np.arange(12) % 3, "text": "abc", "cell": cell})
    return tmp_path / "f.mat"


@pytest.mark.parametrize(
    ("serve", "sentence"),
    [
        ("import os; os.abort()", r"\(the process that read it ended with signal 6\)"),
        ("import os; os.kill(os.getpid(), 11)", "ended with signal 11"),
        ("import sys; sys.exit(7)", "ended with code 7"),
        ("import time; time.sleep(600)", "ended after 1 s, or for lack of memory"),
        ("print('half a line', end='')", "ended with code 0"),
    ],
)
def test_a_reader_that_ends_badly(serve, sentence, path, monkeypatch):
    monkeypatch.setattr(child, "SERVE", serve)
    if "sleep" in serve:
        monkeypatch.setattr(child, "LIMITS", replace(LIMITS, seconds=1.0, seconds_per_mb=0.0))
    with pytest.raises(InputError, match=sentence) as caught:
        read(path)
    assert "\n" not in str(caught.value)


def test_a_reader_that_dies_in_the_middle_of_an_array(path, monkeypatch):
    half = (
        "import sys, json\nsys.stdin.readline(); print(json.dumps({'names': ['X'], 'matrix': False}), flush=True)\n"
        "sys.stdin.readline(); print(json.dumps({'shape': [12, 5], 'dtype': '<f8', 'columns': None}), flush=True)\n"
        "print('x' * 100, flush=True)"
    )
    monkeypatch.setattr(child, "SERVE", half)
    with pytest.raises(InputError, match="ended with code 0"):
        read(path)


def test_the_process_has_a_limit_of_memory():
    code = (
        "import numpy as np; from prodsc.sources.untrusted import _limit_memory; _limit_memory(2**31)\n"
        "try: np.ones(2**29)\nexcept MemoryError: print('refused')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "refused\n"


def test_the_process_ends_with_the_block(path):
    started = []
    with pytest.MonkeyPatch.context() as patch:
        popen = subprocess.Popen

        def start(*words, **options):
            started.append(popen(*words, **options))
            return started[-1]

        patch.setattr(subprocess, "Popen", start)
        with opened(path) as contents:
            np.testing.assert_array_equal(contents.arrays["X"](), X)
            assert started[0].poll() is None
            assert contents.arrays["text"]().tolist() == ["abc"]
            assert contents.arrays["cell"]().tolist() is None  # Python objects are no numbers
    assert started[0].poll() is not None


def test_a_size_is_compared_with_the_file_and_with_memory(tmp_path, monkeypatch):
    assert available_memory() > 0
    monkeypatch.setattr(limits, "available_memory", lambda: 2.0**31)
    (tmp_path / "f").write_bytes(bytes(1000))
    check_size(2**30, tmp_path / "f")
    with pytest.raises(InputError, match=r"would take 1.0 GB, more than 100 times as much"):
        check_size(2**30 + 1, tmp_path / "f")
    (tmp_path / "f").write_bytes(bytes(30 * 2**20))
    with pytest.raises(InputError, match=r"would take 1.9 GB of memory, and 1.8 GB may be used"):
        check_size(int(1.9 * 2**30), tmp_path / "f")
