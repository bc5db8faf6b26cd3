"""python -m prodsc, and the script `prodsc`."""

import sys

from prodsc.errors import MissingExtraError


def main() -> None:
    """Run the command line, or say in one sentence that its libraries are not installed; exits."""
    try:
        from prodsc.cli import main as run_command_line
    except MissingExtraError as error:
        sys.exit(f"prodsc: {error}")
    run_command_line()


if __name__ == "__main__":
    main()
