"""Counts what one warm SendMessage runs of one package: distinct functions, files and classes. Prints them as JSON.

``python -S depth_of_call.py <module> <path> <version> <package>``. Counted by a profile function, in every thread:
what was called, not what happens to stand on the stack. Comprehensions, lambdas, class bodies and what `dataclass`
generates do not count.
"""

import json
import sys
import threading
from importlib import import_module
from types import FrameType

from many_calls import WARM_UP, body, caller, task_of, timed

NAMELESS = ("<module>", "<lambda>", "<listcomp>", "<genexpr>", "<dictcomp>", "<setcomp>")


class Calls:
    """The functions of one package that are called, as (file, qualified name), and the classes that they belong to."""

    def __init__(self, package: str) -> None:
        self._package = package
        self.functions: set[tuple[str, str]] = set()
        self.classes: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        """Takes one call down; a profile function."""
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        code = frame.f_code
        if (
            event == "call"
            and package == self._package
            and code.co_filename != "<string>"
            and code.co_name not in NAMELESS
        ):
            self.functions.add((code.co_filename, code.co_qualname))
            owner = frame.f_locals.get("self", frame.f_locals.get("cls"))
            if owner is not None:
                kind = owner if isinstance(owner, type) else type(owner)
                self.classes.add(kind.__qualname__)


def main() -> None:
    """Prints the counts."""
    module, path, version, package = sys.argv[1:]
    call = caller(import_module(module).handler, path, version)
    timed(call, [body(version, "send", f"warm-{number}") for number in range(WARM_UP)])
    calls = Calls(package)
    threading.setprofile(calls)
    sys.setprofile(calls)
    answer = call(body(version, "send", "counted"))
    sys.setprofile(None)
    task_of(answer)
    names = sorted(f"{file.rsplit(package, 1)[-1].lstrip('/')} {name}" for file, name in calls.functions)
    counts = {
        "functions": len(names),
        "files": len({file for file, _ in calls.functions}),
        "classes": len(calls.classes),
    }
    print(json.dumps({**counts, "names": names}))


if __name__ == "__main__":
    main()
