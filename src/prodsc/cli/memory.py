"""The option --memory: a limit that a command keeps."""

from collections.abc import Callable
from typing import Any

import click

from prodsc.memory import limit_memory, parse_size


def _limit(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value is not None:
        limit_memory(parse_size(value))


def memory_option(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command --memory, which takes effect before the command begins."""
    option = click.option(
        "--memory", metavar="SIZE", callback=_limit, expose_value=False, is_eager=True,
        help="Keep the memory of this process below SIZE, such as 4GB.",
    )  # fmt: skip
    return option(command)
