"""The command line as a user runs it."""

import contextlib
import csv
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from prodsc import PRODSC
from prodsc.cli import main
from prodsc.runs.recipes import names

QUICK = ["--hidden-size", "32", "--n-components", "16", "--warmup-steps", "10", "--epochs", "20", "--n-init", "3"]
RESULTS = {"labels.csv", "history.csv", "model.json", "model.safetensors", "report.html", "result.json", "run.json"} | {
    "manifest.json"
}


def prodsc(*words, cwd=None):
    """The command in this process: importing torch anew for each would take minutes."""
    out, err = io.StringIO(), io.StringIO()
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(cwd or "."),
        pytest.raises(SystemExit) as end,
    ):
        main([*map(str, words)])
    return subprocess.CompletedProcess(words, end.value.code, out.getvalue(), err.getvalue())


def process(*words, seconds="15", **how):
    """The command in a process of its own, to be killed or starved."""
    command = [sys.executable, "-m", "prodsc", *map(str, words)]
    environment = os.environ | {"PRODSC_CHECKPOINT_SECONDS": seconds}
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **how)


def sentence(done, code=1):
    """The one line a failed command prints, without a traceback."""
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def data(tmp_path_factory, blobs):
    folder = tmp_path_factory.mktemp("data")
    X, y = blobs
    np.savez(folder / "data.npz", X=X.astype(np.float32), y=y)
    np.save(folder / "new.npy", X[:20] + 0.05)
    return folder


@pytest.fixture(scope="module")
def finished(data):
    done = prodsc("fit", data / "data.npz", "-k", 3, "--out", data / "run", *QUICK)
    assert done.returncode == 0, done.stderr
    return data / "run", done


def labels_in(path):
    with path.open() as file:
        return [int(row["label"]) for row in csv.DictReader(file)]


def test_fit_leaves_everything(finished, blobs):
    run, done = finished
    assert {p.name for p in run.iterdir()} == RESULTS
    assert "150 rows in 3 clusters" in done.stdout
    assert "ACC" in done.stdout
    assert "joint 20/20" in done.stderr  # progress: phase, step, losses
    assert "coding rate" in done.stderr
    assert "self-expression" in done.stderr
    assert "block-diagonal" in done.stderr
    result = json.loads((run / "result.json").read_text())
    assert result["scores"]["ACC"] > 0.95
    assert result["parameters"]["n_clusters"] == 3
    assert result["peak_memory_mb"] > 10
    assert set(result["versions"]) >= {"prodsc", "torch", "numpy", "python"}
    labels = labels_in(run / "labels.csv")
    model = PRODSC.load(run)
    assert labels == model.labels_.tolist()
    same = PRODSC.from_flat(3, hidden_size=32, n_components=16, warmup_steps=10, epochs=20, n_init=3).fit(
        blobs[0].astype(np.float32)
    )
    assert labels == same.labels_.tolist()  # the command line is the estimator
    with (run / "history.csv").open() as file:
        history = list(csv.DictReader(file))
    assert [row["phase"] for row in history] == ["warm-up"] * 10 + ["joint"] * 20
    assert history[0]["self_expression"] == ""
    assert "<img" in (run / "report.html").read_text()


def test_predict(finished, data):
    run, _ = finished
    out = data / "labels.csv"
    done = prodsc("predict", run, data / "new.npy", "-o", out)
    assert done.returncode == 0, done.stderr
    assert labels_in(out) == PRODSC.load(run).predict(np.load(data / "new.npy")).tolist()
    assert "exists" in sentence(prodsc("predict", run, data / "new.npy", "-o", out))
    printed = prodsc("predict", run, data / "new.npy")
    assert printed.stdout.splitlines()[0] == "row,label,confidence,outlier"
    assert len(printed.stdout.splitlines()) == 21
    np.save(data / "wide.npy", np.ones((4, 13)))
    assert "X has 13 features, but PRODSC is expecting 12" in sentence(prodsc("predict", run, data / "wide.npy"))
    assert "holds no saved model" in sentence(prodsc("predict", data, data / "new.npy"))


