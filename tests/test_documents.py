"""The README's Python runs, and the documents agree with the code."""

import inspect
import re
import tomllib
from pathlib import Path

import pytest

from prodsc import PRODSC
from prodsc.cli.options import HIDDEN, parameter_options
from prodsc.estimators.parameters import PARAMETER_BY_NAME, PARAMETERS, parameters_of
from prodsc.pro_dsc.document import page
from prodsc.registry import METHODS
from prodsc.runs.recipes import load_recipe, names

ROOT = Path(__file__).parents[1]


def test_the_readmes_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    assert blocks
    names: dict[str, object] = {}  # a reader runs one block after the other
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)


def test_estimator_table_options_and_recipe_keys_agree():
    signature = list(inspect.signature(PRODSC).parameters)
    assert [p.name for p in parameters_of(PRODSC)] == signature
    assert len(PARAMETER_BY_NAME) == len(PARAMETERS), "a name stands twice in the table"
    options = {option.name for option in parameter_options(lambda: None).__click_params__}
    assert options == set(signature) - set(HIDDEN)
    for name, default in PRODSC().get_params().items():
        PARAMETER_BY_NAME[name].check(default, "default")  # every default obeys its own rule


def test_every_parameter_is_documented():
    assert (ROOT / "docs" / "parameters.md").read_text() == page(), "run python -m prodsc.pro_dsc.document"


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_page(name):
    pages = {path: path.read_text() for path in ROOT.glob("docs/methods/*.md")}
    mine = [path for path, text in pages.items() if f"`{name}`" in text.splitlines()[0]]
    assert len(mine) == 1, "its name stands in the title of its page"
    for word in ("**When to use", "**Limits.**", "ost"):
        assert word in pages[mine[0]]


def test_links_in_the_documents_lead_somewhere():
    for document in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text()):
            assert (document.parent / target).exists(), f"{document.name} links to {target}"


@pytest.mark.parametrize("name", names())
def test_recipes_name_their_own_choices(name):
    recipe = load_recipe(name)
    assert set(recipe.ours) <= set(recipe.parameters)
    assert recipe.title
    assert recipe.source
    PRODSC(**recipe.parameters)


def test_the_constraint_is_inside_the_packages_own_range():
    requirement = next(
        d
        for d in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
        if d.startswith("torch")
    )
    pinned = re.search(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[1]
    assert requirement == "torch>=2.4"
    assert tuple(map(int, pinned.split(".")[:2])) >= (2, 4)


def test_the_pictures_of_the_documents_are_small():
    pictures = list((ROOT / "docs" / "images").glob("*.png"))
    assert pictures
    assert sum(picture.stat().st_size for picture in pictures) < 400_000
