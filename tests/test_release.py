"""What a release needs agrees with itself: versions, the API page, the tables that are made from measurements."""

import inspect
import json
import re
import runpy
import tomllib
from pathlib import Path

import pytest

import prodsc
from prodsc.registry import METHODS

ROOT = Path(__file__).parents[1]
API = (ROOT / "docs" / "api.rst").read_text(encoding="utf-8")


def test_every_document_has_the_same_version():
    assert f"\nversion: {prodsc.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    newest = re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), re.MULTILINE)[1]
    assert newest in ("Unreleased", prodsc.__version__)


def public_names() -> set[str]:
    """Functions and classes of `prodsc` and its public modules, by the name that the API page uses."""
    names = set()
    for name in prodsc.__all__:
        thing = getattr(prodsc, name)
        if name in ("export", "adapters"):
            names |= {f"prodsc.{name}.{part}" for part in thing.__all__}
        elif callable(thing):
            names.add(f"prodsc.{name}")
    return names


def test_the_api_page_lists_every_public_name():
    listed = set(re.findall(r"^   (prodsc\.\S+)$", API, re.MULTILINE))
    assert public_names() <= listed
    for cls in METHODS.values():
        assert {f"{cls.__module__}.{cls.__name__}", f"prodsc.{cls.__name__}"} & listed, cls.__name__


@pytest.mark.parametrize("name", sorted(set(re.findall(r"^   (prodsc\.\S+)$", API, re.MULTILINE))))
def test_names_on_the_api_page_exist_and_are_described(name):
    module, _, attribute = name.rpartition(".")
    thing = getattr(__import__(module, fromlist=[attribute]), attribute)
    assert inspect.getdoc(thing)


def test_every_page_of_the_site_is_in_a_menu():
    """Sphinx says the same, but `make test` does not need Sphinx."""
    pages = {path.relative_to(ROOT / "docs").with_suffix("") for path in (ROOT / "docs").rglob("*.md")}
    pages = {page for page in pages if page.parts[0] not in ("_build", "_generated", "gallery", "api")}
    listed = {Path("index")} | {page for page in pages if page.parts[0] == "notes"}  # the menu of notes is made
    for path in (ROOT / "docs").rglob("*.md"):
        for menu in re.findall(r"^```{toctree}\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE):
            entries = [re.sub(r".*<(.*)>", r"\1", line) for line in menu.splitlines() if line and line[0] != ":"]
            listed |= {(path.parent / entry).resolve().relative_to(ROOT / "docs") for entry in entries}
    assert pages <= listed


def test_the_lock_has_what_the_package_asks_for():
    locked = dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / "requirements-dev.lock").read_text(), re.MULTILINE))
    assert "+" not in locked["torch"], "the build of torch depends on the index"
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *project["optional-dependencies"]["dev"]]
    names = {re.match(r"[\w-]+", requirement)[0] for requirement in asked if "win32" not in requirement}
    assert {name.lower().replace("_", "-") for name in names} - {"prodsc"} <= set(locked)


# ---- tables and plots of measurements ----------------------------------------------------------------------


@pytest.fixture
def choosing(tmp_path):
    """benchmarks/choosing.py with a small file of its own."""
    lines = ["set,method,seed,ACC,NMI,ARI,CPU s"]
    for name, scores in {"k-means": (0.5, 0.3), "walk": (0.7, 0.9), "scan": (0.95,)}.items():
        for data, score in zip(("ORL", "Extended Yale B"), scores, strict=False):
            lines += [f"{data},{name},{seed},{score + 0.02 * seed},0,0,1" for seed in (0, 1)]
    (tmp_path / "choosing.csv").write_text("\n".join(lines) + "\n")
    module = runpy.run_path(str(ROOT / "benchmarks" / "choosing.py"))
    module["which_when"].__globals__["RESULTS"] = tmp_path / "choosing.csv"
    return module


def test_means_are_over_seeds_then_sets_of_methods_that_have_all(choosing):
    assert choosing["mean_scores"]("faces") == pytest.approx({"walk": 0.81, "k-means": 0.41})  # scan lacks a set


def test_the_short_table_names_the_best_methods(choosing):
    (line,) = [line for line in choosing["which_when"]().splitlines() if line.startswith("| faces")]
    assert line == "| faces | `walk` 81.0 | `k-means` 41.0 | 41.0 | - | ORL, Extended Yale B |"
    (other,) = [line for line in choosing["which_when"]().splitlines() if line.startswith("| tf-idf")]
    assert other == "| tf-idf of texts | - | - | - | - | Reuters tf-idf |"


def test_every_set_has_one_kind(choosing):
    kinds = [name for sets in choosing["KINDS"].values() for name in sets]
    assert sorted(kinds) == sorted(choosing["SETS"])


def test_the_table_of_the_paper_is_that_of_the_measurements():
    make = runpy.run_path(str(ROOT / "paper" / "make_table.py"))
    text = make["PAPER"].read_text(encoding="utf-8")
    assert make["page"](text) == text, "run `make paper`"


def test_the_paper_cites_what_its_bibliography_has():
    cited = set(re.findall(r"@(\w+)[];\s]", (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")))
    known = set(re.findall(r"^@\w+{(\w+),", (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8"), re.MULTILINE))
    assert cited == known


@pytest.fixture(scope="module")
def history():
    return runpy.run_path(str(ROOT / "benchmarks" / "history.py"))


@pytest.mark.parametrize(
    ("measured", "aim", "value"),
    [
        ("1.07x (warm-up 1.00x) of 1.41 s", "1.25x", 1.07),
        ("published schedule 181 s (from the time of its steps), ACC 0.840; ours 7 s, 24.3x", "5x", 24.3),
        ("61 s, ACC 100.0 (100,000 rows: 100.0)", "600 s on 2 cores", 61),
        ("1,427 MB resident (1257 private), 213 s", "under 2000 MB", 1427),
        ("-0.43 points: exact 98.62 in 60.6 s", "0.5 points", -0.43),
        ("0.4% (5.7% without reading ahead)", "under 5 % of its time", 0.4),
        ("3.3e-07 (one weight moved by 1e-7: 2.3e-07)", "1e-5", 3.3e-07),
        ("failed (exit code 1)", "5x", None),
    ],
)
def test_the_number_of_a_measurement_has_the_unit_of_its_aim(history, measured, aim, value):
    assert history["value_in"](measured, history["number_and_unit"](aim)[1]) == value


def test_a_measurement_is_kept_once(history, tmp_path):
    history["add"].__globals__["HISTORY"] = tmp_path / "history.json"
    kept = {"step": {"rows": [["step", "2x", "3x", True]], "when": "2026-01-01 00:00", "machine": "M"}}
    history["add"](history["entries_of"](kept, "abc"))
    history["add"](history["entries_of"](kept, "def"))
    (entry,) = json.loads((tmp_path / "history.json").read_text())
    assert (entry["value"], entry["aim"], entry["unit"]) == (2, 3, "x")
