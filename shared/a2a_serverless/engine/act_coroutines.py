"""The coroutines of acts that nobody has started: an act that the agent's function calls and forgets does nothing.

Forgotten is a coroutine that nobody awaited, closed, cancelled or threw into. A closed coroutine has no frame.
"""

from __future__ import annotations

import asyncio
import inspect
import sys
from functools import partial
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from a2a_serverless.domain.agent_errors import StepConflict

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CoroutineType

    from a2a_serverless.engine.scopes import RunningStep

STEPS: Final = frozenset({"task.step", "task.map"})


class ActCoroutine(NamedTuple):
    """The coroutine of an ``act``, which the code at this ``line`` of a ``file`` has called in a step."""

    act: str
    file: str
    line: int
    step: RunningStep | None
    coroutine: CoroutineType[Any, Any, Any]

    @property
    def place(self) -> str:
        """The place of the call, for its author. The path of the file is nothing for a client."""
        return f"{PurePath(self.file).name}, line {self.line}"


class ActCoroutines:
    """The coroutines of a run's acts that have not begun, by keys that they know."""

    def __init__(self) -> None:
        self._unstarted: dict[object, ActCoroutine] = {}
        self._late: list[ActCoroutine] = []

    def __bool__(self) -> bool:
        return bool(self._unstarted or self._late)

    def add(self, key: object, coroutine: ActCoroutine) -> None:
        """Notes a coroutine."""
        self._unstarted[key] = coroutine

    def begin(self, key: object, *, is_late: bool) -> None:
        """The coroutine begins, ``is_late`` if the agent's function has returned before: then its act does nothing."""
        coroutine = self._unstarted.pop(key, None)
        # Of an act that takes no time a later run may come to its end before, and an earlier run has done it.
        # tests/engine/test_forgotten_acts.py: test_an_act_that_the_agent_closes_cancels_or_throws_into_is_not_forgotten
        if coroutine and is_late and coroutine.act in STEPS:
            self._late.append(coroutine)

    def check(self, step: RunningStep | None = None) -> None:
        """Raises StepConflict if a coroutine that was made in this step (None: anywhere) is forgotten."""
        if late := next(iter(self._late), None):
            raise StepConflict(
                f"The function has returned before the step that {late.place} calls began. Await the step, or cancel"
                " it."
            )
        forgotten = (one for one in self._unstarted.values() if one.coroutine.cr_frame and step in {None, one.step})
        if first := next(forgotten, None):
            raise StepConflict(
                f"{first.act} was called and never awaited: {first.place}. It has done nothing. Await it, or close the"
                " coroutine."
            )

    def close(self) -> None:
        """Closes those that no asyncio task is going to begin: the run is over."""
        owned = {task.get_coro() for task in asyncio.all_tasks()}
        for one in self._unstarted.values():
            if one.coroutine not in owned:
                one.coroutine.close()


if sys.version_info >= (3, 12):
    mark_coroutine_function = inspect.markcoroutinefunction
    is_coroutine_function = inspect.iscoroutinefunction
else:

    def mark_coroutine_function(function: Callable[..., Any]) -> Callable[..., Any]:
        """Marks a plain function that returns a coroutine as an async one, for asyncio and those who ask it."""
        function._is_coroutine = asyncio.coroutines._is_coroutine  # type: ignore[attr-defined] # noqa: SLF001
        return function

    def is_coroutine_function(function: object) -> bool:
        """Whether the function is async, or is marked as such."""
        while isinstance(function, partial):
            function = function.func
        return asyncio.iscoroutinefunction(function)  # type: ignore[deprecated]
