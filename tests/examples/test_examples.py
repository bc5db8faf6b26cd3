"""Every example runs and ends in a page, or in labels."""

import importlib.util
import runpy
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
NEEDS = {"bertopic_pipeline": "bertopic"}
ENDS_IN = {"next_day": "tuesday_labels.csv"}
NAMES = sorted(path.stem for path in EXAMPLES.glob("*.py") if path.stem != "digits")  # `make demo` takes minutes


def test_there_are_ten():
    assert len(NAMES) == 10


@pytest.mark.parametrize("name", NAMES)
def test_an_example_ends_in_something_to_look_at(name, tmp_path, monkeypatch, capsys):
    library = NEEDS.get(name)
    if library is not None and importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed; `make test-peers` has it")
    monkeypatch.setattr(sys, "argv", [name, str(tmp_path)])
    runpy.run_path(str(EXAMPLES / f"{name}.py"), run_name="__main__")
    assert (tmp_path / ENDS_IN.get(name, "report.html")).stat().st_size > 500
    assert capsys.readouterr().out
