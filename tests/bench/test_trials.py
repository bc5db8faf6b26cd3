"""Trials in their own process: results, limits, failures, going on."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict

import psutil
import pytest

from conftest import SMALL
from prodsc import files
from prodsc.bench import trials as module
from prodsc.bench.summary import summarise, to_csv, to_markdown
from prodsc.bench.trials import Limits, Outcome, Status, Trial, read_outcome, run_trials

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
    slow = Trial("digits", "pro-dsc", 1, QUICK.parameters | {"epochs": 100_000})
    (outcome,) = run_trials([slow], tmp_path, limits=limits)
    assert outcome.status is Status.FAILED
    assert outcome.reason.startswith(reason)
    assert outcome.numbers == {}
    assert read_outcome(slow, tmp_path) == outcome


def test_a_mistake_is_told_in_its_own_words(tmp_path):
    (outcome,) = run_trials([Trial("digits", "pro-dsc", 0, {"gama": 1})], tmp_path)
    assert "did you mean 'gamma'?" in outcome.reason


def test_a_trial_that_lacks_a_library_runs_once_it_is_installed(tmp_path, monkeypatch):
    trial, request = Trial("digits", "umap-gmm", 0, {"n_clusters": 10}), tmp_path / "request.json"
    files.write_json(request, asdict(trial))
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


def test_the_budget_stops_a_trial_which_then_goes_on(tmp_path):
    """No failure is recorded: the next call goes on from the checkpoint."""
    long = Trial("digits", "pro-dsc", 2, QUICK.parameters | {"epochs": 100_000})
    for seconds in (20, 60, 180):  # a slow machine needs longer to reach its first step
        first, second = run_trials([long, QUICK], tmp_path, budget_seconds=seconds)
        if (tmp_path / f"{long.key}.safetensors").exists():
            break
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
        Trial("digits", "pro-dsc", 0, rows=5),
    ]  # fmt: skip
    assert len({trial.key for trial in [base, *others]}) == 9
    assert "/" not in Trial("../x/y z.npy", "a", 0).key


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

    class Slow(psutil.Popen):
        def __init__(self, *words, **how):
            super().__init__(*words, **how)
            started.append(self.pid)
            os.kill(os.getpid(), signal.SIGINT)
            time.sleep(0.1)

    monkeypatch.setattr(psutil, "Popen", Slow)
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
