"""Options that say which columns of FILE are what: the same for every command that reads rows."""

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any

import click

from prodsc.runs.run import columns_of_run
from prodsc.sources.choice import IMPUTE_WORDS, ColumnChoice

CHOICE_OPTIONS = ("id", "columns", "drop", "text", "impute")


def choice_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --id, --columns, --drop, --text and --impute as one argument `choice`."""

    @wraps(command)
    def with_choice(**options: Any) -> Any:
        given = {name: options.pop(f"choice_{name}") for name in CHOICE_OPTIONS}
        names = {name: words(given[name]) for name in ("columns", "drop", "text")}
        return command(choice=ColumnChoice.of(given["id"], **names, impute=given["impute"]), **options)

    several: Any = {"multiple": True, "metavar": "A,B,..."}
    for flag, settings in reversed(
        {
            "id": {"metavar": "NAME", "help": "The column with the name of each row."},
            "columns": {
                **several,
                "help": "Use only these columns as features; emb_* stands for several.",
            },
            "drop": {**several, "help": "Do not use these columns as features. The page still shows them."},
            "text": {**several, "help": "Columns of text: they name the clusters and are shown with each row."},
            "impute": {
                "type": click.Choice(IMPUTE_WORDS),
                "help": "Fill missing values with the median of their column, or drop rows that have any.",
            },
        }.items()
    ):
        with_choice = click.option(f"--{flag}", f"choice_{flag}", **settings)(with_choice)
    return with_choice


def words(given: tuple[str, ...]) -> list[str]:
    """Names separated by commas, from an option that may be repeated."""
    return [word.strip() for text in given for word in text.split(",") if word.strip()]


def choice_for_run(choice: ColumnChoice, run: Path) -> tuple[ColumnChoice, list[str]]:
    """The columns of a new file for a model: as they were at the fit, unless options say otherwise.

    Parameters
    ----------
    choice : ColumnChoice
        What the options say.
    run : Path
        The folder of the run.

    Returns
    -------
    choice : ColumnChoice
    exclude : list of str
        Columns of known labels at the fit, which are no features.
    """
    usual, exclude = columns_of_run(run)
    return choice.over(usual), exclude
