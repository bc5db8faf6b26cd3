"""The rooms of the package: imports point only downwards, in the order that ARCHITECTURE.md lists, without cycles."""

import ast
import re
import subprocess
import sys
from enum import Enum
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "prodsc"


class Kind(Enum):
    """When an import is executed."""

    MODULE = "when the module is imported"
    LAZY = "inside a function"
    TYPES = "by a type checker only"


def layers() -> list[list[str]]:
    """The fenced block `layers` of ARCHITECTURE.md: one layer per line, lowest first."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    block = re.search(r"^```layers\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
    assert block is not None, "ARCHITECTURE.md has no fenced block ```layers"
    return [line.replace(",", " ").split() for line in block[1].splitlines() if line.strip()]


def module_name(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(SOURCE.rglob("*.py")) if path.name != "_version.py"}


def imports_of(name: str, path: Path) -> list[tuple[str, Kind]]:
    """Modules of the package that a module imports, and when."""
    imported: list[tuple[str, Kind]] = []

    def visit(node: ast.AST, kind: Kind) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.Import):
                imported.extend((alias.name, kind) for alias in child.names)
            elif isinstance(child, ast.ImportFrom):
                assert child.level == 0, f"{name}: relative imports hide where a name comes from"
                for alias in child.names:  # a name of a package is a module, or something in its __init__
                    inner = f"{child.module}.{alias.name}"
                    imported.append((inner if inner in MODULES else str(child.module), kind))
            elif isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
                visit(child, Kind.TYPES)
            elif isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                visit(child, Kind.LAZY if kind is Kind.MODULE else kind)
            else:
                visit(child, kind)

    visit(ast.parse(path.read_text(encoding="utf-8")), Kind.MODULE)
    return [(module, kind) for module, kind in imported if module in MODULES and module != name]


GRAPH = {name: imports_of(name, path) for name, path in MODULES.items()}


def layer_of(module: str) -> int | None:
    """The number of a module's layer; None for the package itself, which names what users import."""
    if module in ("prodsc", "prodsc.__main__"):
        return None
    room = module.split(".")[1]
    numbers = [i for i, rooms in enumerate(layers()) if room in rooms]
    assert len(numbers) == 1, f"{module}: '{room}' must be in one layer of ARCHITECTURE.md, it is in {len(numbers)}"
    return numbers[0]


@pytest.mark.parametrize("kind", Kind)
def test_imports_point_downwards(kind):
    upwards = []
    for module, imported in GRAPH.items():
        own = layer_of(module)
        if own is None:
            continue
        for target, when in imported:
            other = layer_of(target)
            if when is kind and (len(layers()) if other is None else other) > own:
                upwards.append(f"{module} -> {target}")
    assert not upwards, f"imports that point upwards, {kind.value}: {upwards}"


def test_every_layer_exists():
    rooms = {name.split(".")[1] for name in MODULES if "." in name}
    listed = [room for layer in layers() for room in layer]
    assert len(listed) == len(set(listed))
    assert rooms - {"__main__"} == set(listed)


def test_no_import_cycles():
    """Between modules, with imports inside functions counted; a package's own __init__ may gather its modules."""
    edges = {
        name: {target for target, when in imported if when is not Kind.TYPES and layer_of(name) is not None}
        for name, imported in GRAPH.items()
    }
    assert not strongly_connected(edges)


def strongly_connected(edges: dict[str, set[str]]) -> list[list[str]]:
    """Groups of modules that import each other, by repeated removal of modules without imports or importers."""
    left = dict(edges)
    while True:
        kept = {
            name: {target for target in targets if target in left}
            for name, targets in left.items()
            if any(target in left for target in targets) and any(name in targets for targets in left.values())
        }
        if kept == left:
            return [[name, *sorted(targets)] for name, targets in left.items()]
        left = kept


def test_cycles_are_found():
    assert strongly_connected({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": set()}) == [["b", "c"], ["c", "b"]]
    assert strongly_connected({"a": {"b", "c"}, "b": {"c"}, "c": set()}) == []


ESTIMATORS = ["prodsc.pro_dsc.estimator", "prodsc.registry", *(m for m in MODULES if m.startswith("prodsc.baselines."))]
HEAVY = ("paper", "bench", "runs", "report", "export", "cli")
LIBRARIES = ("matplotlib", "rich", "click", "jinja2")


def test_estimators_load_nothing_of_reports_commands_and_paper():
    code = (
        "import sys\n"
        f"sys.modules.update(dict.fromkeys({LIBRARIES!r}))\n"  # None: an import of one of them fails
        f"for name in {ESTIMATORS!r}: __import__(name)\n"
        "print(*sys.modules)"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not [name for name in loaded if name.startswith(tuple(f"prodsc.{room}" for room in HEAVY))]
