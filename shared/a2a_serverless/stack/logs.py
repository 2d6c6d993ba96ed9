"""What the parts of a running stack have said: servers and SAM in files, functions in the emulator's CloudWatch."""

from a2a_serverless.stack import processes, sam
from a2a_serverless.stack.errors import StackError
from a2a_serverless.stack.places import Places

FILES = {"emulator": "emulator", "server": "api", "receiver": "receiver", "build": "sam-build", "deploy": "sam-deploy"}
PARTS = (*sam.FUNCTIONS, *FILES)


def read(places: Places, part: str) -> list[str]:
    """The lines of a part's log so far. Raises `StackError` when there is no such part, or nothing runs."""
    if part in FILES:
        path = places.log(FILES[part])
        return path.read_text(errors="replace").splitlines() if path.exists() else []
    if part not in sam.FUNCTIONS:
        raise StackError("logs", f"there is no {part!r}", remedy=f"one of {', '.join(PARTS)}")
    return sam.function_log(_endpoint(places), part)


def _endpoint(places: Places) -> str:
    for process in processes.started(places):
        if process.name == "emulator":
            return process.url
    raise StackError("emulator", "does not run", remedy="a2a-serverless up")
