"""Progress of long work."""

from collections.abc import Callable
from typing import TypeAlias

ProgressFunction: TypeAlias = Callable[[int, int], None]
"""Called with the number of items done and the number of items in total."""
