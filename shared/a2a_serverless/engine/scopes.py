"""Scopes: parts of an agent's code whose durable acts have ids of their own.

An act is known by the path of its scope, its name, and its number among its equals in this execution of the scope. A
scope is executed from its start or, if it is a step with a stored result, not at all. So a number never depends on code
that a later run does not execute, and none is stored.
"""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.agent_errors import StepConflict
from a2a_serverless.domain.current_task import CURRENT_STEP
from a2a_serverless.domain.digests import digest
from a2a_serverless.domain.model import is_utf8
from a2a_serverless.domain.record_names import LIMIT, SEPARATOR, join_path, place_name, raised_name
from a2a_serverless.engine.loop import OUTSIDE_STEPS

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Iterator

    from a2a_serverless.domain.model import Json
    from a2a_serverless.domain.usage import Usage


@dataclass(eq=False, slots=True)
class RunningStep:
    """A running step. ``attempt`` is the id of its chunks; ``began_at`` is in ms.

    ``stored_before`` is the number of results that this run had stored at its beginning, ``waits`` the number of its
    waits (``Endings``). ``work`` is the asyncio task that runs it. ``trace`` has the step's span, if spans are
    recorded. ``model_at`` is the end of its last model call.
    """

    path: str
    name: str
    within: RunningStep | None
    start_moment: int
    began_at: int
    attempt: int
    work: asyncio.Task[Any]
    is_at_work: bool = True
    stored_before: int = 0
    waits: int = 0
    end_moment: int | None = None
    has_emitted: bool = False
    usage: Usage = field(default_factory=dict)
    trace: str = ""
    model_at: int = 0


@dataclass(eq=False, slots=True)
class Scope:
    """One execution of a scope. ``identity`` is its path with the numbers of repeated tries, for messages."""

    path: str = ""
    identity: str = ""
    step: RunningStep | None = None
    is_over: bool = False
    _equals: defaultdict[str, int] = field(default_factory=partial(defaultdict, int))
    _used_names: set[str] = field(default_factory=set)
    _open_names: set[str] = field(default_factory=set)

    def running_steps(self) -> Iterator[RunningStep]:
        """The steps around this scope that count as work, the innermost first."""
        step = self.step
        while step:
            if step.is_at_work:
                yield step
            step = step.within

    def check_open(self) -> None:
        """Raises StepConflict if the scope is over: an asyncio task that started in it has outlived it."""
        if self.is_over:
            raise StepConflict(
                f"{self.path!r} is over, and an asyncio task that was started in it goes on. Await it in there."
            )

    def next(self, act: str) -> int:
        """The number of an act among equal acts in this execution, from 1."""
        self._equals[act] += 1
        return self._equals[act]

    def place(self, act: str, name: str) -> str:
        """The path of a wait or a time: another one for each use of its name. Raises StepConflict as ``use``."""
        self.check_open()
        _check_name(name)
        number = self.next(f"{act}:{name}")
        return join_path(self.path, place_name(act, name, number))

    def error_name(self, path: str, number: int) -> str:
        """The name of the error of a step's try: another one in each try of the steps around it."""
        return raised_name(path, number if self.identity == self.path else f"{digest(self.identity)[:16]}.{number}")

    def message_id(self, task_id: str, kind: str, content: Json) -> str:
        """The id of a message: the same in every run, and different for each equal message in this scope."""
        act = f"{kind}\n{digest(content)}"
        return sha256(f"{task_id}\n{self.identity}\n{act}\n{self.next(act)}".encode()).hexdigest()[:32]

    @contextmanager
    def use(self, name: str, *, repeat: bool = False) -> Iterator[str]:
        """Reserves a name while the context is entered, and yields the name's path.

        A use that ends by an exception leaves the name free. Raises StepConflict for a name that may not be used, is
        in use, or was used; with ``repeat`` the second use has the name ``name#2``.
        """
        self.check_open()
        _check_name(name)
        if name in self._open_names:
            raise StepConflict(f"The step {name!r} runs twice at a time. Give parallel steps names of their own.")
        number = self._equals[f"use {name}"] + 1
        unique = f"{name}#{number}" if repeat and number > 1 else name
        if unique in self._used_names:
            raise StepConflict(f"The step {unique!r} was used twice. Give each step its own name.")
        self._open_names.add(name)
        try:
            yield join_path(self.path, unique)
            self._equals[f"use {name}"] = number
            self._used_names.add(unique)
        finally:
            self._open_names.discard(name)

    def inner(self, path: str, step: RunningStep | None, attempt: int = 1) -> Scope:
        """A scope inside this one, for one execution."""
        tail = path.removeprefix(self.path)
        again = "" if attempt == 1 else f"!{attempt}"
        return Scope(path, f"{self.identity}{tail}{again}", step)


class Scopes:
    """The scopes of one run. ``unit`` names the framework's unit that the calling code belongs to, or is empty.

    ``has_other_units`` is whether others work beside it.
    """

    def __init__(self) -> None:
        self._root = Scope()
        self._units: dict[str, Scope] = {}
        self.unit: Callable[[], str] = str
        self.has_other_units: Callable[[], bool] = bool

    @property
    def current(self) -> Scope:
        """The innermost scope of the calling code: a step, one that was opened, or a framework's unit."""
        owner, scope = _SCOPE.get() or (None, None)
        if scope and owner is self:
            return scope
        unit = self.unit()
        return self._units.setdefault(unit, Scope(unit, unit)) if unit else self._root

    @contextmanager
    def enter(self, scope: Scope) -> Iterator[None]:
        """Makes a scope the current one, also in the asyncio tasks that start meanwhile."""
        tokens = _SCOPE.set((self, scope)), OUTSIDE_STEPS.set(scope.step is None)
        step = CURRENT_STEP.set(scope.step.path if scope.step else "")
        try:
            yield
        finally:
            with suppress(ValueError):  # an abandoned coroutine is closed in another context
                _SCOPE.reset(tokens[0])
                OUTSIDE_STEPS.reset(tokens[1])
                CURRENT_STEP.reset(step)

    @contextmanager
    def open(self, name: str | None) -> Iterator[None]:
        """Opens the scope ``name`` in the current one; None is the whole task."""
        if name is None:
            with self.enter(self._root):
                yield
            return
        outer = self.current
        with outer.use(name, repeat=True) as path:
            scope = outer.inner(path, outer.step)
            try:
                with self.enter(scope):
                    yield
            finally:
                scope.is_over = True

    def begin_units(self, prefix: str = "") -> None:
        """The framework executes its units whose names begin with ``prefix`` anew, from their start."""
        self._units = {path: scope for path, scope in self._units.items() if not path.startswith(prefix)}


_SCOPE: Final[ContextVar[tuple[Scopes, Scope] | None]] = ContextVar("scope", default=None)


def _check_name(name: str) -> None:
    if not name or len(name) > LIMIT or name.startswith("@") or SEPARATOR in name or not is_utf8(name):
        raise StepConflict(
            f"A step's name has 1 to {LIMIT} characters, does not begin with @, and contains neither {SEPARATOR!r} nor"
            " a lone surrogate."
        )
