"""prodsc extract as a user runs it, with a small encoder under a name of its own."""

import contextlib
import io
import signal
import subprocess
import sys

import numpy as np
import pytest
import torch
from PIL import Image

from prodsc import read
from prodsc.cli import main
from prodsc.extract import SHORT_NAMES

PIXELS = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3), dtype=np.uint8)
EXPECTED = PIXELS.reshape(12, -1)[:, :4].astype(np.float32)


def prodsc(*words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), pytest.raises(SystemExit) as end:
        main([*map(str, words)])
    return subprocess.CompletedProcess(words, end.value.code, out.getvalue(), err.getvalue())


def sentence(done, code=1):
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.strip().splitlines()[-1]


@pytest.fixture
def tiny(monkeypatch):
    """An encoder 'tiny' of first pixels; `stop` holds how many batches to let through before Ctrl-C."""
    stop = []

    def embed(prepared):
        if stop and not stop[0]:
            stop.clear()
            signal.raise_signal(signal.SIGINT)
        if stop:
            stop[0] -= 1
        return torch.stack(prepared)

    def first(item):
        if isinstance(item, str):
            return torch.tensor([float(len(item))])
        return torch.from_numpy(np.array(item, dtype=np.float32)).flatten()[:4]

    monkeypatch.setitem(SHORT_NAMES, "tiny", (lambda request: (first, embed), ""))
    return stop


@pytest.fixture
def folder(tmp_path):
    for i, image in enumerate(PIXELS):
        path = tmp_path / "images" / "ab"[i // 6] / f"{i:02d}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(path)
    return tmp_path / "images"


@pytest.mark.usefixtures("tiny")
def test_a_folder_to_a_file_that_fit_can_read(folder, tmp_path):
    done = prodsc("extract", folder, "--encoder", "tiny", "-o", tmp_path / "f.npz", "--labels-from-folders")
    assert done.returncode == 0, done.stderr
    assert "12 rows x 4 (float32)" in done.stdout
    assert "2 classes" in done.stdout
    assert "encode 12/12" in done.stderr
    data = read(tmp_path / "f.npz")
    np.testing.assert_array_equal(data.X, EXPECTED)
    assert data.y.tolist() == [0] * 6 + [1] * 6


@pytest.mark.usefixtures("tiny")
def test_texts_and_quiet(tmp_path):
    (tmp_path / "t.csv").write_text("id,body\n1,abc\n2,de\n")
    options = "--column", "body", "--dtype", "float16", "--quiet"
    done = prodsc("extract", tmp_path / "t.csv", "--encoder", "tiny", "-o", tmp_path / "t.npy", *options)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert np.load(tmp_path / "t.npy").tolist() == [[3.0], [2.0]]


def test_ctrl_c_and_the_same_command_again(folder, tmp_path, tiny):
    command = "extract", folder, "--encoder", "tiny", "-o", tmp_path / "f.npy", "--batch-size", 5
    tiny.append(1)
    assert sentence(prodsc(*command), 130) == "prodsc: stopped at 5 of 12; continue with the same command."
    assert not (tmp_path / "f.npy").exists()
    assert prodsc(*command).returncode == 0
    np.testing.assert_array_equal(np.load(tmp_path / "f.npy"), EXPECTED)
    assert "--overwrite" in sentence(prodsc(*command))


@pytest.mark.usefixtures("tiny")
def test_bad_images_are_named_or_left_out_and_counted(folder, tmp_path):
    (folder / "a" / "03.png").write_text("broken")
    command = "extract", folder, "--encoder", "tiny", "-o", tmp_path / "f.npy"
    assert "03.png cannot be read as an image" in sentence(prodsc(*command))
    done = prodsc(*command, "--skip-bad")
    assert "11 rows x 4" in done.stdout
    assert "1 left out" in done.stdout
    assert "03.png" in done.stdout
    np.testing.assert_array_equal(np.load(tmp_path / "f.npy"), np.delete(EXPECTED, 3, 0))


def test_what_is_missing_is_said_in_one_sentence(folder, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    said = sentence(prodsc("extract", folder, "--encoder", "dino-b16", "-o", tmp_path / "f.npy"))
    assert said.startswith("prodsc: prodsc extract needs timm, which is not installed")
    assert "prodsc[features]" in said
    assert "did you mean 'dino-b16'" in sentence(
        prodsc("extract", folder, "--encoder", "dino-b-16", "-o", tmp_path / "f.npy")
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["images"]
