"""prodsc fit FILE -k 10 --out run/: labels, a model, the numbers and a page to look at."""

import json
import shlex
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from prodsc import files, ranks
from prodsc.cli.choices import CHOICE_OPTIONS, choice_options
from prodsc.cli.grouped import GroupedCommand
from prodsc.cli.memory import memory_option
from prodsc.cli.options import given_parameters, parameter_options
from prodsc.cli.output import echo
from prodsc.cli.progress import shown
from prodsc.errors import ParameterError
from prodsc.progress import ProgressDisplay
from prodsc.runs.label_files import ENGINES
from prodsc.runs.recipes import load_recipe
from prodsc.runs.run import RESULT, FitRequest, FitResult, run
from prodsc.sources.choice import ColumnChoice
from prodsc.sources.door import canonical_name
from prodsc.training.progress import ProgressCallback

FIT_GROUPS = {
    "What to find": ("n_clusters", "noise", "recipe_name", "known_labels", "must_link", "cannot_link"),
    "Input": (*(f"choice_{name}" for name in CHOICE_OPTIONS), "labels", "scaling"),
    "Output": ("out", "overwrite", "resume", "report", "as_json", "quiet"),
    "Speed": (
        "quick",
        "device",
        "engine",
        "workers",
        "epochs",
        "batch_size",
        "max_landmarks",
        "precision",
        "random_state",
    ),
}


@click.command(cls=GroupedCommand, groups=FIT_GROUPS, others="Network, loss and labels (the paper's symbols)")
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.option("--out", type=click.Path(path_type=Path), help="Folder for the results; must not exist.")
@choice_options
@click.option("--labels", help="Known labels, only to score: an array or column of FILE, or another file.")
@click.option("--known-labels", help="Labels of a few rows, to learn from (-1: not known): as for --labels.")
@click.option("--must-link", metavar="FILE", help="Pairs of rows of one cluster: two row numbers in each line.")
@click.option("--cannot-link", metavar="FILE", help="Pairs of rows of different clusters.")
@click.option("--recipe", "recipe_name", metavar="NAME|FILE", help="Published parameters; see `prodsc recipes`.")
@click.option("--resume", type=click.Path(path_type=Path), help="Go on with an interrupted run in this folder.")
@click.option("--overwrite", is_flag=True, help="Replace the results in an existing --out.")
@click.option("--report/--no-report", default=True, help="Make report.html, or not; `prodsc report` makes it later.")
@click.option("--json", "as_json", is_flag=True, help="Print the summary as JSON.")
@click.option("--quick", is_flag=True, help="A first look in seconds: few training steps, and a page without theory.")
@click.option("--quiet", is_flag=True, help="No progress.")
@memory_option
@click.option("--engine", type=click.Choice(ENGINES), default="local", help="What runs the fit; ray needs its extra.")
@click.option("--workers", type=click.IntRange(1), default=1, help="Processes of --engine ray.")
@parameter_options
def fit(
    choice: ColumnChoice,
    file: Path | None,
    out: Path | None,
    labels: str | None,
    known_labels: str | None,
    must_link: str | None,
    cannot_link: str | None,
    recipe_name: str | None,
    resume: Path | None,
    overwrite: bool,
    report: bool,
    as_json: bool,
    quick: bool,
    quiet: bool,
    engine: str,
    workers: int,
    **given: Any,
) -> None:
    """Cluster the rows of FILE.

    FILE is a .npy, .npz, .pt, .safetensors, .parquet, .csv, .mat or .h5ad file, a folder of .npy or .parquet files, or
    a set of `prodsc data list`. The results in --out are labels.csv, the model, history.csv, result.json and
    report.html. Ctrl-C keeps a checkpoint; --resume continues from it.
    """
    chosen = given_parameters(given)
    if resume is not None:
        others = {"FILE": file, "out": out, "recipe": recipe_name, **choice.to_json()}
        extra = [*chosen, *(name for name, value in others.items() if value)]
        if extra:
            raise click.UsageError(f"--resume goes on with the run as it was; leave out {', '.join(extra)}.")
        request = FitRequest.read(resume)
    else:
        if file is None or out is None:
            missing = "a FILE to cluster" if file is None else "--out, a folder for the results"
            raise click.UsageError(f"fit needs {missing}.")
        recipe = load_recipe(recipe_name).parameters if recipe_name else {}
        parameters = recipe | chosen  # later layers win
        if "n_clusters" not in parameters:
            raise click.UsageError(
                "fit needs the number of clusters: -k NUMBER, or -k auto to estimate it (or a --recipe that has one)."
            )
        if parameters["n_clusters"] == 1:
            raise ParameterError("n_clusters=1 puts every row in one cluster. Ask for at least 2.")
        command = shlex.join(["prodsc", *sys.argv[1:]])
        source = Path(canonical_name(str(file)))
        known: dict[str, Any] = {"known_labels": known_labels, "must_link": must_link, "cannot_link": cannot_link}
        request = FitRequest(source, out, labels, parameters, recipe_name, command, choice=choice, quick=quick, **known)
        if ranks.first():
            request.prepare(overwrite)
    if shown(quiet):
        first = "; the number of clusters is estimated first" if request.parameters["n_clusters"] == "auto" else ""
        echo(f"reading {request.file}{first}", err=True)
    if engine == "ray":
        _fit_with_ray(replace(request, out=request.out.resolve()), workers, resume is not None, report, as_json)
        return
    with ProgressDisplay(shown(quiet)) as display:
        callbacks = [ProgressCallback(display)] if display.enabled else []
        more: Any = {"resume": resume is not None, "report": report, "page_progress": display.function("page")}
        result = run(request, callbacks, display.function("convert"), **more)
    if result is not None:
        echo(json.dumps(result.to_json()) if as_json else result.summary())


def _fit_with_ray(request: FitRequest, workers: int, resume: bool, report: bool, as_json: bool) -> None:
    """Fit in processes of Ray; they write the folder, from which the summary is read."""
    from prodsc.runs.ray_fit import fit_with_ray  # ray is an extra

    fit_with_ray(request, workers, resume=resume, report=report)
    result = files.read_json(request.out / RESULT)
    sizes, seconds, peak = result["clusters"]["sizes"], result["seconds"], result["peak_memory_mb"]
    found = FitResult(request.out, sizes, result["scores"], seconds, peak, result["notes"], verdict=result["verdict"])
    echo(json.dumps(found.to_json()) if as_json else found.summary())
