"""What must come out on real data. Minutes of training: `make test-slow`."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sklearn.datasets import load_digits

from prodsc import PRODSC
from prodsc.core import metrics


@pytest.mark.slow
def test_digits_with_default_settings():
    """k-means reaches 0.79 and spectral clustering 0.81."""
    X, y = load_digits(return_X_y=True)
    found = [metrics.accuracy(y, PRODSC(10, random_state=seed).fit(X).labels_) for seed in range(5)]
    assert np.mean(found) >= 0.90


@pytest.mark.slow
def test_twenty_thousand_rows_stay_below_two_gigabytes(shared_data, tmp_path):
    path = shared_data("cifar10_efflite0.npz")
    command = [sys.executable, "-m", "prodsc", "fit", str(path), "-k", "10", "--out", str(tmp_path / "run")]
    subprocess.run(command, check=True, capture_output=True)
    result = json.loads((tmp_path / "run" / "result.json").read_text())
    assert result["peak_memory_mb"] < 2000
    assert result["scores"]["ACC"] > 0.7
