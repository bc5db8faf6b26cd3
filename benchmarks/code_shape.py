"""The shape of a source tree as one table: size, functions, names, imports, documentation.

    python benchmarks/code_shape.py [TREE ...]

TREE is a checkout with src/prodsc; several trees become several columns. Nothing of a tree is imported but to measure
its import, which runs in a process of its own.
"""

import ast
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

NUMERIC_CONSTANT = re.compile(r"^[A-Z][A-Z_0-9]*( *, *[A-Z_0-9]+)* *(: *[^=]+)?= *[-0-9(]")
Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Tree:
    """A checkout."""

    root: Path

    @cached_property
    def texts(self) -> dict[str, str]:
        """Source by module name."""
        source = self.root / "src"
        return {
            ".".join(path.relative_to(source).with_suffix("").parts).removesuffix(".__init__"): path.read_text("utf-8")
            for path in sorted((source / "prodsc").rglob("*.py"))
        }

    @cached_property
    def modules(self) -> dict[str, ast.Module]:
        return {name: ast.parse(text) for name, text in self.texts.items()}

    @cached_property
    def functions(self) -> list[Function]:
        """All functions and methods."""
        return [n for module in self.modules.values() for n in ast.walk(module) if isinstance(n, Function)]

    # ---- rows of the table ------------------------------------------------------------------------------------------

    def n_lines(self) -> int:
        return sum(text.count("\n") for text in self.texts.values())

    def n_long_functions(self, limit: int = 50) -> int:
        """Functions with more than `limit` lines, their docstrings not counted."""
        return sum(n_code_lines(function) > limit for function in self.functions)

    def median_length(self) -> float:
        return statistics.median(map(n_code_lines, self.functions))

    def n_parameters(self, name: str = "PRODSC") -> int:
        """Parameters of a class, without self."""
        for module in self.modules.values():
            for node in module.body:
                if isinstance(node, ast.ClassDef) and node.name == name:
                    init = next(n for n in node.body if isinstance(n, Function) and n.name == "__init__")
                    return len(init.args.args) + len(init.args.kwonlyargs) - 1
        return 0

    def n_numeric_constants(self) -> int:
        lines = [line for text in self.texts.values() for line in text.splitlines()]
        return sum(bool(NUMERIC_CONSTANT.match(line) and re.search(r"=.*\d", line)) for line in lines)

    def ambiguous_names(self) -> list[str]:
        """Public names of classes and aliases that several modules define."""
        where: dict[str, list[str]] = {}
        for module, tree in self.modules.items():
            for name in set(defined_names(tree)):
                where.setdefault(name, []).append(module)
        return sorted(name for name, modules in where.items() if len(modules) > 1)

    def n_modules_in_cycles(self) -> int:
        """Modules that import each other, also by imports inside functions."""
        edges = {
            name: {target for target in imports_of(tree, set(self.modules)) if target != name}
            for name, tree in self.modules.items()
            if name not in ("prodsc", "prodsc.__main__")
        }
        while True:
            kept = {
                name: {target for target in targets if target in edges}
                for name, targets in edges.items()
                if any(target in edges for target in targets) and any(name in others for others in edges.values())
            }
            if kept == edges:
                return len(kept)
            edges = kept

    def longest_markdown_line(self) -> int:
        """In README.md and its siblings, and in docs."""
        pages = [*self.root.glob("*.md"), *(self.root / "docs").rglob("*.md")]
        return max(len(line) for page in pages for line in page.read_text("utf-8").splitlines())

    def share_documented(self) -> float:
        """Public functions, methods and classes that take parameters and have a Parameters section.

        Estimators may get theirs from the table of parameters when they are imported.
        """
        generated = any("document_parameters" in text for text in self.texts.values())
        documented = [
            has_parameter_section(node) or (generated and is_estimator(node, parameters))
            for module in self.modules.values()
            for node, parameters in public_definitions(module)
            if parameters
        ]
        return sum(documented) / max(1, len(documented))

    def n_any(self) -> int:
        return sum(len(re.findall(r"\bAny\b", text)) for text in self.texts.values())

    def import_cost(self, module: str = "prodsc", repeats: int = 5) -> tuple[float, int]:
        """Seconds of `import prodsc` over those of `import numpy`, the fastest of several, and modules loaded."""
        seconds = {name: min(self._seconds(name) for _ in range(repeats)) for name in (module, "numpy")}
        return seconds[module] / seconds["numpy"], int(self._run(f"import sys, {module}; print(len(sys.modules))"))

    def _seconds(self, module: str) -> float:
        return float(
            self._run(f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)")
        )

    def _run(self, code: str) -> str:
        environment = os.environ | {"PYTHONPATH": str((self.root / "src").resolve())}
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
        return done.stdout

    def rows(self) -> dict[str, str]:
        ratio, loaded = self.import_cost()
        names = self.ambiguous_names()
        return {
            "modules": str(len(self.modules)),
            "lines": f"{self.n_lines():,}",
            "functions": f"{len(self.functions):,}",
            "median lines of a function": f"{self.median_length():g}",
            "functions over 50 lines": str(self.n_long_functions()),
            "parameters of PRODSC": str(self.n_parameters()),
            "numeric module constants": str(self.n_numeric_constants()),
            "names defined in several modules": f"{len(names)}",
            "modules in import cycles": str(self.n_modules_in_cycles()),
            "import prodsc / import numpy": f"{ratio:.1f}",
            "modules loaded by import prodsc": str(loaded),
            "longest Markdown line": str(self.longest_markdown_line()),
            "public definitions with Parameters": f"{self.share_documented():.0%}",
            "uses of Any": str(self.n_any()),
        }


