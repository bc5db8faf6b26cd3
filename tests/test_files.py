"""Files and folders are written whole or not at all, and what a killed writer left is cleaned up."""

import os
import subprocess
import sys

import pytest

from prodsc import files, manifest
from prodsc.errors import ModelFileError, OutputError


def tree(folder):
    return {str(p.relative_to(folder)): p.read_text() for p in sorted(folder.rglob("*")) if p.is_file()}


def test_an_interrupt_between_two_renames_loses_no_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(files, "_exchange", lambda a, b: False)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "old.txt").write_text("old")
    rename = os.rename

    def interrupted(a, b):
        rename(a, b)
        if str(b).endswith(".old"):
            raise KeyboardInterrupt

    monkeypatch.setattr(os, "rename", interrupted)
    with pytest.raises(KeyboardInterrupt), files.atomic_folder(tmp_path / "out") as part:
        (part / "new.txt").write_text("new")
    assert tree(tmp_path) == {"out/old.txt": "old"}


@pytest.mark.parametrize("exchange", [True, False])
def test_a_folder_is_replaced(tmp_path, monkeypatch, exchange):
    if not exchange:
        monkeypatch.setattr(files, "_exchange", lambda a, b: False)
    for word in ("old", "new"):
        with files.atomic_folder(tmp_path / "out") as part:
            (part / f"{word}.txt").write_text(word)
    assert tree(tmp_path) == {"out/new.txt": "new"}


def test_a_folder_lost_to_a_kill_between_two_renames_comes_back(tmp_path):
    left = tmp_path / ".out.abcd1234.old"
    left.mkdir()
    (left / "old.txt").write_text("old")
    with pytest.raises(RuntimeError), files.atomic_folder(tmp_path / "out"):
        raise RuntimeError
    assert tree(tmp_path) == {"out/old.txt": "old"}


def test_orphans_of_a_killed_writer_go_with_the_next_write_but_not_those_of_a_living_one(tmp_path):
    code = (
        "import os, signal, sys\nfrom prodsc import files\n"
        f"with files.atomic({str(tmp_path / 'a.txt')!r}) as part:\n    part.write_text('half')\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)
    assert len(list(tmp_path.glob(".a.txt.*.part"))) == 1
    (tmp_path / ".b.txt.abcd1234.part").write_text("of another file")
    with files.atomic(tmp_path / "a.txt") as mine:
        mine.write_text("first")
        files.write_text(tmp_path / "a.txt", "second")
        assert mine.exists()
    assert tree(tmp_path) == {"a.txt": "first", ".b.txt.abcd1234.part": "of another file"}


def test_files_that_belong_together_are_old_or_new(tmp_path, monkeypatch):
    """Killed after the manifest and before the renames: a reader finds the new files."""
    write(tmp_path, a="1", b="1")
    with monkeypatch.context() as patch:
        patch.setattr(manifest, "recover", lambda folder: None)
        write(tmp_path, a="2", b="2")
    assert (tmp_path / "a").read_text() == "1"
    assert manifest.verified(tmp_path, "a").read_text() == "2"
    assert (tmp_path / "a").read_text() == "2", "a reader finishes what the writer has begun"
    manifest.recover(tmp_path)
    assert [(tmp_path / name).read_text() for name in "ab"] == ["2", "2"]
    assert {p.name for p in tmp_path.iterdir()} == {"a", "b", "manifest.json"}


def write(folder, removing=(), **contents):
    with manifest.replaced(folder, removing) as path_of:
        for name, content in contents.items():
            path_of(name).write_text(content)


def test_only_our_own_files_leave(tmp_path):
    write(tmp_path, a="1", b="1")
    (tmp_path / "user.txt").write_text("mine")
    write(tmp_path, removing=["a", "b"], c="2")
    assert {p.name for p in tmp_path.iterdir()} == {"c", "manifest.json", "user.txt"}


def test_a_manifest_says_which_file_is_damaged(tmp_path):
    assert manifest.verified(tmp_path, "a") == tmp_path / "a"  # no manifest, no claim
    write(tmp_path, a="1", b="1")
    (tmp_path / "b").write_text("2")
    with pytest.raises(ModelFileError, match=r"/b does not match its digest in manifest\.json"):
        manifest.verified(tmp_path, "b")
    (tmp_path / "b").unlink()
    with pytest.raises(ModelFileError, match="/b is missing"):
        manifest.verified(tmp_path, "b")
    for content in ("", "[]", "{", '{"format": "prodsc-manifest"}', "[" * 100_000):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(ModelFileError, match=r"manifest\.json is damaged"):
            manifest.verified(tmp_path, "a")
    (tmp_path / "manifest.json").write_text('{"format": "of a browser extension"}')
    with pytest.raises(OutputError, match="not a manifest of prodsc"):
        write(tmp_path, a="2")


def test_a_manifest_cannot_reach_out_of_its_folder(tmp_path):
    (tmp_path / "user.txt").write_text("mine")
    folder = tmp_path / "run"
    write(folder, a="1")
    content = files.read_json(folder / "manifest.json") | {"leaving": ["../user.txt"]}
    files.write_json(folder / "manifest.json", content)
    with pytest.raises(OutputError, match="another folder"):
        write(folder, b="2")
    assert (tmp_path / "user.txt").exists()
