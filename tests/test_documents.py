"""The documents agree with the code: README's Python runs, names and links exist, the wording is plain."""

import ast
import importlib
import inspect
import os
import re
import runpy
import sys
import tomllib
from pathlib import Path
from types import FrameType

import click
import numpy as np
import pytest

import prodsc
from prodsc import PRODSC
from prodsc.cli import cli
from prodsc.cli.options import HIDDEN, parameter_options
from prodsc.estimators.parameters import PARAMETER_BY_NAME, PARAMETERS, parameters_of
from prodsc.registry import METHODS
from prodsc.runs.recipes import load_recipe, names

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "prodsc"
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")])
MAX_LINE = 100
PUBLIC_MODULES = {"metrics", "theory"}  # of prodsc itself
UNCLEAR_PHRASES = (  # figures of speech that a newcomer stumbles over
    "tells of", "tell of", "told by", "speaks for", "speak for", "has its say", "have their say", "but a few",
    "as ever", "hardly any", "rows enough", "in their midst", "settle",
)  # fmt: skip


def document_id(path: Path) -> str:
    return str(path.relative_to(ROOT))


each_document = pytest.mark.parametrize("document", DOCUMENTS, ids=document_id)


def fenced_blocks(text: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def without_fences(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.DOTALL | re.MULTILINE)


def code_spans(text: str) -> list[str]:
    return re.findall(r"`([^`\n]+)`", without_fences(text))


def heading_anchors(text: str) -> set[str]:
    """The anchors that GitHub gives to headings."""
    headings = re.findall(r"^#+ (.*)$", without_fences(text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", "-") for heading in headings}


# ---- README and parameters ---------------------------------------------------------------------------------


def test_the_readmes_python_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = fenced_blocks((ROOT / "README.md").read_text(), "python")
    assert blocks
    names: dict[str, object] = {}  # a reader runs one block after the other
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)


@pytest.mark.parametrize("path", sorted(ROOT.glob("examples/*.py")), ids=document_id)
def test_examples_use_names_that_exist(path):
    """Imports resolve and calls of our functions have only known keywords; running one takes a minute (`make demo`)."""
    names = runpy.run_path(str(path), run_name="not main")
    for call in [node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]:
        function = names.get(call.func.id) if isinstance(call.func, ast.Name) else None
        if getattr(function, "__module__", "").startswith("prodsc."):
            known = inspect.signature(function).parameters
            takes_any = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
            assert takes_any or {word.arg for word in call.keywords} <= set(known), function.__name__


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text().splitlines()) < 120


def test_estimator_table_options_and_recipe_keys_agree():
    parameters = {parameter.name: parameter for parameter in parameters_of(PRODSC)}
    assert sorted(parameters) == sorted(PRODSC().flat_params())
    assert len(PARAMETER_BY_NAME) == len(PARAMETERS), "a name stands twice in the table"
    options = {option.name for option in parameter_options(lambda: None).__click_params__ if not option.hidden}
    assert options == set(parameters) - set(HIDDEN)
    for name, default in PRODSC().flat_params().items():
        parameters[name].check(default, "default")  # every default obeys its own rule


def test_help_shows_every_parameter_with_type_default_and_meaning():
    for cls in [*METHODS.values(), *PRODSC.option_groups.values()]:
        section = inspect.getdoc(cls).partition("Parameters\n----------\n")[2].partition("\n\n")[0]
        for name, argument in inspect.signature(cls).parameters.items():
            assert f"\n{name} : " in f"\n{section}", f"{cls.__name__} does not document {name}"
            assert f"default={argument.default!r}" in section


def takes_arguments(thing):
    return any(name not in ("self", "cls") for name in inspect.signature(thing).parameters)


def public_functions():
    """Everything that `prodsc` offers, and the public methods of all estimators."""
    for name in prodsc.__all__:
        thing = getattr(prodsc, name)
        if inspect.ismodule(thing):
            yield from ((f"{name}.{part}", getattr(thing, part)) for part in getattr(thing, "__all__", ()))
        elif callable(thing):
            yield name, thing
    for cls in METHODS.values():
        for name, method in inspect.getmembers(cls, callable):
            if not name.startswith("_") and method.__module__.startswith("prodsc"):
                yield f"{cls.__name__}.{name}", method


def test_public_functions_describe_their_parameters():
    missing = [
        name
        for name, thing in public_functions()
        if callable(thing) and takes_arguments(thing) and "Parameters\n-----" not in (inspect.getdoc(thing) or "")
    ]
    assert not missing


def test_every_parameter_is_documented():
    make = runpy.run_path(str(ROOT / "docs" / "make_parameters.py"))
    assert (ROOT / "docs" / "parameters.md").read_text() == make["page"](), "run python docs/make_parameters.py"


@pytest.mark.parametrize("name", METHODS)
def test_every_method_has_a_page(name):
    pages = [path.read_text() for path in ROOT.glob("docs/methods/*.md")]
    mine = [text for text in pages if f"`{name}`" in text.splitlines()[0]]
    assert len(mine) == 1, "its name stands in the title of its page"
    for part in (r"^\*\*When to use (it|them)\.\*\* \w", r"^\*\*Limits\.\*\* \w", r"^## Cost\n\n\w"):
        assert re.search(part, mine[0], re.MULTILINE), f"the page of {name} lacks {part}"


# ---- form --------------------------------------------------------------------------------------------------


@each_document
def test_lines_are_short(document):
    lines = enumerate(document.read_text().splitlines(), 1)
    long = [number for number, line in lines if len(line) > MAX_LINE and not line.startswith("|")]  # not tables
    assert not long, f"lines {long} have more than {MAX_LINE} characters"


@each_document
def test_the_wording_is_plain(document):
    prose = re.sub(r"`[^`\n]+`", "", without_fences(document.read_text()))
    words = " ".join(prose.lower().split())
    assert [phrase for phrase in UNCLEAR_PHRASES if re.search(rf"\b{phrase}", words)] == []  # "has every" is plain


@each_document
def test_links_lead_somewhere(document):
    for link in re.findall(r"\]\(([^)\s]+)\)", without_fences(document.read_text())):
        if re.match(r"[a-z]+:", link):
            continue  # another site
        target, _, anchor = link.partition("#")
        path = document.parent / target if target else document
        assert path.exists(), f"{document.name} links to {link}"
        assert not anchor or anchor in heading_anchors(path.read_text()), f"{document.name} links to {link}"


@each_document
def test_python_blocks_parse_and_their_imports_exist(document):
    for block in fenced_blocks(document.read_text(), "python"):
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "prodsc":
                module = importlib.import_module(node.module)
                assert [alias.name for alias in node.names if not hasattr(module, alias.name)] == []


# ---- commands ----------------------------------------------------------------------------------------------


def commands(text: str) -> list[list[str]]:
    """The words of each prodsc command in console blocks, without comments; a backslash continues a line."""
    lines = "\n".join(fenced_blocks(text, "console")).replace("\\\n", " ").splitlines()
    found = [re.split(r"  +# ", line.removeprefix("$ "))[0].split() for line in lines if line.startswith("$ ")]
    launched = [words[words.index("prodsc") :] for words in found if "prodsc" in words]
    return [words for words in launched if len(words) > 1]


@each_document
def test_commands_and_their_options_exist(document):
    for words in commands(document.read_text()):
        command, rest = cli, words[1:]
        while isinstance(command, click.Group) and rest:
            found = command.get_command(click.Context(command), rest[0])
            assert found is not None, f"there is no command {' '.join(words)}"
            command, rest = found, rest[1:]
        options = {name for parameter in command.params for name in [*parameter.opts, *parameter.secondary_opts]}
        used = {word.split("=")[0] for word in rest if re.match(r"--?[a-z]", word)}
        assert used <= options, f"{' '.join(words)}: unknown {used - options}"


# ---- names of the code -------------------------------------------------------------------------------------


def resolve(name: str) -> object:
    """The module, class or function behind a dotted name inside the package."""
    first, *rest = name.split(".")
    found: object = getattr(prodsc, first) if first in prodsc.__all__ else importlib.import_module(f"prodsc.{first}")
    for part in rest:
        if not hasattr(found, part) and inspect.ismodule(found):
            importlib.import_module(f"{found.__name__}.{part}")
        found = getattr(found, part)
    return found


def packages() -> set[str]:
    return {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}


def dotted_names(text: str) -> set[str]:
    """Names such as core.losses.coding_rate or prodsc.ranks.join() in code spans."""
    spans = {span.removeprefix("prodsc.").removesuffix("()") for span in code_spans(text)}
    dotted = {span for span in spans if re.fullmatch(r"[a-z_]\w*(\.\w+)+", span)}
    return {
        span
        for span in dotted
        if span.split(".")[0] in packages() | PUBLIC_MODULES
        and not span.endswith((".py", ".csv", ".html", ".json", ".md"))
    }


@each_document
def test_dotted_names_of_the_code_exist(document):
    if document.name == "CHANGELOG.md":
        pytest.skip("it names what no longer exists")
    missing = []
    for name in sorted(dotted_names(document.read_text())):
        try:
            resolve(name)
        except (ImportError, AttributeError):
            missing.append(name)
    assert missing == []


@each_document
def test_paths_of_the_code_exist(document):
    spans = [span for span in code_spans(document.read_text()) if re.fullmatch(r"[\w./-]+\.(py|csv|toml)", span)]
    paths = [span for span in spans if span.split("/")[0] in packages() | {"src", "tests", "benchmarks", "examples"}]
    missing = [path for path in paths if not ((PACKAGE / path).exists() or (ROOT / path).exists())]
    assert missing == [] or document.name == "CHANGELOG.md"


ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text()


def test_the_architecture_is_two_pages():
    assert len(ARCHITECTURE.splitlines()) <= 120


def test_layers_name_every_module_and_package_once():
    (block,) = fenced_blocks(ARCHITECTURE, "layers")
    layers = block.split()
    assert len(layers) == len(set(layers))
    assert set(layers) == packages() - {"__init__", "__main__", "_version"}


def test_rooms_of_the_architecture_are_the_layers():
    (block,) = fenced_blocks(ARCHITECTURE, "layers")
    rooms = re.findall(r"^- \*\*([\w, ]+)\*\*:", ARCHITECTURE, re.MULTILINE)
    assert [word for room in rooms for word in room.split(", ")] == block.split()


def hops_of_the_walk() -> list[tuple[str, str, str]]:
    return re.findall(r"^\| (\d+) \| `([\w/]+\.py)` \| `([\w.]+)` \|", ARCHITECTURE, re.MULTILINE)


def test_the_walk_of_a_fit_names_files_and_functions_that_exist():
    hops = hops_of_the_walk()
    assert [int(number) for number, _, _ in hops] == list(range(1, len(hops) + 1))
    assert 6 <= len(hops) <= 12
    for _, file, function in hops:
        assert function in defined_in(PACKAGE / file), f"{file} has no {function}"


def test_the_walk_of_a_fit_is_in_the_order_in_which_it_runs(tmp_path, monkeypatch):
    np.save(tmp_path / "rows.npy", np.random.default_rng(0).normal(size=(60, 5)).astype(np.float32))
    monkeypatch.setattr("prodsc.runs.run.write_report", lambda *_, **__: None)  # not part of the walk, and slow
    calls: list[tuple[str, str]] = []
    package = f"{PACKAGE}{os.sep}"

    def record(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(package):
            calls.append((frame.f_code.co_filename.removeprefix(package), frame.f_code.co_qualname))

    options = ["-k", "3", "--epochs", "1", "--quiet", "--out", str(tmp_path / "run")]
    sys.setprofile(record)
    try:
        cli.main(["fit", str(tmp_path / "rows.npy"), *options], standalone_mode=False)
    finally:
        sys.setprofile(None)
    remaining = iter(calls)
    for number, file, function in hops_of_the_walk():
        assert (file.replace("/", os.sep), function) in remaining, (
            f"hop {number}, {file}: {function} does not run after the hops before it"
        )


def defined_in(path: Path) -> set[str]:
    """Functions, classes and methods (Class.method) of a module."""
    body = ast.parse(path.read_text()).body
    classes = [node for node in body if isinstance(node, ast.ClassDef)]
    methods = {f"{c.name}.{m.name}" for c in classes for m in c.body if isinstance(m, ast.FunctionDef)}
    return methods | {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}


# ---- recipes, requirements, pictures -----------------------------------------------------------------------


@pytest.mark.parametrize("name", names())
def test_recipes_name_their_own_choices(name):
    recipe = load_recipe(name)
    assert set(recipe.ours) <= set(recipe.parameters)
    assert recipe.title
    assert recipe.source
    PRODSC.from_flat(**recipe.parameters)


@pytest.mark.parametrize("name", names())
def test_the_documents_say_whether_a_recipe_is_published(name):
    text = (ROOT / "docs" / "reproduce.md").read_text()
    published, ours = text.partition("These recipes are ours")[::2]
    described = published if f"`{name}`" in published.partition("## Which recipes")[2] else ours
    assert f"`{name}`" in described
    schedule_is_ours = "learning_rate" in load_recipe(name).ours
    assert (described is ours) == schedule_is_ours


def test_the_constraint_is_inside_the_packages_own_range():
    requirement = next(
        d
        for d in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
        if d.startswith("torch")
    )
    pinned = re.search(r"^torch==(\S+)$", (ROOT / "constraints.txt").read_text(), re.MULTILINE)[1]
    lowest = re.fullmatch(r"torch>=([\d.]+)", requirement)[1]
    assert tuple(map(int, pinned.split(".")[:2])) >= tuple(map(int, lowest.split(".")[:2]))


@each_document
def test_extras_exist(document):
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    text = document.read_text()
    asked = re.findall(r"(?:prodsc|\.)\[([\w,-]+)\]'", text) + re.findall(r"extra `([\w-]+)`", text)
    assert {extra for names in asked for extra in names.split(",")} <= set(extras)


def test_the_pictures_of_the_documents_are_small():
    pictures = list((ROOT / "docs" / "images").glob("*.png"))
    assert pictures
    assert sum(picture.stat().st_size for picture in pictures) < 400_000
