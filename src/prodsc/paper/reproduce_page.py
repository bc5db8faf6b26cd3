"""The page of a table or figure of the paper: ours beside the published numbers, the pictures, what to know."""

from pathlib import Path
from typing import TYPE_CHECKING

from prodsc.report.page import Picture, Section, Table, component, write_page

if TYPE_CHECKING:
    from prodsc.paper.reproduce import Reproduction


def write_reproduce_page(path: Path, result: "Reproduction") -> None:
    from prodsc.paper.reproduce import SHOWN
    from prodsc.system import machine, versions

    experiment = result.plan.experiment
    failed = sum(bool(outcome.failed) for outcome in result.outcomes)
    facts = {
        "runs": str(len(result.outcomes)),
        "failed": str(failed),
        "in the paper": f"{experiment.kind} {experiment.number}",
    }
    table = Table("Ours beside the paper's; a note where they cannot be compared", SHOWN, result.cells())
    sections = [Section("numbers", "Numbers", result.lead(), [table])]
    pictures = [
        Picture(picture, picture.stem, "Also in this folder as SVG and PDF.")
        for picture in result.pictures
        if picture.suffix == ".png"
    ]
    if pictures:
        sections.insert(0, Section("pictures", "Pictures", "What to look for is written under each.", pictures))
    if remarks := result.remarks():
        sections.append(Section("remarks", "What to know", "", [component("remarks", remarks)]))
    here = {name: str(value) for name, value in machine().items()}
    command = f"prodsc reproduce {experiment.name}"
    made = component("made", command, [("Machine", here, True), ("Versions", versions(), False)])
    sections.append(Section("made", "How it was made", "Given again, the command goes on where it was.", [made]))
    write_page(path, title=experiment.title, facts=facts, sections=sections)
