"""Prints docs/parameters.md from the table: python -m prodsc.pro_dsc.document > docs/parameters.md"""

import inspect

from prodsc.estimators.parameters import parameters_of
from prodsc.pro_dsc.estimator import PRODSC


def page() -> str:
    defaults = {name: p.default for name, p in inspect.signature(PRODSC).parameters.items()}
    lines = [
        "# Parameters",
        "",
        "The same names in Python, in recipes and on the command line (there with dashes: `--batch-size`).",
        "Made by `python -m prodsc.pro_dsc.document`; do not edit by hand.",
        "",
        "| name | default | must be | what it is |",
        "|---|---|---|---|",
    ]
    for p in parameters_of(PRODSC):
        lines.append(
            f"| `{p.name}` | `{defaults[p.name]!r}` | {p.rule} | {p.help} |".replace("|YY'|", "&#124;YY'&#124;")
        )
    return "\n".join(lines).replace("|S|", "&#124;S&#124;") + "\n"


if __name__ == "__main__":
    print(page(), end="")
