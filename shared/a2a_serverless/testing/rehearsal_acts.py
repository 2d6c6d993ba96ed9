"""The acts of a rehearsal: the code gets what is stored, and what is not stored stands still.

When nothing else moves and stored acts are left to come to, the earliest new act goes on with an ``Unknown`` in the
place of its result. Code that only passes it on comes to what is stored; other code ends the play.
"""

from __future__ import annotations

import sys
from copy import deepcopy
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from a2a_serverless.adapters.tracebacks import is_author_s
from a2a_serverless.domain.events import ArtifactEvent, StatusEvent
from a2a_serverless.domain.record_names import (
    CALL,
    CARD,
    EVENT,
    FAILED,
    GOT,
    LEFT,
    NOW,
    OUTSIDE,
    OVER,
    RAISED,
    RAW,
    SEPARATOR,
    SIGNED,
    SPENT,
    TAGS,
    TIMER,
    UNFINISHED,
    USAGE,
    VALUE,
    WAIT,
    act_of,
    act_path,
    call_of,
)
from a2a_serverless.domain.states import INTERRUPTED
from a2a_serverless.domain.step_results import StoredError
from a2a_serverless.domain.waits import WaitKind, load_waits, shown_name
from a2a_serverless.engine.endings import Wait, reminder_id
from a2a_serverless.engine.execution import Execution, question_id_of_call
from a2a_serverless.engine.observer import Act, ActKind, ObservedExecution, RunObserver
from a2a_serverless.engine.step_errors import failure_of, load_error
from a2a_serverless.testing.unknown import Unknown, find_unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from types import FrameType

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.step_results import StepResult
    from a2a_serverless.domain.waits import OpenWait
    from a2a_serverless.protocol.v1 import Artifact

NO_ACTS: Final = (FAILED, GOT, LEFT, OUTSIDE, OVER, RAW, SIGNED, SPENT, UNFINISHED, USAGE, f"{WAIT}{CALL}")
"""Records that the code need not ask for."""
NO_STEPS: Final = (NOW, TIMER, EVENT, WAIT, VALUE)
"""Such a record has the act and the name in the last part of its path."""
COMPARED: Final = {WaitKind.SLEEP, WaitKind.CALL, WaitKind.EVENT, WaitKind.TIMEOUT}
"""The code must come to such a wait again if the task waits in it. Questions are compared by their ids."""
KINDS: Final = {
    "ask": ActKind.QUESTION,
    "received": ActKind.EVENT,
    "callback": ActKind.EVENT,
    "put": ActKind.VALUE,
    "delete": ActKind.VALUE,
}
"""The kinds of acts by their stored names. Reads of values are no work: they have their own names."""
FRAMEWORKS: Final = "a2a_serverless_frameworks"


class Rested(BaseException):
    """Nothing moves any more: the play is over."""


class ActName(NamedTuple):
    """An act as an author knows it. Names may contain what clients said."""

    kind: str
    path: str

    def __str__(self) -> str:
        return f"{self.kind} {self.path!r}" if self.path else str(self.kind)


@dataclass(eq=False)
class StandIn:
    """A new act, which stands still until it is released. ``line`` is the line of the author's code."""

    act: Act
    line: str
    is_of_framework: bool = False
    is_before_question: bool = False
    is_released: bool = False
    value: Any = None

    @property
    def name(self) -> ActName:
        """The act's name."""
        path = "" if self.act.kind is ActKind.QUESTION else shown_name(self.act.path)
        return ActName(self.act.kind, path)


class Guess(NamedTuple):
    """A stored step whose arguments are made of what is unknown."""

    path: str
    source: str
    line: str


