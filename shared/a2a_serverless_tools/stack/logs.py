"""Reads the logs of `dev` and of the stack's parts: of servers and SAM from files, of functions from the emulator."""

from a2a_serverless_tools.local.dev_log import DevLog, lines_of
from a2a_serverless_tools.stack import sam
from a2a_serverless_tools.stack.emulator import find_emulator, running_emulator
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import Paths

FILES = {"emulator": "emulator", "server": "api", "receiver": "receiver", "scheduler": "scheduler"}
FILES |= {"build": "sam-build", "deploy": "sam-deploy"}
DEV = "dev"
PARTS = (*sam.FUNCTIONS, *FILES, DEV)


def read_all(paths: Paths) -> dict[str, list[str]]:
    """Return the lines of each part; only those of `dev` if no stack runs. Raises `StackError` if there are none."""
    if find_emulator(paths) is None and (lines := read(paths, DEV)):
        return {DEV: lines}
    return {part: read(paths, part) for part in PARTS}


def read(paths: Paths, part: str) -> list[str]:
    """Return the lines of a part's log. Raises `StackError` for an unknown part, or a function when nothing runs."""
    if part in FILES:
        return lines_of(paths.log(FILES[part]))
    if part == DEV:
        return DevLog(paths.dev.state).lines()
    if part not in sam.FUNCTIONS:
        raise StackError("logs", f"there is no {part!r}", remedy=f"one of {', '.join(PARTS)}")
    return sam.function_log(running_emulator(paths).url, part)
