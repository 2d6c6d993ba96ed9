"""The order in which steps and waits end: one at a time, in each run the same.

An agent that waits for several things at once sees which of them ends first, and goes on accordingly. So each ending
gets a number in the store, and reaches the agent's code in the order of these numbers, when no code of the agent is
ready to go on. A later run repeats this order: nothing that is not stored starts or ends as long as the code may still
come to a stored ending. So a step that a stored ending makes the agent cancel does not start again.

An ending that nothing could compete with needs no number: that of a wait while nothing else is under way, and that of
a step whose work let no other code run.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.record_names import SEPARATOR, act_path, wait_name
from a2a_serverless.domain.step_results import StepResult
from a2a_serverless.domain.waits import shown_name
from a2a_serverless.protocol.v1 import TaskState

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from a2a_serverless.domain.waits import OpenWait, WaitKind
    from a2a_serverless.engine.journal import Journal
    from a2a_serverless.engine.loop import RunLoop
    from a2a_serverless.engine.scopes import Scope
    from a2a_serverless.protocol.v1 import Message

NEVER: Final = 2**62


def reminder_id(message_id: str) -> str:
    """The id of the message that asks once more what the message of this id asks."""
    return sha256(f"{message_id}\nreminder".encode()).hexdigest()[:32]


@dataclass(slots=True)
class Question:
    """A question to the client, and the state in which the task waits for the answer.

    The ``earlier`` messages have asked the same before.
    """

    message: Message
    state: TaskState = TaskState.INPUT_REQUIRED
    earlier: list[Message] = field(default_factory=list)

    @property
    def ids(self) -> list[str]:
        """The ids of the messages that ask this, the latest last."""
        return [message.message_id for message in (*self.earlier, self.message)]

    def remind(self) -> None:
        """Lets the question be asked once more, in a new message."""
        self.earlier.append(self.message)
        self.message = self.message.model_copy(update={"message_id": reminder_id(self.message.message_id)})


@dataclass(eq=False, slots=True)
class Wait:
    """A wait for an event outside: it is over at ``ready_at()`` (ms), None while that is unknown.

    The run looks again at ``due_at`` (ms) at the latest. ``timer`` is the name under which that has to be stored, ""
    once it is. ``question`` is the question to the client. ``result`` is the name of the result that ends the wait,
    which is stored from outside. The wait has been open since ``since`` (ms), and was over at ``ended_at`` (ms), 0
    while it is open; ``until`` (ms) is the time limit of a called agent.
    """

    path: str
    kind: WaitKind
    ready_at: Callable[[], int | None]
    due_at: int | None = None
    timer: str = ""
    question: Question | None = None
    result: str = ""
    since: int = 0
    until: int | None = None
    ended_at: int = 0
    future: asyncio.Future[None] = field(default_factory=lambda: asyncio.get_running_loop().create_future())


class Endings:
    """The steps and waits of a run that have not ended.

    ``now`` returns ms. ``listed`` are waits that may have been open before. With ``reads_first`` the first
    work begins when the code rests: then it has come to all that is stored and that it can come to. ``over`` are the
    waits that were over in this run, ``left_open`` those that were not when it was closed.
    """

    def __init__(
        self,
        loop: RunLoop,
        journal: Journal,
        now: Callable[[], int],
        listed: Iterable[OpenWait] = (),
        *,
        reads_first: bool = False,
    ) -> None:
        self._loop, self._journal, self._now = loop, journal, now
        self._since = {(wait.kind, wait.name): wait.since for wait in listed}
        self._is_closed = False
        self.over: list[Wait] = []
        self.left_open: list[Wait] = []
        self._paths = {result.sequence: act_path(name) for name, result in journal.items() if result.sequence}
        # Nothing comes to an ending within a step that has ended, so nothing waits for it.
        # tests/engine/test_orders.py: test_rule_07_of_two_acts_the_same_ends_first_in_each_run
        over = {journal.results[name].sequence for name in journal.names_inside_of_ended()}
        self._to_come = sorted(self._paths.keys() - over)
        self._queue: dict[asyncio.Future[None], int] = {}
        self._gates: dict[asyncio.Future[None], str] = {}
        self._waits: dict[Wait, None] = {}
        self._looks: dict[Wait, None] = {}
        self._busy = 0
        self._reads_first = reads_first
        self._turn = asyncio.Lock()
        self._next_turns = 0
        self.has_changed = asyncio.Event()

    @property
    def waits(self) -> list[Wait]:
        """The open waits, in the order in which the code came to them; then those for called agents."""
        return [*self._waits, *self._looks]

    def close(self) -> None:
        """The run ends before the waits that are open now: that the code leaves them does not end them."""
        if not self._is_closed:
            self._is_closed, self.left_open = True, self.waits

    @property
    def is_idle(self) -> bool:
        """Whether everything that is under way waits: no step and no call works, and no timer of the agent runs."""
        return self._busy == 0 and not self._loop.agent_timers()

    @property
    def is_busy(self) -> bool:
        """Whether a step or a call works."""
        return self._busy > 0

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """While the context is entered, work goes on for which the task must not be suspended."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._note_change()

    async def start(self, path: str, scope: Scope) -> None:
        """Returns when work that is not stored may begin: when no stored ending is to come before it."""
        # While stored endings are to come, new work waits: the code may still come to the ending that cancels it. Else
        # the loser of a race is paid for once more.
        # tests/engine/test_calls.py: test_a_call_that_lost_a_race_is_not_begun_in_a_later_run
        if not (self._to_come or self._reads_first):
            return
        gate = self._loop.create_future()
        self._gates[gate] = path
        try:
            await self._await(gate, scope)
        finally:
            del self._gates[gate]

    async def end(self, number: int, scope: Scope) -> None:
        """Returns when the ending with this stored number is the next one. 0 is an ending without competition."""
        if not number:
            return
        # Two branches may await the same ending, for example that of the card of an agent.
        # tests/engine/test_calls.py: test_two_branches_read_one_description_of_an_agent
        future = self._loop.create_future()
        try:
            # An ending that is queued has been stored before this one, and goes before it in each later run.
            # tests/engine/test_orders.py: test_rule_07_of_two_acts_the_same_ends_first_in_each_run
            if self._is_next(number) and not self._turn.locked() and number < min(self._queue.values(), default=NEVER):
                self._next_turns += 1
                try:
                    # The code that the ending before this one has woken goes on first. Else two endings reach it at
                    # once, in an order that another run need not have.
                    # tests/engine/test_combined.py:
                    # test_a_call_waits_for_another_one_that_a_later_run_has_not_gone_on_with_yet
                    async with self._turn:
                        await self._loop.rest()
                finally:
                    self._next_turns -= 1
            else:
                self._queue[future] = number
                await self._await(future, scope)
        finally:
            self._queue.pop(future, None)
            with suppress(ValueError):
                self._to_come.remove(number)
            self._note_change()

    def pass_over(self, names: Iterable[str]) -> None:
        """The stored endings of these names do not happen in this run: the code reads them without executing them."""
        numbers = {self._journal[name].sequence for name in names}
        self._to_come = [number for number in self._to_come if number not in numbers]

    async def wait(self, wait: Wait, scope: Scope) -> None:
        """Returns when the wait has ended."""
        if ending := self._journal.get(wait_name(wait.path)):
            return await self.end(ending.sequence, scope)
        return await self._wait_in(self._waits, wait, scope)

    async def look(self, wait: Wait, scope: Scope) -> None:
        """Returns when a called agent has to be asked again. The agent's code does not see this, so it has no order."""
        await self._wait_in(self._looks, wait, scope)

    async def run(self, suspend: Callable[[], None]) -> None:
        """Ends the next step or wait, one after the other. Calls ``suspend`` whenever no step or call works."""
        # An ending has the turn until the agent's code rests: two that looked for rest would keep each other from it.
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._seconds_to_next()):
                    await self.has_changed.wait()
            async with self._turn:
                self.has_changed.clear()
                await self._loop.rest()
                if self._next_turns:
                    # An ending that came meanwhile has the turn next. Work that began here would begin before it.
                    # tests/engine/test_retries.py: test_a_step_that_no_longer_fits_says_so_before_anything_runs
                    continue
                if self._end_next():
                    self.has_changed.set()
                elif self.is_busy:
                    self.store_timers()
                elif self.waits:
                    suspend()

    def store_timers(self, but: int = 0) -> list[Wait]:
        """Stores when the open waits are due, as far as that is not stored; returns the last ``but`` that are left."""
        new = [wait for wait in self._waits if wait.timer]
        for wait in new[: len(new) - but]:
            self._journal.store(wait.timer, StepResult("", wait.due_at, began_at=wait.since))
            wait.timer = ""
        return new[len(new) - but :] if but else []

    async def _wait_in(self, waits: dict[Wait, None], wait: Wait, scope: Scope) -> None:
        wait.since = self._since.get((wait.kind, shown_name(wait.path)), wait.since or self._now())
        waits[wait] = None
        try:
            await self._await(wait.future, scope)
        finally:
            waits.pop(wait, None)
            if not self._is_closed:
                wait.ended_at = self._ready_at(wait) or self._now()
                self.over.append(wait)

    async def _await(self, future: asyncio.Future[None], scope: Scope) -> None:
        """Awaits the future. Meanwhile the steps around it do not count as working."""
        self.has_changed.set()
        with self._not_at_work(scope):
            await future

    @contextmanager
    def _not_at_work(self, scope: Scope) -> Iterator[None]:
        # A step that waits inside does not count as working: it would keep the task from being suspended. Its waits are
        # counted, because asyncio tasks in a step may wait at the same time.
        # tests/replay/test_replay.py:
        # test_rule_07_an_interruption_anywhere_changes_nothing_of_what_a_random_agent_comes_to
        steps = [*scope.running_steps()]
        for step in steps:
            step.waits += 1
            self._busy -= step.waits == 1
        try:
            yield
        finally:
            for step in steps:
                step.waits -= 1
                self._busy += step.waits == 0

    def _note_change(self) -> None:
        if self._waits or self._looks or self._gates or self._queue:
            self.has_changed.set()

    def _end_next(self) -> bool:  # noqa: PLR0911 - one for each rule, in their order
        """Ends the next step or wait, or lets work begin; False if neither may happen."""
        first = min((number for future, number in self._queue.items() if not future.done()), default=NEVER)
        if first < NEVER and self._is_next(first):
            return self._end_queued(first)
        if self._to_come and (gate := self._gate_around(self._paths[self._to_come[0]])):
            return _set(gate)
        if self._to_come and not self.is_idle:
            # What works may still bring the code to the first ending: an ending after it has to wait.
            # tests/engine/test_step_options.py:
            # test_steps_end_in_the_same_order_beside_one_whose_result_is_read_instead
            return False
        if look := next((one for one in self._looks if self._ready_at(one) is not None), None):
            self._looks.pop(look)
            return _set(look.future)
        if self._end_wait():
            return True
        if first < NEVER:
            self._to_come = [number for number in self._to_come if number >= first]
            return self._end_queued(first)
        return self._open_gates()

    def _end_queued(self, number: int) -> bool:
        """Ends those that await the stored ending of this number."""
        for future in [future for future, other in self._queue.items() if other == number]:
            _set(future)
        return True

    def _end_wait(self) -> bool:
        ready = [(at, one) for one in self._waits if (at := self._ready_at(one)) is not None]
        if not ready:
            return False
        # Several waits may have been over before the run began. They end as they were due, not as the code reached
        # them.
        # tests/engine/test_endings.py:
        # test_rule_07_sleeps_that_were_over_before_the_run_began_end_in_the_order_in_which_they_were_due
        wait = min(ready, key=lambda pair: pair[0])[1]
        self._waits.pop(wait)
        # Beside other work the end of a wait competes with another ending, so its place in the order is stored. A wait
        # that is alone needs no place and costs no write.
        # tests/engine/test_waits.py: test_a_question_and_a_call_and_a_sleep_in_a_group_end_in_their_own_time
        if self._waits or self._gates or self._queue or self._looks or not self.is_idle:
            self._journal.store(wait_name(wait.path), StepResult("", None, sequence=self._journal.next_number()))
        return _set(wait.future)

    def _ready_at(self, wait: Wait) -> int | None:
        at = wait.ready_at()
        return at if at is not None and at <= self._now() else None

    def _open_gates(self) -> bool:
        gates = [gate for gate in self._gates if not gate.done()]
        inside = tuple(f"{self._gates[gate]}{SEPARATOR}" for gate in gates)
        self._to_come = [number for number in self._to_come if self._paths[number].startswith(inside)] if gates else []
        for gate in gates:
            self._reads_first = False
            _set(gate)
        return bool(gates)

    def _gate_around(self, path: str) -> asyncio.Future[None] | None:
        """The gate of the work that this path lies in."""
        gates = ((gate, at) for gate, at in self._gates.items() if not gate.done())
        return next((gate for gate, at in gates if path.startswith(f"{at}{SEPARATOR}")), None)

    def _is_next(self, number: int) -> bool:
        return not self._to_come or number <= self._to_come[0]

    def _seconds_to_next(self) -> float | None:
        now = self._now()
        times = [wait.due_at for wait in self.waits if wait.due_at is not None and wait.due_at > now]
        return (min(times) - now) / 1000 if times else None


def _set(future: asyncio.Future[None]) -> bool:
    """Ends a future, if it has not been cancelled; True in any case, because the code has to come to rest again."""
    if not future.done():
        future.set_result(None)
    return True
