"""Progress on the command line: shown by the first process of a run, and not with --quiet."""

from contextlib import AbstractContextManager

from prodsc import progress, ranks
from prodsc.errors import visible


def progress_bar(name: str, quiet: bool = False) -> AbstractContextManager[progress.ProgressFunction | None]:
    """`prodsc.progress.progress_bar`, for the first rank only and not if `quiet`."""
    return progress.progress_bar(visible(name), shown(quiet))


def shown(quiet: bool) -> bool:
    """Does this process show progress?"""
    return not quiet and ranks.first()
