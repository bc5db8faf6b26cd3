"""What was frozen with version 0.1 stays: labels, saved models, runs and the names of parameters in recipes."""

import shutil
import warnings

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from golden.cases import CASES, HERE, LABELS, SHARED_DATA, Case, lines
from prodsc import load, make

SAME = 0.99  # ARI: exact where the labels were made; another processor rounds differently, and training is long


@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=[pytest.mark.slow] if case.slow else []) for case in CASES]
)
@pytest.mark.filterwarnings("ignore")
def test_labels_are_those_of_version_01(case: Case):
    if case.data is not None and not (SHARED_DATA / f"{case.data}.npz").exists():
        pytest.skip(f"{case.data}.npz is not in {SHARED_DATA}: real data are not part of the project")
    model = make(case.method, random_state=0, device="cpu", **case.parameters).fit(case.rows(), **case.fit)
    with np.load(LABELS, allow_pickle=False) as kept:
        expected = kept[case.name]
    assert len(model.labels_) == len(expected)
    assert adjusted_rand_score(expected, model.labels_) >= SAME


@pytest.mark.parametrize("name", sorted(path.name for path in (HERE / "models").iterdir()))
def test_a_model_saved_by_version_01_loads_and_labels_the_same(name):
    with np.load(HERE / "models" / name / "expected.npz", allow_pickle=False) as expected:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # it may carry names of parameters that have changed
            model = load(HERE / "models" / name)
        np.testing.assert_array_equal(model.labels_, expected["labels"])
        if "predicted" in expected:
            np.testing.assert_array_equal(model.predict(lines()[::-1] * 1.5), expected["predicted"])


def test_a_run_of_version_01_opens(tmp_path):
    from prodsc.runs.past_run import open_run

    shutil.copytree(HERE / "run", tmp_path / "run")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        run = open_run(tmp_path / "run", HERE / "lines.npy")
        np.testing.assert_array_equal(run.model.predict(run.data.X), run.labels)
