"""The command line: one thin file per command. Errors a user can cause become one sentence and a non-zero exit.

A command's module is imported when the command is called, so `prodsc --help` is quick.
"""

import io
import os
import sys
import warnings
from importlib import import_module

from prodsc import ranks
from prodsc._version import __version__
from prodsc.errors import EXTRA_OF, Interrupted, MissingExtraError, ProdscError, require, visible
from prodsc.memory import is_out_of_memory, limit_sentence

try:
    import click
except ImportError as error:
    raise MissingExtraError(
        "the command line needs click, which is not installed; install it with: pip install 'prodsc[cli]'"
    ) from error

COMMANDS = {
    "fit": "Cluster the rows of FILE.",
    "predict": "Label the rows of FILE with the model in RUN: row, label, confidence, outlier score.",
    "diagnose": "Say whether the fit in RUN can be trusted, by the rows of FILE.",
    "monitor": "Compare the rows of FILE with those that the model in RUN was fitted on: do they still fit?",
    "k": "Estimate the number of clusters of FILE (or a set of `prodsc data list`) without fitting a model.",
    "recipes": "List the recipes, or show one of them.",
    "data": "Named data sets: which there are, where they are, how to get them.",
    "extract": "Encode IMAGES or TEXTS with a pre-trained encoder, one row of features each.",
    "compare": "Compare methods on FILE (or a set of `prodsc data list`): mean and std over seeds, failures shown.",
    "tune": "Search the settings of PRO-DSC on FILE (or a set of `prodsc data list`) by a score that needs no labels.",
    "reproduce": "Run the table or figure NAME of the paper; without NAME, list them.",
    "report": "Make RUN/report.html again: the map, the clusters, the diagnosis, the scores and how it was made.",
    "export": "Take the results of the run in RUN elsewhere: --table, --folders, --card, --atlas, --onnx, or several.",
    "figure": "Draw the figure NAME of the run in RUN; without NAME, list them.",
    "launch": "Run a prodsc command on several processes.",
}  # the first sentence of each command's help; its module has its name


COMMAND_GROUPS = {
    "Cluster and label": ("fit", "predict", "monitor", "k", "extract"),
    "Look and take along": ("report", "export", "figure", "diagnose"),
    "Compare and search": ("compare", "tune", "recipes", "reproduce"),
    "Data and machines": ("data", "launch"),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are called; its help is made from `COMMANDS`."""

    def list_commands(self, ctx: click.Context | None) -> list[str]:
        """Names of the commands, in the order of `COMMANDS`."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context | None, name: str) -> click.Command | None:
        """Import one command; None if there is no command of this name."""
        if name not in COMMANDS:
            return None
        require("rich", extra="cli", caller="the command line")
        command = getattr(import_module(f"prodsc.cli.{name}"), name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands without importing them, by what they are for."""
        for heading, names in COMMAND_GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, COMMANDS[name]) for name in names])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="prodsc")
def cli() -> None:
    """Cluster a feature matrix with PRO-DSC, label new rows with the model it learns."""


def main(words: list[str] | None = None) -> None:
    """Run the command line; exits.

    Parameters
    ----------
    words : list of str, optional
        The arguments; those of the process by default.
    """
    try:
        ranks.join()
        with warnings.catch_warnings():
            warnings.showwarning = _print_warning
            code = cli.main(words, prog_name="prodsc", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        if ranks.claim_error_report():
            text = io.StringIO()
            error.show(text)
            click.echo(visible(text.getvalue(), keep="\n"), err=True, nl=False)
        sys.exit(error.exit_code)
    except ProdscError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        library = (error.name or "").split(".")[0]
        if library not in EXTRA_OF:
            raise
        _fail(
            f"this command needs {library}, which is not installed; "
            f"install it with: pip install 'prodsc[{EXTRA_OF[library]}]'"
        )
    except (click.Abort, KeyboardInterrupt) as error:
        stop = error.__cause__ if isinstance(error, click.Abort) else error  # click turns the one into the other
        _fail(str(stop) if isinstance(stop, Interrupted) else "interrupted.", code=130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output went away
        sys.exit(1)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        _fail(limit_sentence())
    except OSError as error:
        _fail(f"{error.filename or 'the system'}: {error.strerror or error}.")


def _fail(sentence: str, code: int = 1) -> None:
    if ranks.claim_error_report():
        click.echo(f"prodsc: {visible(sentence)}", err=True)
    sys.exit(code)


def _print_warning(message: Warning | str, *_: object, **__: object) -> None:
    if ranks.first():
        click.echo(f"prodsc: note: {visible(str(message))}", err=True)
