"""Recipes: the parameters of a published run, one TOML file each. Defaults < recipe < command line."""

import tomllib
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from prodsc import files
from prodsc.errors import RecipeError, did_you_mean, reason_of
from prodsc.estimators.parameters import check_parameters, current_names, parameters_of
from prodsc.pro_dsc.estimator import PRODSC

ABOUT_KEYS = ("title", "data", "source", "ours", "notes")


@dataclass(frozen=True)
class Recipe:
    name: str
    title: str
    data: str  # what the recipe expects to be given
    source: str  # where the values are published
    parameters: dict[str, Any]
    ours: tuple[str, ...] = ()  # parameters that are not published but chosen by us (docs/reproduce.md)
    notes: str = ""
    origin: str = field(default="", compare=False)


def names() -> list[str]:
    """The recipes that ship with prodsc."""
    return sorted(entry.name.removesuffix(".toml") for entry in _folder().iterdir() if entry.name.endswith(".toml"))


def load_recipe(name: str) -> Recipe:
    """A recipe by its name, or from a TOML file of your own."""
    if name in names():
        return parse(name, (_folder() / f"{name}.toml").read_text(encoding="utf-8"), f"recipes/{name}.toml")
    path = Path(name)
    if path.suffix != ".toml":
        raise RecipeError(
            f"there is no recipe '{name}'{did_you_mean(name, names()) or '.'} Known: {', '.join(names())}; "
            "or name a .toml file."
        )
    try:
        return parse(path.stem, files.regular(path).read_text(encoding="utf-8"), str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise RecipeError(f"cannot read the recipe {path}: {reason_of(error)}.") from error


def parse(name: str, text: str, origin: str) -> Recipe:
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # such as a date of the 40th of May, or a thousand brackets
        raise RecipeError(f"{origin}: not valid TOML ({reason_of(error)}).") from error
    about, parameters = content.pop("about", {}), content.pop("parameters", {})
    if content:
        key = next(iter(content))
        raise RecipeError(
            f"{origin}: unknown section or key '{key}' at the top{did_you_mean(key, ['about', 'parameters'])} "
            "Put parameters under [parameters]."
        )
    for section, held in (("about", about), ("parameters", parameters)):
        if not isinstance(held, dict):
            raise RecipeError(f"{origin}: '{section}' must be a section with keys, not {held!r}; write [{section}].")
    _known(about, ABOUT_KEYS, origin)
    ours = about.get("ours", [])
    if not isinstance(ours, list) or any(not isinstance(value, str) for key, value in about.items() if key != "ours"):
        raise RecipeError(f"{origin}: the keys of [about] must be text, and 'ours' a list of names.")
    parameters = current_names(parameters, origin)
    _known(parameters, tuple(p.name for p in parameters_of(PRODSC)), origin)
    check_parameters(PRODSC, parameters, origin, RecipeError)
    return Recipe(
        name,
        about.get("title", name),
        about.get("data", ""),
        about.get("source", ""),
        parameters,
        tuple(ours),
        about.get("notes", ""),
        origin,
    )


def _known(table: dict[str, Any], known: tuple[str, ...], origin: str) -> None:
    for key in table:
        if key not in known:
            raise RecipeError(f"{origin}: unknown key '{key}'{did_you_mean(key, known) or '; see prodsc fit --help.'}")


def _folder() -> Any:
    return resources.files("prodsc.runs") / "recipe_files"