def n_code_lines(function: Function) -> int:
    """Lines of a function without its docstring."""
    total = (function.end_lineno or function.lineno) - function.lineno + 1
    first = function.body[0]
    if ast.get_docstring(function, clean=False) is not None:
        total -= (first.end_lineno or first.lineno) - first.lineno + 1
    return total


def defined_names(module: ast.Module) -> Iterator[str]:
    """Public classes and upper-case or CapWords aliases of a module."""
    for node in module.body:
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            yield node.name
        if isinstance(node, ast.Assign):
            yield from (t.id for t in node.targets if isinstance(t, ast.Name) and t.id[0].isupper())
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.target.id[0].isupper():
            yield node.target.id


def imports_of(module: ast.Module, known: set[str]) -> Iterator[str]:
    """Modules of the package that a module imports at any time, but for type checkers only."""

    def visit(node: ast.AST) -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.If) and ast.unparse(child.test).endswith("TYPE_CHECKING"):
                for other in child.orelse:
                    yield from visit(other)
            elif isinstance(child, ast.Import):
                yield from (alias.name for alias in child.names if alias.name in known)
            elif isinstance(child, ast.ImportFrom):
                inner = [f"{child.module}.{alias.name}" for alias in child.names]
                yield from (name if name in known else str(child.module) for name in inner)
            else:
                yield from visit(child)

    return (name for name in visit(module) if name in known)


def public_definitions(module: ast.Module) -> Iterator[tuple[ast.AST, list[str]]]:
    """Public functions, classes and methods, with their parameters."""
    for node in module.body:
        if isinstance(node, Function) and not node.name.startswith("_"):
            yield node, parameter_names(node)
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
            methods = [n for n in node.body if isinstance(n, Function)]
            yield node, next((parameter_names(n)[1:] for n in methods if n.name == "__init__"), [])
            yield from ((n, parameter_names(n)[1:]) for n in methods if not n.name.startswith("_"))


def parameter_names(function: Function) -> list[str]:
    arguments = function.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def has_parameter_section(node: ast.AST) -> bool:
    """Has the docstring a numpydoc section of parameters?"""
    assert isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
    section = re.compile(r"^\s*Parameters\n\s*-{3,}", flags=re.MULTILINE)
    return section.search(ast.get_docstring(node) or "") is not None


def is_estimator(node: ast.AST, parameters: list[str]) -> bool:
    return isinstance(node, ast.ClassDef) and {"n_clusters", "random_state"} <= set(parameters)


def main(paths: list[str]) -> None:
    trees = {path: Tree(Path(path)) for path in paths or ["."]}
    columns = [tree.rows() for tree in trees.values()]
    print("| | " + " | ".join(trees) + " |")
    print("|---|" + "---:|" * len(trees))
    for name in columns[0]:
        print(f"| {name} | " + " | ".join(rows[name] for rows in columns) + " |")
    for path, tree in trees.items():
        print(f"\nNames defined in several modules of {path}: {', '.join(tree.ambiguous_names()) or 'none'}.")


if __name__ == "__main__":
    main(sys.argv[1:])
