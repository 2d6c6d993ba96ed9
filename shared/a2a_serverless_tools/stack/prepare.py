"""Builds the functions so that the first start only deploys: ``python -m a2a_serverless_tools.stack.prepare``."""

import sys

from rich.console import Console

from a2a_serverless_tools.stack import environments, paths
from a2a_serverless_tools.stack.build import build
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.progress import step
from a2a_serverless_tools.stack.targets import this_machine


def main() -> None:
    """Build for this machine. If it is no Linux machine, print that; it does not fail the setup."""
    console = Console()
    try:
        target, here = this_machine(), paths.find()
        environments.ensure(here, console)
    except StackError as error:
        console.print(f"The functions are not built: {error}", markup=False)
        return
    try:
        with step(console, "Building the functions") as say:
            say("" if build(here, target).made else "nothing changed")
        console.print("Next: make demo")
    except StackError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
