"""A sample of `make faults`: failing reads and writes, damaged models, kills at random moments, and a machine that
fits, stops, resumes, saves, loads, predicts and damages in any order."""

import os
import random
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test

from faults import kills, scenarios
from faults.campaign import Campaign
from faults.injector import FAULTS
from faults.scenarios import SCENARIOS, SETTINGS, TINY, X, fit, load, make, model_of, open_run, resume
from faults.tamper import TEXT, Tampering, flip_bits, truncate
from prodsc.errors import Interrupted, OutputError, ProdscError
from prodsc.training import checkpoint

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="faults are injected into forked processes"),
    pytest.mark.filterwarnings("ignore"),
]


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    for setting in SETTINGS:
        monkeypatch.setattr(*setting)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_failing_read_or_write_leaves_old_or_new(name, tmp_path):
    campaign = Campaign(name, tmp_path)
    assert len(campaign.points) > 20
    for case in random.Random(name).sample([*campaign.cases()], 3):
        assert campaign.problem(case.at, case.fault) == "", (case, campaign.points[case.at - 1])


def test_a_fault_that_loses_something_is_found(tmp_path, monkeypatch):
    """The injector itself: without fsync, a power cut after the last rename of a model must be noticed."""
    monkeypatch.setattr("prodsc.files.sync", lambda path: None)
    campaign = Campaign("predict", tmp_path)
    renames = [at for at, (operation, _) in enumerate(campaign.points, 1) if operation == "rename"]
    monkeypatch.setattr("faults.injector.Injector.rename", rename_that_lasts)
    assert "neither old nor new" in campaign.problem(renames[-1], "power cut")
    assert FAULTS[-1] == "power cut"


def rename_that_lasts(self, name, a, b, **more):
    """As on a file system that writes names before contents."""
    act = lambda: self.real[name](a, b, **more)  # noqa: E731
    return self.point("rename", b, act) if self.inside(b) else act()


def test_damaged_models_and_checkpoints_are_refused_or_do_the_same(tmp_path):
    tampering = Tampering(tmp_path)
    results = [tampering.attempt(seed) for seed in range(60)]
    assert [(done, result) for done, result in results if result not in ("refused", "same")] == []


@pytest.mark.parametrize("name", kills.COMMANDS)
def test_killed_at_a_random_moment_it_goes_on_to_the_same_result(name, tmp_path):
    kills.RESULTS.clear()
    rng = random.Random(1)
    assert all(kills.attempt(name, tmp_path, rng)[1] for _ in range(2))


# ---- a machine -------------------------------------------------------------------------------------------------------

LABELS: dict[int, np.ndarray] = {}


def labels_of(k):
    if k not in LABELS:
        LABELS[k] = make("pro-dsc", **TINY | {"n_clusters": k}).fit_predict(X)
    return LABELS[k]


class RunMachine(RuleBasedStateMachine):
    """A folder of a run and one of a model; whatever is done to them, no wrong labels come out, and no traceback."""

    def __init__(self):
        super().__init__()
        self.place = tempfile.TemporaryDirectory(prefix="prodsc-machine-")
        self.folder = Path(self.place.name)
        scenarios.with_rows(self.folder)
        self.k = self.saved_k = None
        self.finished = self.damaged = self.model_damaged = False

    def teardown(self):
        self.place.cleanup()

    @rule(k=st.sampled_from([2, 3]), stop_after=st.sampled_from([None, 1, 2, 3]))
    def start_a_fit(self, k, stop_after):
        save, calls = checkpoint.save_checkpoint, []

        def save_and_stop(*words):
            save(*words)
            calls.append(1)
            if len(calls) == stop_after:
                raise KeyboardInterrupt

        checkpoint.save_checkpoint = save_and_stop
        try:
            fit(self.folder, n_clusters=k)
            self.finished = True
        except Interrupted:
            self.finished = False
        except ProdscError:
            assert self.damaged  # a damaged manifest does not say what is ours
            return
        finally:
            checkpoint.save_checkpoint = save
        self.k, self.damaged = k, False

    @precondition(lambda self: self.k is not None)
    @rule()
    def resume_it(self):
        try:
            resume(self.folder)
            self.finished = True
        except OutputError:
            assert self.finished or self.damaged
        except ProdscError:
            assert self.damaged

    @rule(k=st.sampled_from([2, 3]))
    def save_a_model(self, k):
        try:
            model_of(k).save(self.folder / "model")
        except ProdscError:
            assert self.model_damaged
            return
        self.saved_k, self.model_damaged = k, False

    @precondition(lambda self: self.saved_k is not None)
    @rule(copies=st.integers(1, 2))
    def load_and_predict(self, copies):
        try:
            predicted = load(self.folder / "model").predict(np.tile(X, (copies, 1)))
        except ProdscError:
            assert self.model_damaged
            return
        np.testing.assert_array_equal(predicted, np.tile(labels_of(self.saved_k), copies))

    @rule(seed=st.integers(0, 2**20), of_model=st.booleans())
    def damage(self, seed, of_model):
        rng, folder = random.Random(seed), self.folder / ("model" if of_model else "run")
        paths = sorted(p for p in folder.glob("*") if p.stat().st_size) if folder.exists() else []
        if not paths:
            return
        path = rng.choice(paths)
        try:
            rng.choice(TEXT if path.suffix == ".json" else (flip_bits, truncate))(rng, path)
        except (ValueError, TypeError, AttributeError):  # it was damaged before, and is no table any more
            truncate(rng, path)
        if of_model:
            self.model_damaged = True
        else:
            self.damaged = True

    @invariant()
    def a_finished_run_has_the_right_labels(self):
        if not self.finished:
            return
        try:
            run = open_run(self.folder / "run")
            np.testing.assert_array_equal(run.model.labels_, run.labels)
            np.testing.assert_array_equal(run.labels, labels_of(self.k))
        except ProdscError:
            assert self.damaged


def run_machine(examples, steps):
    checks = [HealthCheck.too_slow, HealthCheck.function_scoped_fixture]
    phases = [Phase.explicit, Phase.generate]  # steps are few, and making them fewer takes minutes
    how = settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, suppress_health_check=checks, phases=phases
    )
    run_state_machine_as_test(RunMachine, settings=how)


def test_in_any_order_no_wrong_labels_and_no_traceback():
    run_machine(examples=5, steps=8)


@pytest.mark.slow
def test_in_any_order_no_wrong_labels_and_no_traceback_at_length():
    run_machine(examples=150, steps=30)
