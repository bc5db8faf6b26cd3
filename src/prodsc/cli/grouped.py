"""Help in groups: what people need first, the paper's symbols last; sentences are never cut."""

from collections.abc import Mapping, Sequence
from typing import Any

import click


class GroupedCommand(click.Command):
    """A command whose help lists its options under headings.

    Parameters
    ----------
    groups : mapping from heading to names of options
        In the order of the help; the options that are in none come last.
    others : str
        The heading of those.
    """

    def __init__(self, *args: Any, groups: Mapping[str, Sequence[str]], others: str = "Other", **settings: Any):
        super().__init__(*args, **settings)
        self.groups, self.others = groups, others

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the options by group."""
        records = {param.name: param.get_help_record(ctx) for param in self.get_params(ctx)}
        left = {name: record for name, record in records.items() if record is not None}
        for heading, names in self.groups.items():
            _write(formatter, heading, [left.pop(name) for name in names if name in left])
        last = [left.pop("help")] if "help" in left else []
        _write(formatter, self.others, [*left.values(), *last])


def _write(formatter: click.HelpFormatter, heading: str, records: Sequence[tuple[str, str]]) -> None:
    if records:
        with formatter.section(heading):
            formatter.write_dl(list(records))
