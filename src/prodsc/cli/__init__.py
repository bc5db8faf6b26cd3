"""The command line: one thin file per command. Errors a user can cause become one sentence and a non-zero exit."""

import os
import sys
import warnings

import click

from prodsc import ranks
from prodsc._version import __version__
from prodsc.cli.compare import compare
from prodsc.cli.data import data
from prodsc.cli.diagnose import diagnose
from prodsc.cli.export import export
from prodsc.cli.extract import extract
from prodsc.cli.figure import figure
from prodsc.cli.fit import fit
from prodsc.cli.k import k
from prodsc.cli.launch import launch
from prodsc.cli.predict import predict
from prodsc.cli.recipes import recipes
from prodsc.cli.report import report
from prodsc.cli.reproduce import reproduce
from prodsc.cli.tune import tune
from prodsc.errors import ProdscError
from prodsc.training.checkpoint import Interrupted


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="prodsc")
def cli() -> None:
    """Cluster a feature matrix with PRO-DSC, label new rows with the model it learns."""


for command in (
    fit,
    predict,
    diagnose,
    k,
    recipes,
    data,
    extract,
    compare,
    tune,
    reproduce,
    report,
    export,
    figure,
    launch,
):
    cli.add_command(command)


def main(words: list[str] | None = None) -> None:
    """Entry point of the `prodsc` script; exits."""
    try:
        ranks.join()
        with warnings.catch_warnings():
            warnings.showwarning = _say_warning
            code = cli.main(words, prog_name="prodsc", standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except click.ClickException as error:
        if ranks.claim_error_report():
            error.show()
        sys.exit(error.exit_code)
    except ProdscError as error:
        _fail(str(error))
    except (click.Abort, KeyboardInterrupt) as error:
        stop = error.__cause__ if isinstance(error, click.Abort) else error  # click turns the one into the other
        _fail(str(stop) if isinstance(stop, Interrupted) else "interrupted.", code=130)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader of our output went away
        sys.exit(1)
    except MemoryError:
        _fail("out of memory. Lower batch_size, max_landmarks or hidden_size.")
    except OSError as error:
        _fail(f"{error.filename or 'the system'}: {error.strerror or error}.")


def _fail(sentence: str, code: int = 1) -> None:
    if ranks.claim_error_report():
        click.echo(f"prodsc: {sentence}", err=True)
    sys.exit(code)


def _say_warning(message: Warning | str, *_: object, **__: object) -> None:
    if ranks.first():
        click.echo(f"prodsc: note: {message}", err=True)