def test_labels_are_only_used_to_score(finished, data, blobs):
    run, _ = finished
    np.savez(data / "unlabelled.npz", X=blobs[0].astype(np.float32))
    np.save(data / "wrong.npy", np.roll(blobs[1], 60))
    bare = prodsc("fit", data / "unlabelled.npz", "-k", 3, "--out", data / "bare", *QUICK)
    assert "ACC" not in bare.stdout
    other = prodsc(
        "fit", data / "unlabelled.npz", "-k", 3, "--out", data / "other", "--labels", data / "wrong.npy", *QUICK
    )
    assert "ACC" in other.stdout
    assert (
        labels_in(data / "bare" / "labels.csv")
        == labels_in(data / "other" / "labels.csv")
        == labels_in(run / "labels.csv")
    )


# ---- layers and typos ----------------------------------------------------------------------------------------------


def test_defaults_then_recipe_then_command_line(data, tmp_path):
    recipe = tmp_path / "mine.toml"
    recipe.write_text(
        "[parameters]\nn_clusters = 4\neta = 0.3\nbeta = 5\nhidden_size = 16\nn_components = 8\nepochs = 2\n"
    )
    done = prodsc("fit", data / "data.npz", "--recipe", recipe, "-k", 3, "--beta", "7.5", "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    parameters = json.loads((tmp_path / "run" / "result.json").read_text())["parameters"]
    assert (parameters["n_clusters"], parameters["eta"], parameters["beta"]) == (3, 0.3, 7.5)
    assert parameters["eps"] == PRODSC().flat_params()["eps"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--gama", "3"], "--gamma"),
        (["--recipe", "cifar1O"], "did you mean 'cifar10'?"),
        (["--normaliser", "sinkhron"], "'softmax', 'sinkhorn'"),
        (["--gamma", "-3"], "gamma must be a number above 0 or 'auto', got -3.0"),
        (["--eta", "much"], "eta must be a number above 0 or 'auto', got 'much'"),
        (["-k", "1"], "n_clusters=1 puts every row in one cluster"),
        (["-k", "0"], "n_clusters must be a whole number of at least 1"),
        (["-k", "500"], "150 rows (n_samples=150), fewer than n_clusters=500"),
    ],
)
def test_typos_and_values(words, said, data, tmp_path):
    base = ["fit", data / "data.npz", "--out", tmp_path / "run"] + ([] if "-k" in words else ["-k", 3])
    done = prodsc(*base, *words)
    assert done.returncode in (1, 2)
    assert "Traceback" not in done.stderr
    assert said in done.stderr
    assert not (tmp_path / "run").exists()


def test_a_misspelt_recipe_key_suggests_the_right_one(data, tmp_path):
    recipe = tmp_path / "mine.toml"
    recipe.write_text("[parameters]\ngama = 3\n")
    said = sentence(prodsc("fit", data / "data.npz", "-k", 3, "--recipe", recipe, "--out", tmp_path / "run"))
    assert f"{recipe}: unknown key 'gama'; did you mean 'gamma'?" in said


def test_usage(data, tmp_path):
    assert "-k NUMBER" in prodsc("fit", data / "data.npz", "--out", tmp_path / "run").stderr
    assert "--out" in prodsc("fit", data / "data.npz", "-k", 3).stderr
    listed = prodsc("recipes").stdout
    assert all(name in listed for name in names())
    assert "gamma = 75" in prodsc("recipes", "orl").stdout


