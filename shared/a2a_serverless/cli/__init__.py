"""The command line: ``a2a-serverless --help``."""

import sys
from importlib.metadata import version


def main() -> None:
    """Run the program with the arguments of the process. Without the extra ``cli`` it ends with what to install."""
    try:
        from a2a_serverless.cli.app import run

        run()
    except ModuleNotFoundError as error:
        if str(error.name).startswith("a2a_serverless"):
            raise
        wheel = f"a2a_serverless-{version('a2a-serverless')}-py3-none-any.whl[cli]"
        sys.exit(f"There is no module {error.name!r}: the commands need the extra cli, as in pip install './{wheel}'")


__all__ = ["main"]
