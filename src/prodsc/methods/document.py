"""Prints docs/parameters.md from the table: python -m prodsc.methods.document > docs/parameters.md"""

import inspect

from prodsc.methods import PRODSC
from prodsc.methods.parameters import parameters_of


def page() -> str:
    defaults = {name: p.default for name, p in inspect.signature(PRODSC).parameters.items()}
    lines = [
        "# Parameters",
        "",
        "The same names in Python, in recipes and on the command line (there with dashes: `--batch-size`).",
        "Made by `python -m prodsc.methods.document`; do not edit by hand.",
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