def test_a_named_data_set_is_fitted_and_resumed_by_name(tmp_path):
    """synthetic-pole is computed, so there is no file: the run keeps its name."""
    done = prodsc("fit", "synthetic-pole", "-k", 2, "--out", tmp_path / "run", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "ACC" in done.stdout
    assert json.loads((tmp_path / "run" / "run.json").read_text())["file"] == "synthetic-pole"
    assert "did you mean 'synthetic-pole'?" in sentence(
        prodsc("fit", "synthetic-pol", "-k", 2, "--out", tmp_path / "x")
    )
    words = ("fit", "synthetic-pole", "-k", 2, "--labels", "y", "--out", tmp_path / "y")
    assert "which has its own" in sentence(prodsc(*words))


# ---- bad input -----------------------------------------------------------------------------------------------------


class Dangerous:
    def __reduce__(self):
        return Path.touch, (Path("executed"),)


def _write(path, content):
    path.write_bytes(content)


BAD = {
    "nan.npy": (
        lambda p: np.save(p, np.where(np.eye(30), np.nan, 1.0)),
        "30 rows with NaN or infinity (inf) (first: row 0",
    ),
    "five.npy": (
        lambda p: np.save(p, np.random.default_rng(0).random((30, 2, 2, 2, 2))),
        "has shape (30, 2, 2, 2, 2)",
    ),
    "line.npy": (lambda p: np.save(p, np.arange(30.0)), "1-D"),
    "text.csv": (lambda p: p.write_text("a,b\n1,x\n2,y\n"), "b (string)"),
    "strings.npy": (lambda p: np.save(p, np.array([["a", "b"]] * 9)), "not numbers"),
    "empty.npy": (lambda p: p.touch(), "empty (0 bytes)"),
    "none.npy": (lambda p: np.save(p, np.zeros((0, 4))), "0 rows"),
    "pickle.npy": (lambda p: _write(p, pickle.dumps(Dangerous())), "a pickle is never loaded"),
    "pickle.pt": (lambda p: _write(p, pickle.dumps(Dangerous())), "a pickle is never loaded"),
    "zero.npy": (lambda p: np.save(p, np.vstack([np.eye(6), np.zeros((2, 6))])), "2 rows of zeros only (first: row 6)"),
    "constant.npy": (lambda p: np.save(p, np.ones((30, 4))), "all 4 columns of X are constant"),
    "few.npy": (lambda p: np.save(p, np.eye(2)), "fewer than n_clusters=3"),
    "photo.jpeg": (lambda p: _write(p, b"\xff\xd8"), "supported are .npy"),
    "absent.npy": (lambda p: None, "does not exist"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_files(name, tmp_path):
    make, said = BAD[name]
    make(tmp_path / name)
    before = sorted(tmp_path.iterdir())
    found = sentence(prodsc("fit", name, "-k", 3, "--out", "run", *QUICK, cwd=tmp_path))
    assert found.startswith("prodsc: ")
    assert said in found
    assert sorted(tmp_path.iterdir()) == before  # nothing half-written, nothing executed


def test_an_existing_out_is_not_overwritten(finished, data):
    run, _ = finished
    before = {p.name: p.read_bytes() for p in run.iterdir()}
    said = sentence(prodsc("fit", data / "data.npz", "-k", 3, "--out", run, *QUICK))
    assert "exists and is not empty" in said
    assert {p.name: p.read_bytes() for p in run.iterdir()} == before
    assert "is a file" in sentence(prodsc("fit", data / "data.npz", "-k", 3, "--out", data / "data.npz"))


def test_overwrite_replaces_a_finished_run(data, tmp_path):
    for k in (3, 4):
        done = prodsc("fit", data / "data.npz", "-k", k, "--out", tmp_path / "run", "--overwrite", *QUICK)
        assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "run" / "result.json").read_text())["parameters"]["n_clusters"] == 4
    assert {p.name for p in (tmp_path / "run").iterdir()} == RESULTS


@pytest.mark.parametrize("name", ["new.npy", "run/model.json", "run/labels.csv"])
def test_predict_never_replaces_an_input(finished, data, name):
    run, _ = finished
    before = (data / name).read_bytes()
    said = sentence(prodsc("predict", run, data / "new.npy", "-o", data / name, "--overwrite"))
    assert "is an input of this command and is never replaced" in said
    assert (data / name).read_bytes() == before


def test_an_unwritable_out(data):
    said = sentence(prodsc("fit", data / "data.npz", "-k", 3, "--out", "/proc/prodsc-run", *QUICK))
    assert "cannot write /proc/prodsc-run" in said


def test_a_full_disk(data, tmp_path):
    """A file-size limit stands in for a full disk: the write fails half-way, and no half of a file stays."""
    import resource

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))

    starved = process("fit", data / "data.npz", "-k", 3, "--out", tmp_path / "run", *QUICK, preexec_fn=limit)
    out, err = starved.communicate(timeout=300)
    done = subprocess.CompletedProcess([], starved.returncode, out, err)
    assert "cannot write" in sentence(done)
    left = {p.name for p in (tmp_path / "run").iterdir()} if (tmp_path / "run").exists() else set()
    assert not any(name.endswith(".part") for name in left)
    assert "result.json" not in left
    assert left <= {"run.json", "manifest.json", "checkpoint.safetensors"}  # what --resume needs


