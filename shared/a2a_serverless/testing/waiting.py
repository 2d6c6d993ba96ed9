"""What an agent's code waits for: the lines that wait, open connections, pipes and processes, and running threads.

A coroutine that waits shows its frames (``cr_await``: Python's inspect module), a thread does by
``sys._current_frames``. So a hanging test can say which line of whose code hangs.
"""

from __future__ import annotations

import asyncio
import linecache
import os
import queue
import selectors
import socket
import stat
import sys
import threading
from concurrent.futures import thread as pools
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from a2a_serverless.adapters.tracebacks import LIBRARY, is_author_s
from a2a_serverless.engine.loop import ENGINE_TASK

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from types import FrameType

    from a2a_serverless.engine.loop import RunLoop

SERVER: Final = "a server"
_LOCKS: Final = frozenset({threading.__file__, queue.__file__})
_FAMILY: Final = getattr(socket, "AF_UNIX", socket.AF_INET)  # pytest-socket allows it; names have their own family
_PROCESSES: Final = str(Path(asyncio.__file__).with_name("unix_events.py"))
_NEXT: Final = ("cr_await", "gi_yieldfrom", "ag_await")
_FRAMES: Final = ("cr_frame", "gi_frame", "ag_frame")


class WaitingCode(NamedTuple):
    """A line of code that waits: of an agent, if any is on the way there, else of a library."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        code = linecache.getline(self.file, self.line).strip()
        return f"{self.file}:{self.line}, in {self.function}: {code}"


def waiting_code(loop: asyncio.AbstractEventLoop, threads: Iterable[threading.Thread] = ()) -> list[WaitingCode]:
    """Where the agent's asyncio tasks of a loop wait, and these threads: the author's lines, or else a library's."""
    frames = sys._current_frames()  # noqa: SLF001 - documented; there is no other way
    chains = [chain for chain in map(_frames, asyncio.all_tasks(loop)) if _is_agent_s(chain)]
    stacks = [stack for thread in threads if (stack := thread_frames(frames.get(thread.ident or 0)))]
    own = [stack for stack in (*chains, *stacks) if not all(map(_is_foreign, stack))]
    return sorted(set(map(own_line, own or chains)))


def own_line(frames: Sequence[FrameType]) -> WaitingCode:
    """The innermost line that is in no library, of frames from the outermost to the innermost one."""
    frame = next((each for each in reversed(frames) if not _is_foreign(each)), frames[-1])
    return WaitingCode(frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_qualname)


def thread_frames(frame: FrameType | None) -> list[FrameType]:
    """The frames of a thread, from the outermost to the innermost one."""
    frames: list[FrameType] = []
    while frame:
        frames.insert(0, frame)
        frame = frame.f_back
    return frames


def waiting_text(threads: Iterable[threading.Thread]) -> str:
    """The task of the running loop, its running steps, and the lines at which its code waits, also in ``threads``."""
    loop = cast("RunLoop", asyncio.get_running_loop())
    task = f"task {loop.work.task}: " if loop.work else ""
    steps = [f"step {path!r}" for path in loop.work.running_paths] if loop.work else []
    lines = [f"\n  {code}" for code in waiting_code(loop, threads)]
    return f"Waiting, {task}{', '.join(steps) or 'outside of steps'}{''.join(lines)}"


def is_agent_asleep() -> bool:
    """Whether code of the agent sleeps (``asyncio.sleep``), in the running loop."""
    chains = (_frames(task) for task in asyncio.all_tasks() if task.get_name() != ENGINE_TASK)
    return any(frames and frames[-1].f_code is asyncio.sleep.__code__ for frames in chains)


def _frames(task: asyncio.Task[Any]) -> list[FrameType]:
    """The frames of a task that waits, from the outermost to the innermost one."""
    frames: list[FrameType] = []
    waiter: object = task.get_coro()
    while waiter is not None:
        frames += [frame for name in _FRAMES if (frame := getattr(waiter, name, None))]
        waiter = next((each for name in _NEXT if (each := getattr(waiter, name, None)) is not None), None)
    return frames


def _is_agent_s(frames: Sequence[FrameType]) -> bool:
    return any(not frame.f_code.co_filename.startswith((LIBRARY, asyncio.__path__[0])) for frame in frames)


def _is_foreign(frame: FrameType) -> bool:
    return not is_author_s(frame.f_code.co_filename)


# ---- Connections, pipes and processes


def open_io(keys: Iterable[selectors.SelectorKey], threads: Iterable[threading.Thread]) -> list[str]:
    """What may bring input: what a loop has registered (``keys``), and what these threads wait for."""
    frames = sys._current_frames()  # noqa: SLF001 - documented; there is no other way
    names = [name for key in keys if (name := _real_name(key))]
    for thread in threads:
        if frame := frames.get(thread.ident or 0):
            names += _io_of_thread(frame)
    return names


def _io_of_thread(frame: FrameType) -> list[str]:
    """What a thread waits for in a selector, or the process whose end it waits for. A server waits for nothing."""
    code = frame.f_code
    if code.co_filename == _PROCESSES and code.co_name == "_do_waitpid":
        return [f"the process {frame.f_locals['expected_pid']}"]
    names = _names_in_selector(frame)
    return [] if any(name.startswith(SERVER) for name in names) else names


def _names_in_selector(frame: FrameType) -> list[str]:
    keys: list[selectors.SelectorKey] = []
    if frame.f_code.co_filename == selectors.__file__:
        with suppress(AttributeError, KeyError, RuntimeError):  # the thread goes on just now
            keys = [*frame.f_locals["self"].get_map().values()]
    return [name for key in keys if (name := _real_name(key))]


def _real_name(key: selectors.SelectorKey) -> str:
    """Names a connection or a pipe; "" for the pair of sockets by which a thread wakes an event loop."""
    try:
        mode = os.fstat(key.fd).st_mode
        if not stat.S_ISSOCK(mode):
            return f"a pipe ({key.fd})" if stat.S_ISFIFO(mode) else f"a file or a process ({key.fd})"
        with socket.fromfd(key.fd, _FAMILY, socket.SOCK_STREAM) as duplicate:
            own = duplicate.getsockname()
            if duplicate.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                return f"{SERVER} at {_address(own)}"
            peer = duplicate.getpeername()
    except OSError:  # it is being connected, or was closed
        return f"a connection ({key.fd})"
    is_pair = not (own or peer) and not key.events & selectors.EVENT_WRITE
    return "" if is_pair else f"the connection to {_address(peer)}"


def _address(name: Any) -> str:  # noqa: ANN401 - of any family
    return f"{name[0]}:{name[1]}" if isinstance(name, tuple) else str(name or "another process")


# ---- Threads


def running_threads(threads: Sequence[threading.Thread]) -> set[tuple[int | None, int, int]]:
    """The running threads among these, each with its position in the code."""
    frames = sys._current_frames()  # noqa: SLF001 - documented; there is no other way
    frames_by_id = ((thread.ident, frames.get(thread.ident or 0)) for thread in threads)
    return {(ident, id(frame.f_code), frame.f_lasti) for ident, frame in frames_by_id if frame and not waits(frame)}


def waits(frame: FrameType) -> bool:
    """Whether a thread waits for work or a lock without a time limit, for real input, or as a server."""
    code = frame.f_code
    if _io_of_thread(frame) or _names_in_selector(frame):
        return True
    if code.co_filename in _LOCKS or code.co_filename == selectors.__file__:
        timeout = frame.f_locals.get("timeout")
        return timeout is None or timeout <= 0
    return code.co_filename == pools.__file__ and code.co_name == "_worker"
