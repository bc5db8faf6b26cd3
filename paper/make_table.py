"""`make paper`: write the comparison of paper.md from docs/choosing.csv."""

import re
import runpy
from pathlib import Path

HERE = Path(__file__).parent
PAPER = HERE / "paper.md"
BLOCK = re.compile(r"(<!-- begin table[^\n]*-->\n).*?(<!-- end table -->)", re.DOTALL)


def page(text: str) -> str:
    """The paper with its table made again."""
    choosing = runpy.run_path(str(HERE.parent / "benchmarks" / "choosing.py"))
    return BLOCK.sub(lambda found: f"{found[1]}{choosing['which_when']()}\n{found[2]}", text)


if __name__ == "__main__":
    PAPER.write_text(page(PAPER.read_text(encoding="utf-8")), encoding="utf-8")
