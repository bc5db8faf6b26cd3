"""How a page of many fits was made: the command, the machine, the versions."""

from prodsc.report.page import PageSection, component
from prodsc.system import machine, versions


def provenance_section(command: str) -> PageSection:
    """The last section of a page."""
    facts = {name: str(value) for name, value in machine().items()}
    content = component("made", command, [("Machine", facts, True), ("Versions", versions(), False)])
    lead = "Run the same command again to continue where it stopped."
    return PageSection("made", "How it was made", lead, [content])
