"""Trials in their own process: results, limits, failures, going on."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from conftest import SMALL
from prodsc import files
from prodsc.bench import trials as module
from prodsc.bench.measures import fit_trial
from prodsc.bench.summary import summarise, to_csv, to_markdown
from prodsc.bench.trials import Limits, Measured, Outcome, Status, Trial, read_outcome, run_trials
from prodsc.errors import InputError
from prodsc.training import Callback

QUICK = Trial("digits", "pro-dsc", 0, SMALL | {"n_clusters": 10, "epochs": 2, "n_init": 1})


def test_a_trial_gives_numbers_once(tmp_path):
    seen = []
    on_trial = lambda number, trial, outcome: seen.append(outcome)  # noqa: E731
    (first,) = run_trials([QUICK], tmp_path, on_trial=on_trial)
    assert first.status is Status.FINISHED
    assert 0 < first.numbers["ACC"] <= 100
    assert first.numbers["seconds"] > 0
    assert first.arrays["labels"].shape == (1797,)
    assert seen[0] is None
    again = run_trials([QUICK], tmp_path, on_trial=on_trial)[0]
    assert again.numbers == first.numbers
    assert len(seen) == 3, "a finished trial must not begin again"
    left = {path.suffix for path in tmp_path.iterdir()}
    assert left == {".json", ".npz"}, "request, log and checkpoint go when a trial is done"


@pytest.mark.parametrize(
    ("limits", "reason"), [(Limits(seconds=0.1), "out of time at"), (Limits(memory_mb=20), "out of memory at")]
)
def test_a_limit_is_a_recorded_failure(tmp_path, limits, reason):
    slow = Trial("digits", "pro-dsc", 1, QUICK.parameters | {"epochs": 100_000}, limits=limits)
    (outcome,) = run_trials([slow], tmp_path)
    assert outcome.status is Status.FAILED
    assert outcome.reason.startswith(reason)
    assert outcome.numbers == {}
    assert read_outcome(slow, tmp_path) == outcome


def test_a_mistake_is_told_in_its_own_words(tmp_path):
    (outcome,) = run_trials([Trial("digits", "pro-dsc", 0, {"gama": 1})], tmp_path)
    assert "did you mean 'gamma'?" in outcome.reason


def test_a_trial_that_lacks_a_library_runs_once_it_is_installed(tmp_path, monkeypatch):
    trial, request = Trial("digits", "umap-gmm", 0, {"n_clusters": 10}), tmp_path / "request.json"
    files.write_json(request, asdict(trial) | {"key": trial.key})
    with monkeypatch.context() as missing:
        missing.setitem(sys.modules, "umap", None)
        module.run_child(request)
    recorded = read_outcome(trial, tmp_path)
    assert (
        recorded.reason == "UMAPGMM needs umap, which is not installed; install it with: pip install 'prodsc[rivals]'"
    )
    installed = Outcome(trial, {"ACC": 95.0})
    monkeypatch.setattr(module, "run_in_process", lambda *_: installed)
    assert run_trials([trial], tmp_path) == [installed]


def scores_and_mark(trial, checkpoint):
    """A measure that leaves a file after the first step, so that a test knows that training has begun."""

    class Mark(Callback):
        def on_step(self, training):
            Path(trial.options["mark"]).touch()

    return Measured(fit_trial(trial, checkpoint, [Mark()]).scores())


def test_the_budget_stops_a_trial_which_then_goes_on(tmp_path, monkeypatch):
    """No failure is recorded: the next call goes on from the checkpoint. The budget of an hour is over once training
    has begun, however long that takes."""
    mark = tmp_path / "begun"
    clock = SimpleNamespace(monotonic=lambda: 1e6 * mark.exists(), sleep=time.sleep)
    monkeypatch.setattr(module, "time", clock)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)]))
    how = {"measure": "test_trials:scores_and_mark", "options": {"mark": str(mark)}}
    long = Trial("digits", "pro-dsc", 2, QUICK.parameters | {"epochs": 100_000}, **how)
    first, second = run_trials([long, QUICK], tmp_path, budget_seconds=3600)
    assert (first.status, second.status) == (Status.STOPPED, Status.NOT_RUN)
    assert first.reason.startswith("not finished: the budget")
    assert second.reason.startswith("not run: the budget")
    assert read_outcome(long, tmp_path) is None
    assert (tmp_path / f"{long.key}.safetensors").exists()


def test_the_key_changes_with_everything_that_matters():
    base = Trial("digits", "pro-dsc", 0)
    others = [
        Trial("orl", "pro-dsc", 0), Trial("digits", "sedsc", 0), Trial("digits", "pro-dsc", 1),
        Trial("digits", "pro-dsc", 0, {"gamma": 1}), Trial("digits", "pro-dsc", 0, variant="v"),
        Trial("digits", "pro-dsc", 0, measure="cost"), Trial("digits", "pro-dsc", 0, options={"a": 1}),
        Trial("digits", "pro-dsc", 0, rows=5), Trial("digits", "pro-dsc", 0, limits=Limits(seconds=5)),
    ]  # fmt: skip
    assert len({trial.key for trial in [base, *others]}) == 10
    assert "/" not in Trial("../x/y z.npy", "a", 0).key


def run_here(trial, folder, budget_seconds):
    """In place of `_run_once`: the trial in this process, which has imported torch already."""
    request = folder / "request.json"
    files.write_json(request, asdict(trial) | {"key": trial.key})
    module.run_child(request)
    return read_outcome(trial, folder)


def test_the_key_changes_with_the_content_of_the_data_and_the_version(tmp_path, monkeypatch):
    path = tmp_path / "X.npy"
    np.save(path, np.zeros((4, 2)))
    key = Trial(str(path), "k-means", 0).key
    os.utime(path, (1, 1))
    assert Trial(str(path), "k-means", 0).key == key, "touching a file changes nothing"
    np.save(path, np.ones((4, 2)))
    os.utime(path, (2, 2))
    assert Trial(str(path), "k-means", 0).key != key
    np.save(path, np.zeros((4, 2)))
    assert Trial(str(path), "k-means", 0).key == key
    monkeypatch.setattr(module, "__version__", "9.9")
    assert Trial(str(path), "k-means", 0).key != key


def test_new_data_under_the_old_name_is_run_again(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_run_once", run_here)
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 20)
    trial = Trial(str(tmp_path / "data.npz"), "k-means", 0, {"n_clusters": 2})
    np.savez(tmp_path / "data.npz", X=10 * y[:, None] + rng.standard_normal((40, 2)), y=y)
    assert run_trials([trial], tmp_path / "trials")[0].numbers["ACC"] == 100
    np.savez(tmp_path / "data.npz", X=rng.standard_normal((40, 2)), y=y)
    assert run_trials([replace(trial)], tmp_path / "trials")[0].numbers["ACC"] < 100


def test_data_that_change_while_a_trial_starts_give_no_number(tmp_path):
    np.savez(tmp_path / "data.npz", X=np.eye(4))
    trial = Trial(str(tmp_path / "data.npz"), "k-means", 0, {"n_clusters": 2})
    request = tmp_path / "request.json"
    files.write_json(request, asdict(trial) | {"key": trial.key})
    np.savez(tmp_path / "data.npz", X=np.eye(5))
    module.run_child(request)
    recorded = read_outcome(trial, tmp_path)
    assert recorded.status is Status.NOT_RUN
    assert "has changed since the command was started" in recorded.reason


def test_a_disk_that_fails_once_is_not_a_failure_for_good(tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_run_once", run_here)
    np.save(tmp_path / "X.npy", np.random.default_rng(0).standard_normal((20, 3)))
    trial = Trial(str(tmp_path / "X.npy"), "k-means", 0, {"n_clusters": 2})
    with monkeypatch.context() as patch:
        error = InputError("X.npy cannot be read (Input/output error).")
        error.__cause__ = OSError(5, "Input/output error")
        patch.setattr("prodsc.bench.measures.open_source", lambda *_, **__: (_ for _ in ()).throw(error))
        assert run_trials([trial], tmp_path)[0].status is Status.NOT_RUN
    assert run_trials([trial], tmp_path)[0].finished


def test_a_trial_killed_from_outside_is_tried_again_and_never_final(tmp_path, monkeypatch):
    stopped = tmp_path / "killed"
    stopped.write_text(f"#!/bin/sh\necho x >> {tmp_path}/count\nkill -9 $$\n")
    stopped.chmod(0o755)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "executable", str(stopped))
        (outcome,) = run_trials([QUICK], tmp_path)
    assert outcome.status is Status.KILLED
    assert outcome.reason.startswith("killed from outside")
    assert (tmp_path / "count").read_text() == "x\nx\n"
    assert read_outcome(QUICK, tmp_path).status is Status.KILLED
    monkeypatch.setattr(module, "_run_once", run_here)
    assert run_trials([QUICK], tmp_path)[0].finished


def test_zipfile_hides_a_failing_disk_and_we_do_not(tmp_path, monkeypatch):
    """zipfile calls an unreadable file "not a zip file"; recorded as a failure, the trial would never run again."""
    monkeypatch.setattr(module, "_run_once", run_here)
    np.savez(tmp_path / "X.npz", X=np.random.default_rng(0).standard_normal((20, 3)))
    trial = Trial(str(tmp_path / "X.npz"), "k-means", 0, {"n_clusters": 2})
    with monkeypatch.context() as patch:
        fails = lambda *_: (_ for _ in ()).throw(OSError(5, "Input/output error"))  # noqa: E731
        patch.setattr("zipfile._EndRecData", fails)
        assert run_trials([trial], tmp_path / "trials")[0].status is Status.NOT_RUN
    assert run_trials([trial], tmp_path / "trials")[0].finished


@pytest.mark.parametrize("suffix", [".json", ".npz"])
def test_a_changed_number_or_label_is_run_again(tmp_path, monkeypatch, suffix):
    monkeypatch.setattr(module, "_run_once", run_here)
    trial = Trial("digits", "k-means", 0, {"n_clusters": 10})
    (first,) = run_trials([trial], tmp_path)
    path = tmp_path / f"{trial.key}{suffix}"
    content = path.read_bytes()
    place = content.index(b'"ACC": ') + 7 if suffix == ".json" else len(content) // 2
    path.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
    assert read_outcome(trial, tmp_path) is None
    (again,) = run_trials([trial], tmp_path)
    assert again.numbers["ACC"] == first.numbers["ACC"]
    np.testing.assert_array_equal(again.arrays["labels"], first.arrays["labels"])


def test_arrays_that_cannot_be_read_are_one_sentence(tmp_path):
    (tmp_path / "a.npz").write_bytes(b"PK")
    outcome = Outcome(QUICK, arrays_path=tmp_path / "a.npz")
    with pytest.raises(InputError, match=r"a\.npz cannot be read \(.*\); run the command again"):
        _ = outcome.arrays


def test_a_trial_whose_result_cannot_be_read_is_run_by_the_next_call(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/true")
    (outcome,) = run_trials([QUICK], tmp_path)
    assert (outcome.status, outcome.reason[:34]) == (Status.NOT_RUN, "not run: its result cannot be read")
    assert read_outcome(QUICK, tmp_path) is None


def test_a_trial_whose_parent_is_gone_does_not_begin(tmp_path):
    files.write_json(tmp_path / "request.json", asdict(QUICK) | {"key": QUICK.key})
    words = [sys.executable, "-m", "prodsc.bench.trials", str(tmp_path / "request.json"), "1"]
    assert subprocess.run(words, capture_output=True, check=False).returncode == 128 + signal.SIGKILL
    assert read_outcome(QUICK, tmp_path) is None


@pytest.mark.parametrize("content", ["", "{}", '{"numbers": 3}', "[1]"])
def test_a_damaged_result_is_run_again(tmp_path, content):
    (tmp_path / f"{QUICK.key}.json").write_text(content)
    assert read_outcome(QUICK, tmp_path) is None


def test_a_trial_that_dies_says_how(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/bin/false")
    (outcome,) = run_trials([QUICK], tmp_path)
    assert (outcome.status, outcome.reason) == (Status.FAILED, "ended with code 1")


@pytest.mark.parametrize("code", [143, 130])
def test_a_trial_stopped_from_outside_goes_on_later(tmp_path, monkeypatch, code):
    stopped = tmp_path / "stopped"
    stopped.write_text(f"#!/bin/sh\nexit {code}\n")
    stopped.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(stopped))
    (outcome,) = run_trials([QUICK], tmp_path)
    assert outcome.status is Status.STOPPED
    assert outcome.reason.startswith("not finished: stopped by a signal")
    assert read_outcome(QUICK, tmp_path) is None, "a failure would be for good"


def test_control_c_stops_the_child(tmp_path):
    """The parent goes with KeyboardInterrupt and leaves no process behind; finished results stay."""
    code = (
        "from pathlib import Path\nfrom prodsc.bench.trials import *\n"
        f"long = Trial('digits', 'pro-dsc', 0, {QUICK.parameters | {'epochs': 100_000}!r})\n"
        f"run_trials([long], Path({str(tmp_path)!r}))"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob("*.log")) and time.monotonic() < deadline:
        time.sleep(0.1)
    parent.send_signal(signal.SIGINT)
    _, said = parent.communicate(timeout=120)
    assert "KeyboardInterrupt" in said
    assert subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, check=False).returncode == 1
    assert os.path.isdir(tmp_path)


def test_control_c_while_a_child_starts_stops_it_too(tmp_path, monkeypatch):
    """Ctrl-C after the fork and before the parent knows the process: the process must not be left behind."""
    started = []

    class Slow(subprocess.Popen):
        def __init__(self, *words, **how):
            super().__init__(*words, **how)
            started.append(self.pid)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)

    monkeypatch.setattr(module.subprocess, "Popen", Slow)
    long = Trial("digits", "pro-dsc", 0, QUICK.parameters | {"epochs": 100_000})
    with pytest.raises(KeyboardInterrupt):
        run_trials([long], tmp_path)
    (pid,) = started
    assert not psutil.pid_exists(pid)


# ---- summaries -----------------------------------------------------------------------------------------------------


def outcomes(*values, failed=()):
    good = [Outcome(Trial("a", "m", seed), {"ACC": value, "seconds": 1.23456}) for seed, value in enumerate(values)]
    return good + [
        Outcome(Trial("a", "m", 100 + i), status=Status.FAILED, reason=reason) for i, reason in enumerate(failed)
    ]


def test_failures_are_counted_and_never_averaged_in():
    (line,) = summarise(outcomes(90.0, 92.0, failed=["out of time at 3 s"] * 2 + ["boom"]))
    assert line.mean("ACC") == 91.0
    assert line.std("ACC") == 1.0
    assert line.runs == 5
    assert line.failures == ("failed 2/5: out of time at 3 s", "failed 1/5: boom")
    assert line.cell("ACC") == "91.0 ± 1.0"
    assert line.cell("seconds") == "1.235 ± 0"
    assert line.cell("NMI") == "-"
    assert summarise(outcomes(90.0))[0].cell("ACC") == "90.0"


def test_tables_escape_what_would_break_them():
    assert to_markdown(["a"], [["x|y"]]).splitlines()[-1] == "| x\\|y |"
    assert to_csv(["a", "b"], [["x,y", None]]) == 'a,b\n"x,y",\n'


def test_numbers_that_are_not_finite_are_left_out(tmp_path):
    module._record(QUICK, tmp_path, {"ACC": float("nan"), "NMI": 1.0})
    assert read_outcome(QUICK, tmp_path).numbers == {"NMI": 1.0}
    assert files.read_json(tmp_path / f"{QUICK.key}.json")["numbers"]["ACC"] is None