@dataclass
class RehearsedActs(RunObserver):
    """Sees a play, in which nothing new happens. ``head`` and ``events`` are those of the task.

    With ``lends``, new steps get the stored results of unread steps with the same arguments. With ``goes_beyond``, what
    the task waits for counts as over when stored acts are left.
    """

    head: Head
    events: Sequence[Event]
    lends: bool = False
    goes_beyond: bool = False
    blocked: list[StandIn] = field(default_factory=list)
    assumed: list[StandIn] = field(default_factory=list)
    beyond: list[StandIn] = field(default_factory=list)
    writes: list[StandIn] = field(default_factory=list)
    lent: dict[str, str] = field(default_factory=dict)
    has_lent_wrongly: bool = False
    asked: set[str] = field(default_factory=set)
    lines: dict[str, str] = field(default_factory=dict)
    guesses: list[Guess] = field(default_factory=list)
    conflicts: dict[str, str] = field(default_factory=dict)
    used: tuple[str, str] = ("", "")
    new_message: tuple[str, str] = ("", "")
    reads_secret: bool = False
    execution: Execution = field(init=False)

    def __post_init__(self) -> None:
        self._emits: dict[tuple[str, str], int] = {}
        for event in self.events:
            if isinstance(event, ArtifactEvent) and not event.attempt:
                place = event.step, event.artifact.artifact_id
                self._emits[place] = self._emits.get(place, 0) + event.emits[1] - event.emits[0] + 1

    def begin(self, execution: ObservedExecution) -> None:
        assert isinstance(execution, Execution)  # noqa: S101 - for mypy
        self.execution = execution
        self.questions = self._find_questions()

    @property
    def open_waits(self) -> list[OpenWait]:
        """What the task is suspended for."""
        return [*load_waits(self.head.waits).waits] if self.head.parked else []

    @property
    def new_acts(self) -> list[StandIn]:
        """The acts that are not stored, without renamed steps: writes of values, then as the code came to them."""
        return [one for one in (*self.writes, *self.assumed, *self.blocked) if one.act.path not in self.lent]

    def stand_in(self, act: Act) -> Any:  # noqa: ANN401 - an awaitable, or None
        line, is_of_framework = find_line()
        self.lines[act.path] = line
        if act.question:
            self._note_asked(act.question.message_id)
        if act.kind is ActKind.STEP:
            self.has_lent_wrongly |= act.path in self.lent.values()
            stored = self.execution.results.get(act.path)
            if stored and stored.arguments != act.arguments:
                self.conflicts[act.path] = line
        is_beyond = self.goes_beyond and act.is_open and not act.is_new
        if not (act.is_new or is_beyond):
            return None
        return self._stand(StandIn(act, line, is_of_framework), self.beyond if is_beyond else self.blocked)

    def note_act(self, act: str) -> None:
        """A new write of a value happens, in the copy; its stored record is the act."""
        if (name := act_name(act)).kind == ActKind.VALUE:
            self.writes.append(StandIn(Act(ActKind.VALUE, name.path, is_new=True), find_line()[0], is_released=True))

    def digest_arguments(self, path: str, args: tuple[object, ...], kwargs: Mapping[str, Any]) -> str:
        source = find_unknown([args, kwargs])
        if not source:
            return ""
        stored = self.execution.results.get(path) or self.execution.results.get(f"{RAW}{path}")
        if stored and source != "a secret":
            self.guesses.append(Guess(path, source, find_line()[0]))
        return stored.arguments if stored else f"unknown: {source}"

    def note_message(self, kind: str, message_id: str, content: object) -> None:
        del content
        if kind == "progress" and message_id not in self.execution.sent_ids:
            self._note_new_message("progress")

    def note_chunk(self, path: str, artifact_id: str, make: Callable[[], Artifact]) -> None:
        del make
        left = self._emits.get((path, artifact_id), 0)
        self._emits[path, artifact_id] = left - 1
        if left <= 0:
            self._note_new_message("emit")

    def note_use(self, source: str) -> None:
        """The code looks at a result that is unknown. The first use counts."""
        self.used = self.used if self.used[0] else (source, find_line()[0])

    def rest(self) -> None:
        """Nothing moves any more: the earliest new act goes on, or the play ends. Raises Rested."""
        if self.execution.signal:
            raise self.execution.signal
        if self.execution.loop.agent_timers():
            return
        stand_in = self._next() if self.pending() else None
        if stand_in is None:
            raise Rested
        stand_in.is_released = True
        stand_in.is_before_question = bool(self.questions) and self.questions[-1] not in self.asked
        self.execution.endings.has_changed.set()

    def pending(self) -> bool:
        """Whether the log holds acts, questions or waits to which the code has not come."""
        if self.unread():
            return True
        inside = self.inside
        if not any(wait.name.startswith(inside) for wait in self.open_waits if inside) and self.missing_questions():
            return True
        return bool(self.lost_waits())

    @property
    def inside(self) -> tuple[str, ...]:
        """The beginnings of the paths in steps that have not ended: their work is not called."""
        stand_ins = (*self.blocked, *self.assumed)
        return tuple(f"{one.act.path}{SEPARATOR}" for one in stand_ins if one.act.kind is ActKind.STEP)

    @property
    def has_open_calls(self) -> bool:
        """Whether a called agent may have asked the client."""
        results = self.execution.results
        calls = {call for name in results if (call := call_of(name))}
        return any(not {call.done, call.failed, call.canceled} & results.keys() for call in calls)

    def missing_questions(self) -> list[str]:
        """The ids of the messages that have asked, and to which the code has not come."""
        return [one for one in self.questions if one not in self.asked]

    def lost_waits(self) -> list[OpenWait]:
        """What the task waits for, and the code does not."""
        inside = self.inside
        beyond = [(kind_of_wait(one.act.kind), shown_name(one.act.path)) for one in self.beyond]
        at_rest = {*beyond, *((wait.kind, shown_name(wait.path)) for wait in self.execution.endings.waits)}
        return [
            wait
            for wait in self.open_waits
            if wait.kind in COMPARED
            and (wait.kind, wait.name) not in at_rest
            and not (inside and wait.name.startswith(inside))
        ]

    def unread(self, *, hidden: bool = False) -> list[str]:
        """The names of acts to which the code has not come, oldest first; the ``hidden`` are in unfinished steps."""
        results, inside = self.execution.results, self.inside
        names = self._acts_of(self.execution.journal.unread)
        names = [name for name in names if bool(inside and act_path(name).startswith(inside)) == hidden]
        return sorted(names, key=lambda name: _moment(results[name]))

    def stored(self) -> list[str]:
        """The names of all stored acts."""
        return self._acts_of(self.execution.results)

    def _acts_of(self, names: Iterable[str]) -> list[str]:
        over = self.execution.journal.names_inside_of_ended()
        return [name for name in names if name not in over and self._is_act(name)]

    def _is_act(self, name: str) -> bool:
        results, call = self.execution.results, call_of(name)
        if name.startswith(NO_ACTS) or (call and name != call.opened):
            return False
        path = act_path(name)
        if name.startswith(RAISED) and path in results:
            return False
        return not (name.startswith(WAIT) and f"{TIMER}{path}" in results)

    def _find_questions(self) -> list[str]:
        """The ids of the messages that have asked, without those in place of called agents, which are not asked."""
        statuses = [event for event in self.events if isinstance(event, StatusEvent)]
        asked = [one.message.message_id for one in statuses if one.state in INTERRUPTED and one.message]
        results, origin = self.execution.results, self.execution.session.origin
        names = {name.removesuffix("/id") for name in results if name.startswith(CALL) and "/answer/" in name}
        of_calls = {question_id_of_call(origin, name) for name in names}
        calls = {call.path for name in results if (call := call_of(name))}
        if any(wait.kind == WaitKind.QUESTION and wait.name in calls for wait in self.open_waits):
            asked = asked[:-1]
        return [*dict.fromkeys(one for one in asked if one not in of_calls)]

    def _note_asked(self, message_id: str) -> None:
        """Also notes the ids of its reminders."""
        for _ in range(1 + len(self.questions)):
            self.asked.add(message_id)
            message_id = reminder_id(message_id)

    def _note_new_message(self, kind: str) -> None:
        self.new_message = self.new_message if self.new_message[0] else (kind, find_line()[0])

    async def _stand(self, stand_in: StandIn, stand_ins: list[StandIn]) -> Any:  # noqa: ANN401 - its own
        """Stands still until the act is released; returns what stands in the place of its result."""
        stand_ins.append(stand_in)
        now, scope = self.execution.session.now, self.execution.scopes.current

        def released_at() -> int | None:
            return now() if stand_in.is_released else None

        try:
            await self.execution.endings.look(Wait(stand_in.act.path, WaitKind.BUDGET, released_at), scope)
        finally:
            if stand_in in self.blocked:  # cancelled
                self.blocked.remove(stand_in)
        value = stand_in.value
        if issubclass(type(value), Exception):  # isinstance would look at an unknown
            raise value
        return value

    def _next(self) -> StandIn | None:
        """The new act that goes on; a framework's does not: it would look at the result."""
        free = [one for one in self.blocked if not one.is_of_framework]
        if free:
            stand_in = (self._lend(free) if self.lends else None) or free[0]
            if stand_in.act.path not in self.lent and stand_in.act.kind is not ActKind.SLEEP:
                stand_in.value = self._unknown(stand_in)
            self.blocked.remove(stand_in)
            self.assumed.append(stand_in)
            return stand_in
        over = [one for one in self.beyond if not one.is_released]
        if over and not self.blocked and self.unread():
            if over[0].act.kind is not ActKind.SLEEP:
                over[0].value = self._unknown(over[0])
            return over[0]
        return None

    def _unknown(self, stand_in: StandIn) -> Unknown:
        return Unknown(str(stand_in.act.kind), self.note_use)

    def _lend(self, stand_ins: Sequence[StandIn]) -> StandIn | None:
        """Gives a new step the stored result of the unread one with the same arguments whose name is most alike."""
        results = self.execution.results
        rest = [name for name in self.unread() if not name.startswith("@") or name.startswith(RAISED)]
        pairs = [
            (SequenceMatcher(None, one.act.path, act_path(name)).ratio(), -number, one, name)
            for number, one in enumerate(stand_ins)
            for name in rest
            if one.act.kind is ActKind.STEP and results[name].arguments == one.act.arguments
        ]
        if not pairs:
            return None
        _, _, stand_in, name = max(pairs, key=lambda pair: pair[:2])
        self.lent[stand_in.act.path] = path = act_path(name)
        stand_in.value = self._load(name, stand_in.act)
        self.execution.endings.pass_over([one for one in results if one == name or _is_try_of(one, path)])
        return stand_in

    def _load(self, name: str, act: Act) -> Any:  # noqa: ANN401 - the step's own
        result = self.execution.results[name]
        if name.startswith(RAISED):
            return load_error(StoredError.of(result)) or failure_of(StoredError.of(result))
        try:
            return act.codec.load(result.value) if act.codec else deepcopy(result.value)
        except Exception:  # noqa: BLE001 - any exception of a codec
            return Unknown(str(act.kind), self.note_use)


