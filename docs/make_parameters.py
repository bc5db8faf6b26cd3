"""Writes docs/parameters.md from the table of parameters: python docs/make_parameters.py"""

import inspect
from pathlib import Path
from textwrap import wrap

from prodsc.estimators.parameters import Parameter, defaults_of, find_parameter, parameters_of
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.pro_dsc.options import OPTION_GROUPS

PAGE = Path(__file__).parent / "parameters.md"
WIDTH = 98


def page() -> str:
    """The text of docs/parameters.md."""
    lines = [
        "# Parameters of PRODSC",
        "",
        "Recipes, `prodsc.make` and the command line use the same names without the groups:",
        '`beta = 200`, `make("pro-dsc", beta=200)`, `--beta 200` (dashes for underscores).',
        "In Python the rarely changed ones are fields of an option object:",
        '`PRODSC(10, loss=LossOptions(beta=200))` or `PRODSC(10, loss={"beta": 200})`.',
        "`python docs/make_parameters.py` makes this page; do not edit it by hand.",
        "",
        "## PRODSC",
        "",
    ]
    defaults = defaults_of(PRODSC)
    for name in inspect.signature(PRODSC).parameters:
        if name in OPTION_GROUPS:
            lines += [f"- `{name}`: {OPTION_GROUPS[name].__name__}, see below."]
        else:
            lines += entry(find_parameter(PRODSC, name), defaults[name])
    by_name = {parameter.name: parameter for parameter in parameters_of(PRODSC)}
    for group, cls in OPTION_GROUPS.items():
        summary = (inspect.getdoc(cls) or "").splitlines()[0]
        lines += ["", f"## {cls.__name__} (`{group}`)", "", summary, ""]
        for name in inspect.signature(cls).parameters:
            lines += entry(by_name[name], defaults[name])
    return "\n".join(lines) + "\n"


def entry(parameter: Parameter, default: object) -> list[str]:
    """One parameter as an item of a list."""
    text = f"- `{parameter.name}` (default `{default!r}`): {parameter.help}. Must be {parameter.rule}."
    return wrap(text, WIDTH, subsequent_indent="  ", break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
