"""The command line: ``a2a-serverless --help``."""

import sys


def main() -> None:
    """Run the program with the arguments of the process. Without the extra ``cli`` it ends with what to install."""
    try:
        from a2a_serverless.cli.app import run

        run()
    except ModuleNotFoundError as error:
        if str(error.name).startswith("a2a_serverless"):
            raise
        sys.exit(f"There is no module {error.name!r}: pip install 'a2a-serverless[cli]'")


__all__ = ["main"]