def _is_try_of(name: str, path: str) -> bool:
    return name.startswith(RAISED) and act_path(name) == path


def _moment(result: StepResult) -> tuple[int, int]:
    return result.began_at or result.ended_at, result.moment


def kind_of_wait(kind: ActKind) -> WaitKind:
    """The kind of the wait of an act that waits."""
    return {ActKind.SLEEP: WaitKind.SLEEP, ActKind.EVENT: WaitKind.EVENT}.get(kind, WaitKind.QUESTION)


def act_name(name: str) -> ActName:
    """The act of a stored record, as its author knows it."""
    if call := call_of(name):
        return ActName(ActKind.CALL, call.path)
    if name.startswith((CARD, TAGS)):
        return ActName(ActKind.CARD, name.removeprefix(CARD).removeprefix(TAGS))
    if not name.startswith(NO_STEPS):
        return ActName(ActKind.STEP, act_path(name))
    scopes, separator, last = act_path(name).rpartition(SEPARATOR)
    act, own = act_of(last)
    method = act.rpartition(".")[2]
    kind = str(KINDS.get(method, method))
    return ActName(kind, f"{scopes}{separator}{own}" if kind != ActKind.QUESTION else "")


def find_line() -> tuple[str, bool]:
    """The innermost line of the author's code that comes here, and whether a framework comes between."""
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001 - documented; there is no other way
    is_of_framework = False
    while frame and not is_author_s(frame.f_code.co_filename):
        is_of_framework |= str(frame.f_globals.get("__name__")).startswith(FRAMEWORKS)
        frame = frame.f_back
    return (f"{frame.f_code.co_filename}:{frame.f_lineno}" if frame else ""), is_of_framework


def line_of(error: BaseException) -> str:
    """The innermost line of the author's code in the traceback of an error."""
    at, line = error.__traceback__, ""
    while at:
        if is_author_s(at.tb_frame.f_code.co_filename):
            line = f"{at.tb_frame.f_code.co_filename}:{at.tb_lineno}"
        at = at.tb_next
    return line
