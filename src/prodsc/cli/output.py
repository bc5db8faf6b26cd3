"""Text on the terminal. Names of files and columns may hold control characters, which are shown and not sent."""

import click

from prodsc.errors import visible


def echo(text: str = "", err: bool = False) -> None:
    """Print a text with its control characters as codes, except line ends and tabs.

    Parameters
    ----------
    text : str
        The text.
    err : bool
        Print it to stderr.
    """
    click.echo(visible(text, keep="\n\t"), err=err)
