"""prodsc diagnose RUN FILE: is the fit sound?"""

from pathlib import Path

import click
from rich.console import Console
from rich.table import Table

from prodsc.cli.choices import choice_for_run, choice_options
from prodsc.pro_dsc.diagnosis import diagnose as measure
from prodsc.registry import load
from prodsc.sources.choice import ColumnChoice
from prodsc.sources.door import open_source

COLOURS = {"healthy": "green", "supported": "green", "weak": "yellow", "collapsing": "yellow", "told": "default"}


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", metavar="FILE|NAME")
@choice_options
def diagnose(choice: ColumnChoice, run: Path, file: str) -> None:
    """Say whether the fit in RUN can be trusted, by the rows of FILE.

    Three answers: has the representation collapsed, are the labels supported by the data, and does a simpler method
    see the same or better?

    FILE may be the name of a data set (`prodsc data list`).
    """
    chosen, exclude = choice_for_run(choice, run)
    diagnosis = measure(load(run), open_source(file, exclude=exclude, choice=chosen))
    console = Console()
    table = Table("number", "value", "expected", "meaning", box=None, pad_edge=False)
    for finding in diagnosis.findings:
        table.add_row(finding.name, f"{finding.value:.4g}", finding.expected, finding.meaning)
    for sentence, word in diagnosis.judged():
        question, answer = sentence.split(": ", 1)
        console.print(f"[bold {COLOURS.get(word, 'red')}]{question}[/]: {answer}")
    console.print()
    console.print(table)
