"""Reads the logs of the stack's parts: servers and SAM from files, functions from the emulator's CloudWatch."""

from a2a_serverless_tools.stack import sam
from a2a_serverless_tools.stack.emulator import running_emulator
from a2a_serverless_tools.stack.errors import StackError
from a2a_serverless_tools.stack.paths import Paths

FILES = {"emulator": "emulator", "server": "api", "receiver": "receiver", "scheduler": "scheduler"}
FILES |= {"build": "sam-build", "deploy": "sam-deploy"}
PARTS = (*sam.FUNCTIONS, *FILES)


def read(paths: Paths, part: str) -> list[str]:
    """Return the lines of a part's log. Raises `StackError` for an unknown part, or a function when nothing runs."""
    if part in FILES:
        path = paths.log(FILES[part])
        return path.read_text(errors="replace").splitlines() if path.exists() else []
    if part not in sam.FUNCTIONS:
        raise StackError("logs", f"there is no {part!r}", remedy=f"one of {', '.join(PARTS)}")
    return sam.function_log(running_emulator(paths).url, part)
