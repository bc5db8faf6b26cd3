"""One display of progress: lines in a log, bars in a terminal, silence where it was asked for."""

import io
import subprocess
import sys

import pytest
from rich.console import Console

from prodsc import progress
from prodsc.progress import ProgressDisplay, progress_bar, track


@pytest.fixture
def clock(monkeypatch):
    """Seconds that pass only when the test says so."""
    now = [100.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])

    def forward(seconds):
        now[0] += seconds

    return forward


def test_a_log_has_the_first_and_last_step_and_one_line_every_ten_seconds(clock, capsys):
    with ProgressDisplay() as display:
        for done in range(1, 101):
            display.update("joint", done, 100, f"loss {done}")
            clock(1)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "joint 1/100  loss 1"
    assert lines[1] == "joint 11/100  loss 11  89 s left"
    assert lines[-1] == "joint 100/100  loss 100"
    assert len(lines) == 11


def test_is_due_says_what_update_does(clock, capsys):
    display = ProgressDisplay()
    for name, done, total in [("a", 1, 9), ("a", 2, 9), ("b", 1, None), ("b", 5, None), ("a", 9, 9), ("a", 1, 9)]:
        due = display.is_due(name, done, total)
        display.update(name, done, total)
        assert due == bool(capsys.readouterr().err), (name, done)


def test_bytes_of_an_unknown_total(clock, capsys):
    ProgressDisplay(unit="bytes").update("x.zip", 1_500_000, None)
    assert capsys.readouterr().err == "x.zip 1.5 MB\n"


def test_a_display_that_is_not_enabled_shows_nothing(capsys):
    with progress_bar("convert", enabled=False) as update:
        assert update is None
    display = ProgressDisplay(enabled=False)
    display.update("a", 1, 1)
    assert not display.is_due("a", 1, 1)
    assert list(track(range(3), "rows", enabled=False)) == [0, 1, 2]
    assert capsys.readouterr().err == ""


def test_track_counts_items(capsys):
    assert list(track("abc", "letters")) == ["a", "b", "c"]
    assert capsys.readouterr().err.splitlines() == ["letters 1/3", "letters 3/3"]


def test_a_terminal_has_one_live_bar_for_each_task():
    out = io.StringIO()
    console = Console(file=out, force_terminal=True, width=100)
    with ProgressDisplay(console=console) as display:
        assert out.getvalue() == ""  # nothing before the first update
        display.update("convert", 5, 5)
        display.update("joint", 3, 20, "loss 0.5")
        display._bars.refresh()
    for text in ("convert", "5/5", "joint", "3/20", "loss 0.5"):
        assert text in out.getvalue()
    assert not display._bars.live.is_started


def test_without_rich_a_terminal_gets_lines():
    code = """
import sys
sys.modules["rich"] = None
sys.stderr.isatty = lambda: True
from prodsc.progress import progress_bar
with progress_bar("convert") as update:
    update(2, 2)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == "convert 2/2\n"
