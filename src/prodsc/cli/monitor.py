"""prodsc monitor RUN FILE: do new rows still fit the model?"""

from pathlib import Path

import click

from prodsc import files
from prodsc.cli.choices import choice_for_run, choice_options
from prodsc.cli.output import echo
from prodsc.errors import OutputError, ParameterError
from prodsc.pro_dsc.estimator import PRODSC
from prodsc.pro_dsc.monitoring import Monitoring
from prodsc.pro_dsc.monitoring import monitor as compare
from prodsc.registry import load
from prodsc.report.monitor_page import write_monitor_page
from prodsc.sources.choice import ColumnChoice
from prodsc.sources.door import open_source

NUMBERS, PAGE = "monitor.json", "monitor.html"


@click.command()
@click.argument("run", type=click.Path(path_type=Path))
@click.argument("file", metavar="FILE|NAME")
@click.option("-o", "--out", type=click.Path(path_type=Path), help="Folder to write to; FILE's name by default.")
@click.option("--update", "updated", type=click.Path(path_type=Path), metavar="FOLDER",
              help="Add clusters for new kinds of rows, and save that model here.")  # fmt: skip
@click.option("--false-alarms", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.01,
              show_default=True, help="How often a batch of rows that fit may be an alarm.")  # fmt: skip
@click.option("--reference", metavar="FILE", help="Rows that are known to fit and were not part of the fit.")
@click.option("--overwrite", is_flag=True, help="Replace existing output.")
@choice_options
def monitor(
    choice: ColumnChoice,
    run: Path,
    file: str,
    out: Path | None,
    updated: Path | None,
    false_alarms: float,
    reference: str | None,
    overwrite: bool,
) -> None:
    """Compare the rows of FILE with those that the model in RUN was fitted on: do they still fit?

    Writes the numbers (monitor.json) and a page (monitor.html). The exit code is 0 if the rows fit and 3 if not, so
    that a scheduler can act on it.
    """
    folder = out or Path(f"{Path(file).stem}-monitor")
    for path in (folder / NUMBERS, folder / PAGE, *([updated] if updated else [])):
        if path.exists() and not overwrite:
            raise OutputError(f"{path} exists. Choose another folder with -o, or give --overwrite.")
    model = load(run)
    if not isinstance(model, PRODSC):
        raise ParameterError(f"monitor needs a model of PRO-DSC; {run} holds a {type(model).__name__}.")
    chosen, exclude = choice_for_run(choice, run)
    data = open_source(file, exclude=exclude, choice=chosen)
    known = None if reference is None else open_source(reference, exclude=exclude, choice=chosen)
    if updated is None:
        found = compare(model, data, false_alarms=false_alarms, reference=known)
    else:
        found = model.update(data, false_alarms=false_alarms, reference=known)
        model.save(updated)
    _write(folder, found, run, file)
    echo(found.summary())
    echo(f"numbers and page in {folder}: {NUMBERS}, {PAGE}", err=True)
    raise click.exceptions.Exit(3 if found.alarm else 0)


def _write(folder: Path, found: Monitoring, run: Path, file: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    files.write_json(folder / NUMBERS, {"run": str(run), "file": file, **found.to_json()})
    facts = {"model": str(run), "file": file, "rows": f"{found.n_rows:,}"}
    write_monitor_page(folder / PAGE, f"Do the rows of {Path(file).name} fit?", found, facts)
