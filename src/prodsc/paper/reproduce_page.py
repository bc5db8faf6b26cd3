"""The page of a table or figure of the paper: our numbers beside the published ones, figures, remarks."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prodsc.bench.provenance import provenance_section
from prodsc.report.page import PageFigure, PageSection, PageTable, component, write_page

if TYPE_CHECKING:
    from prodsc.paper.reproduce import Reproduction


def write_reproduce_page(path: Path, result: "Reproduction", columns: Sequence[str]) -> None:
    """Write the page; `columns` are the names above `result.cells()`."""
    experiment = result.plan.experiment
    facts = {
        "runs": str(len(result.outcomes)),
        "failed": str(sum(not outcome.finished for outcome in result.outcomes)),
        "in the paper": f"{experiment.kind} {experiment.number}",
    }
    table = PageTable("Ours beside the paper's; a note where they cannot be compared", columns, result.cells())
    sections = [PageSection("numbers", "Numbers", result.lead(), [table])]
    figures = [
        PageFigure(figure, figure.stem, "Also in this folder as SVG and PDF.")
        for figure in result.figures
        if figure.suffix == ".png"
    ]
    if figures:
        sections.insert(0, PageSection("pictures", "Pictures", "What to look for is written under each.", figures))
    if remarks := result.remarks():
        sections.append(PageSection("remarks", "What to know", "", [component("remarks", remarks)]))
    sections.append(provenance_section(f"prodsc reproduce {experiment.name}"))
    write_page(path, title=experiment.title, facts=facts, sections=sections)