# ---- interruption --------------------------------------------------------------------------------------------------

LONG = [*QUICK[:-4], "--epochs", "400", "--n-init", "3"]


@pytest.fixture(scope="module")
def uninterrupted(data):
    done = prodsc("fit", data / "data.npz", "-k", 3, "--out", data / "long", *LONG)
    assert done.returncode == 0, done.stderr
    return labels_in(data / "long" / "labels.csv"), (data / "long" / "history.csv").read_text()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_stopped_run_goes_on_to_the_same_labels(how, data, uninterrupted, tmp_path):
    run = tmp_path / "run"
    stopped = process("fit", data / "data.npz", "-k", 3, "--out", run, *LONG, seconds="0.05")
    wait_for(run / "checkpoint.safetensors")
    stopped.send_signal(how)
    _, said = stopped.communicate(timeout=60)
    assert stopped.returncode != 0
    assert "Traceback" not in said
    if how != signal.SIGKILL:
        assert stopped.returncode == 130
        assert f"continue with: prodsc fit --resume {run}" in said
    assert not (run / "result.json").exists()
    assert "--resume" in sentence(prodsc("fit", data / "data.npz", "-k", 3, "--out", run, *LONG))  # not overwritten
    done = prodsc("fit", "--resume", run)
    assert done.returncode == 0, done.stderr
    labels, history = uninterrupted
    assert labels_in(run / "labels.csv") == labels
    assert (run / "history.csv").read_text() == history
    assert {p.name for p in run.iterdir()} >= RESULTS
    assert "nothing to resume" in sentence(prodsc("fit", "--resume", run))


def wait_for(path, seconds=60):
    until = time.monotonic() + seconds
    while not path.exists():
        assert time.monotonic() < until, f"{path} did not appear"
        time.sleep(0.01)


def test_resume_refuses_other_data_and_other_words(data, tmp_path, blobs):
    np.save(tmp_path / "X.npy", blobs[0])
    run = tmp_path / "run"
    stopped = process("fit", tmp_path / "X.npy", "-k", 3, "--out", run, *LONG, seconds="0.05")
    wait_for(run / "checkpoint.safetensors")
    stopped.send_signal(signal.SIGINT)
    stopped.communicate(timeout=60)
    assert "leave out" in prodsc("fit", "--resume", run, "--eta", "0.2").stderr
    np.save(tmp_path / "X.npy", blobs[0] + 1)
    assert "other data" in sentence(prodsc("fit", "--resume", run))
    (tmp_path / "X.npy").unlink()
    assert "does not exist" in sentence(prodsc("fit", "--resume", run))
    assert "holds no run to resume" in sentence(prodsc("fit", "--resume", tmp_path))
