"""Refuses what code outside of steps would do to the world, while it is played for a look: Python's audit events.

A library in another language that asks the system itself is not seen.
"""

from __future__ import annotations

import os
import sys
import threading
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

REFUSED: Final = frozenset(
    {
        *("socket.connect", "socket.sendto", "socket.sendmsg", "socket.getaddrinfo", "socket.gethostbyname"),
        *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.forkpty", "os.startfile"),
        *("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod"),
        *("os.chown", "os.kill", "os.killpg", "shutil.rmtree", "shutil.move", "shutil.copyfile", "sqlite3.connect"),
    }
)
WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
COMPILED: Final = "__pycache__"


class EffectRefused(BaseException):
    """Code outside of steps would connect, start a process or write a file."""


class _Guard:
    """The threads whose effects are refused, with what was refused; a process has one, because a hook stays."""

    def __init__(self) -> None:
        self.refusals: dict[int, list[str]] = {}
        self.is_of_process = False
        self.refusals_of_process: list[str] = []
        self._is_hooked = False

    def hook(self) -> None:
        if not self._is_hooked:
            self._is_hooked = True
            sys.addaudithook(self._audit)

    def _audit(self, event: str, args: tuple[Any, ...]) -> None:
        if not (self.refusals or self.is_of_process) or not _is_effect(event, args):
            return
        refusals = self.refusals.get(threading.get_ident())
        if refusals is None and self.is_of_process:
            refusals = self.refusals_of_process
        if refusals is not None:
            refusals.append(event)
            raise EffectRefused(event)


_GUARD: Final = _Guard()


def refuse_effects_of_process() -> list[str]:
    """From now on each effect of this process raises EffectRefused; returns the list of what was refused."""
    _GUARD.hook()
    _GUARD.is_of_process = True
    return _GUARD.refusals_of_process


@contextmanager
def refuse_effects() -> Iterator[list[str]]:
    """While it is entered, effects in this thread raise EffectRefused; yields the list of what was refused."""
    _GUARD.hook()
    refusals = _GUARD.refusals[threading.get_ident()] = []
    try:
        yield refusals
    finally:
        del _GUARD.refusals[threading.get_ident()]


def _is_effect(event: str, args: tuple[Any, ...]) -> bool:
    if event == "open":
        path, mode, flags = args
        is_writing = bool(set(mode) & set("wax+")) if isinstance(mode, str) else bool(flags & WRITING)
        return is_writing and path != os.devnull and not isinstance(path, int) and not _is_compiled(path)
    if event == "os.rename":
        return not (_is_compiled(args[0]) and _is_compiled(args[1]))
    if event == "os.mkdir":
        return _path(args[0]).name != COMPILED
    return event in REFUSED


def _is_compiled(path: Any) -> bool:  # noqa: ANN401 - what the operating system takes
    """Whether an import writes the file: a module compiled to byte code."""
    return _path(path).parent.name == COMPILED


def _path(path: Any) -> Path:  # noqa: ANN401 - what the operating system takes
    return Path(os.fsdecode(path))
