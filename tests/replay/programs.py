"""Random agents, and what they must come to: an oracle that is no run of the engine.

A program is a list of operations with a label each. An operation returns its label, so that a result that is read back
in a wrong place shows in the answer. Names are few, repeats are common within steps, and questions come after them.
Steps take different times, and the winner of a race decides the name of the next step.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from contextlib import nullcontext, suppress
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Protocol
from zlib import adler32

from a2a_serverless import Budget, BudgetExceeded, Retry, Step, StepFailed
from a2a_serverless.domain.agent_errors import TaskEnded
from a2a_serverless.testing.simulated_loop import START, SimulatedLoop

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

NAMES: Final = ("a", "b")
KINDS: Final = (
    *("step", "repeat", "repeat", "flaky", "emit", "say", "usage", "ask", "ask", "stream", "cancel", "plan"),
    *("call", "sleep", "race", "first", "branches", "questions", "scope", "timeout", "value", "typed", "group", "big"),
    *("alarm", "clock", "rest", "retry", "map", "calls"),
)
FROM_OUTSIDE: Final = ("overdue", "event", "duel")
"""These need a client that does not answer, and a system that sends events."""
OUTERMOST: Final = {
    *("stream", "plan", "call", "race", "first", "branches", "questions", "sleep", "timeout", "scope", "group", "big"),
    *("overdue", "alarm", "event", "duel", "map", "calls"),
}
"""These stand in the agent's function itself."""
REPEATED: Final = {"repeat", "flaky", "emit", "say", "usage", "ask", "sleep", "scope", "value", "clock", "rest"}
"""Their names are a few, which come again and again."""
LEAVES: Final = ("step", "repeat", "say", "usage")
DEEPEST: Final = 2
LINGERS: Final = 3
LONGEST: Final = 10_000
DAY_S: Final = 86_400
EVENT_S: Final = 50
DUEL_S: Final = 7200
"""So long a sleep loses against an event, whatever dies meanwhile: so the result is known."""
LEFT: Final = 0.3
"""How many programs leave something running behind their end."""
PIECES: Final = ("x" * 310_000, "y" * 210_000)
"""The first is stored apart from its event, both together make a snapshot of the log."""
SEQUENTIAL: Final = (
    "step",
    "repeat",
    "flaky",
    "ask",
    "call",
    "say",
    "usage",
    "emit",
    "sleep",
    "scope",
    "value",
    "rest",
    "retry",
)
"""Of these a budget in steps allows the same ones, however they are interrupted."""
OVERDUE: Final = "overdue"
"""It marks a question that nobody answers in time, and which is asked again, as often as there is time."""
SLOW: Final = "slow"
"""It marks what a called agent does not do before its task is canceled."""
SHARE: Final = Budget(usd=1, steps=100)
"""The budget of a call: so calls beside each other do not wait for one another."""
APART: Final = "#"
"""It marks a question whose answer does not depend on how many came before it, because another branch asks, too."""


@dataclass(frozen=True)
class Operation:
    """``seconds`` is how long its own work takes, ``inner`` what it consists of."""

    kind: str
    label: str
    name: str
    seconds: int = 1
    inner: tuple[tuple[Operation, ...], ...] = ()

    def __str__(self) -> str:
        inner = " | ".join(" ".join(map(str, branch)) for branch in self.inner)
        return f"{self.kind}:{self.label}:{self.name}" + (f"[{inner}]" if inner else "")


def make_program(chance: Random, depth: int = 0, label: str = "", kinds: tuple[str, ...] = KINDS) -> list[Operation]:
    """A random program."""
    operations = []
    for number in range(chance.randint(2, 5 if depth == 0 else 3)):
        kind, own = chance.choice(kinds), f"{label}{number}"
        if depth and kind in OUTERMOST:
            kind = "say"
        if depth > 1 and kind in {"emit", "flaky", "cancel"}:
            kind = "repeat"
        operations.append(make_operation(chance, kind, own, depth, kinds))
    if not label and chance.random() < LEFT:
        operations.append(Operation("leave", "left", "left"))
    return operations


def make_operation(chance: Random, kind: str, label: str, depth: int, kinds: tuple[str, ...]) -> Operation:
    """A random operation of a kind. ``kinds`` are those of the operations in it."""
    name = chance.choice(NAMES) if kind in REPEATED else label
    inner: tuple[tuple[Operation, ...], ...] = ()
    if kind in {"step", "repeat", "flaky"} and depth < DEEPEST and chance.random() < 0.6:
        inner = (tuple(make_program(chance, depth + 1, f"{label}.", kinds)),)
    if kind == "scope":
        inner = (tuple(make_program(chance, 1, f"{label}.", kinds)),)
    if kind == "branches":
        inner = tuple(_branch(chance, f"{label}.{number}.") for number in range(2))
    if kind == "questions":
        inner = tuple(_asking_branch(chance, f"{label}.{number}.") for number in range(2))
    return Operation(kind, label, name, chance.choice([1, 7, 20]), inner)


def _branch(chance: Random, label: str) -> tuple[Operation, ...]:
    """What runs beside another branch: its steps have names of their own, because it shares the scope."""
    kinds = ["step", *(chance.choice(LEAVES) for _ in range(chance.randint(1, 2)))]
    own = [(kind, f"{label}{number}") for number, kind in enumerate(kinds)]
    return tuple(
        Operation(kind, one, one if kind in {"step", "repeat"} else chance.choice(NAMES), chance.choice([1, 7, 20]))
        for kind, one in own
    )


def _asking_branch(chance: Random, label: str) -> tuple[Operation, ...]:
    """A step and then a question, beside a branch that does the same."""
    pay = Operation("step", f"{label}pay", f"{label}pay", chance.choice([1, 7, 20]))
    return pay, Operation("ask", f"{label}ask", f"{label}{APART}")


@dataclass(frozen=True)
class Paper:
    """A result that only a codec can store."""

    label: str
    content: bytes
    on: date


class Unstorable(Exception):
    """An error that cannot be made again from its arguments."""

    def __init__(self, label: str, number: int) -> None:
        super().__init__(f"{label} {number}")


class Task(Protocol):
    """The methods of a task that programs use; the oracle has them, too."""

    async def step(self, name: Any, work: Any, *args: Any) -> Any: ...
    async def map(self, name: Any, work: Any, items: Any, *, limit: int, tolerate: int) -> Any: ...
    async def ask(self, question: str, *, timeout_s: float | None = None, remind_s: float | None = None) -> Any: ...
    async def now(self, name: str) -> Any: ...
    async def callback(self, name: str) -> Any: ...
    async def call(self, name: str, agent: str, content: str, *, budget: Budget) -> Any: ...
    async def emit(self, name: str, content: str, *, append: bool = False) -> None: ...
    async def report_progress(self, content: str) -> None: ...
    async def record_usage(self, model: str, **amounts: float) -> None: ...
    async def budget_left(self) -> Any: ...
    async def sleep(self, name: str, seconds: float) -> None: ...
    @property
    def store(self) -> Any: ...
    def timeout(self, name: str, seconds: float) -> Any: ...
    def scope(self, name: str) -> Any: ...


@dataclass
class Effects:
    """What happened outside. ``wrong`` are effects that must not happen: of stored steps, and of losers of a race.

    ``decided`` says which step of a race has to win. A run that another one has overtaken is not current.
    """

    done: list[str] = field(default_factory=list)
    lost: set[str] = field(default_factory=set)
    wrong: list[str] = field(default_factory=list)
    winners: dict[str, str] = field(default_factory=dict)
    moments: dict[str, str] = field(default_factory=dict)
    decided: Mapping[str, str] = field(default_factory=dict)
    leftovers: set[asyncio.Task[None]] = field(default_factory=set)
    is_stored: Callable[[str], bool] = bool
    is_current: Callable[[], bool] = lambda: True
    begin_try: Callable[[str], None] = lambda _: None
    submit: Callable[[str, str], None] = lambda url, body: None  # noqa: ARG005 - the oracle's event comes by itself
    tries: Counter[str] = field(default_factory=Counter)
    raised: Counter[str] = field(default_factory=Counter)
    count_raised: Callable[[str], int] | None = None

    def ended_tries(self, label: str) -> int:
        """How many tries of the step of a label have ended with an error."""
        return self.count_raised(label) if self.count_raised else self.raised[label]

    def begin(self, label: str) -> None:
        if label in self.lost and self.is_current():
            self.wrong.append(f"{label} began again after it had lost")

    def end(self, label: str) -> None:
        if self.is_stored(label) and self.is_current():
            self.wrong.append(f"{label} was done again after its result was stored")
        self.done.append(label)

    def decide(self, label: str, winner: str) -> None:
        if self.winners.setdefault(label, winner) != winner:
            self.wrong.append(f"the race {label} was won by {self.winners[label]}, and now by {winner}")


class Player:
    """Plays a program on a task, in one run."""

    def __init__(self, task: Task, effects: Effects) -> None:
        self._task = task
        self._effects = effects

    async def play(self, operations: Any) -> list[Any]:
        """The labels of what was done, as each operation returned them."""
        return [await getattr(self, f"_{operation.kind}")(operation) for operation in operations]

    async def _body(self, operation: Operation, *, fails: bool = False) -> list[Any]:
        self._effects.begin(operation.label)
        await asyncio.sleep(operation.seconds)
        if fails:
            raise OSError(operation.label)
        inner = [await self.play(branch) for branch in operation.inner]
        self._effects.end(operation.label)
        return [operation.label, inner]

    async def _step(self, operation: Operation) -> Any:
        return await self._task.step(f"step {operation.name}", partial(self._body, operation))

    async def _repeat(self, operation: Operation) -> Any:
        return await self._task.step(Step(f"think {operation.name}", repeat=True), partial(self._body, operation))

    async def _flaky(self, operation: Operation) -> Any:
        """Fails at its first try, in whatever run; the agent tries again."""
        name = Step(f"think {operation.name}", repeat=True)

        async def work(*, fails: bool) -> list[Any]:
            await self._say(operation)
            return await self._body(operation, fails=fails)

        for number in range(2):
            try:
                return await self._task.step(name, partial(work, fails=number == 0))
            except OSError as error:
                if str(error) != operation.label:
                    raise AssertionError(operation.label) from error
        raise AssertionError(operation.label)

    async def _stream(self, operation: Operation) -> Any:
        """A step that emits, and fails after its first chunk; then it is tried again."""

        async def work() -> list[Any]:
            self._effects.begin_try(operation.label)
            is_first = not self._effects.ended_tries(operation.label)
            if is_first:
                await self._task.emit(f"note {operation.label}", "only in the first try")
            for chunk in ("<", ">"):
                await self._task.emit(f"text {operation.label}", chunk, append=True)
                await asyncio.sleep(operation.seconds)
                if is_first:
                    self._effects.raised[operation.label] += 1
                    raise OSError(operation.label)
            return await self._body(operation)

        return await self._task.step(Step(f"step {operation.label}", retry=Retry(tries=2)), work)

    async def _retry(self, operation: Operation) -> Any:
        """A step that fails twice, once with an error that cannot be stored. Some of its pauses suspend the task."""

        async def work() -> list[Any]:
            ended = self._effects.ended_tries(operation.label)
            await self._say(operation)
            await asyncio.sleep(1)
            if self._effects.ended_tries(operation.label) > ended and self._effects.is_current():
                self._effects.wrong.append(f"a try of {operation.label} was made again after it had ended")
            if ended < 2:
                self._effects.raised[operation.label] += 1
                raise OSError(operation.label) if ended else Unstorable(operation.label, ended)
            return await self._body(operation)

        retry = Retry(tries=3, first_s=operation.seconds)
        return await self._task.step(Step(f"step {operation.label}", retry=retry), work)

    async def _map(self, operation: Operation) -> list[Any]:
        """Steps of a few items, two at a time; one of them fails, and the reason is in its place."""
        items = [Operation("step", f"{operation.label}.{number}", str(number), 1 + number % 3) for number in range(4)]

        async def work(label: str) -> list[Any]:
            item = next(one for one in items if one.label == label)
            done = await self._body(item)
            if item is items[1]:
                raise Unstorable(label, 1)
            return done

        name = f"map {operation.label}"
        results = await self._task.map(name, work, [item.label for item in items], limit=2, tolerate=1)
        return [str(type(one).__name__) if isinstance(one, StepFailed) else one for one in results]

    async def _calls(self, operation: Operation) -> str:
        """A race of two calls: the loser is cancelled, and so is its task."""
        calls = {
            asyncio.create_task(
                self._call(Operation("call", f"{operation.label}{kind}", f"{operation.label} {kind}"))
            ): kind
            for kind in ("quick", SLOW)
        }
        done, others = await asyncio.wait(calls, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        (winner,) = done
        answer = winner.result()  # no winner if the process has ended there
        self._effects.decide(operation.label, calls[winner])
        return answer

    async def _plan(self, operation: Operation) -> str:
        """A step that fails when it is done for the first time; then the agent does another one in its place."""
        first = Operation("step", f"{operation.label}.a", f"{operation.label}.a")

        async def work() -> list[Any]:
            self._effects.begin(first.label)
            self._effects.tries[first.label] += 1
            if self._effects.tries[first.label] == 1:
                raise OSError(operation.label)
            return await self._body(first)

        try:
            await self._task.step(f"step {first.name}", work)
        except OSError:
            self._effects.lost.add(first.label)
            await self._step(Operation("step", f"{operation.label}.b", f"{operation.label}.b"))
        return ""

    async def _cancel(self, operation: Operation) -> Any:
        """The agent's own time limit cancels a step at its first try; then it is tried again without one."""
        for limit_s, seconds in ((1, 2), (None, 0)):

            async def work(seconds: int = seconds) -> list[Any]:
                await asyncio.sleep(seconds)
                return await self._body(operation)

            with suppress(TimeoutError):
                async with asyncio.timeout(limit_s):
                    return await self._task.step(f"step {operation.name}", work)
        raise AssertionError(operation.label)

    async def _emit(self, operation: Operation) -> str:
        artifact = f"art {operation.name}" + (f" {operation.label}" if "." in operation.label else "")
        await self._task.emit(artifact, f"<{operation.label}>", append=True)
        return ""

    async def _say(self, operation: Operation) -> str:
        await self._task.report_progress(f"say {operation.name}")
        return ""

    async def _usage(self, operation: Operation) -> str:
        await self._task.record_usage(f"m{operation.name[:1]}", tokens=1)
        return ""

    async def _ask(self, operation: Operation) -> str:
        return str((await self._task.ask(f"ask {operation.name}?")).text())

    async def _call(self, operation: Operation) -> str:
        called = await self._task.call(operation.name, "child", operation.label, budget=SHARE)
        return str(called.status.message.text())

    async def _sleep(self, operation: Operation) -> str:
        await self._task.sleep(operation.name, operation.seconds * 60)
        return ""

    async def _timeout(self, operation: Operation) -> str:
        """Less time than the step needs: the step is cancelled, and never begins again."""
        slow = Operation("step", f"{operation.label}.slow", f"{operation.label}.slow", 600)
        try:
            async with self._task.timeout(operation.name, 100):
                return str(await self._step(slow))
        except TimeoutError:
            self._effects.lost.add(slow.label)
            self._effects.decide(operation.label, "timeout")
            return "timeout"

    async def _overdue(self, operation: Operation) -> str:
        """A question that nobody answers in time."""
        try:
            return str((await self._task.ask(f"{OVERDUE} {operation.name}?", timeout_s=200, remind_s=70)).text())
        except TimeoutError:
            return OVERDUE

    async def _alarm(self, operation: Operation) -> str:
        """A race of a sleep with a step that takes longer."""
        slow = Operation("step", f"{operation.label}.slow", f"{operation.label}.slow", 600)
        sleep = asyncio.ensure_future(self._task.sleep(operation.name, 100))
        step = asyncio.ensure_future(self._step(slow))
        done, _ = await asyncio.wait({sleep, step}, return_when=asyncio.FIRST_COMPLETED)
        if sleep not in done:
            return "no alarm"
        sleep.result()
        step.cancel()
        await asyncio.gather(step, return_exceptions=True)
        self._effects.lost.add(slow.label)
        return "alarm"

    async def _event(self, operation: Operation) -> str:
        """Work that another system does, which then sends an event."""
        done = await self._task.callback(operation.name)

        async def submit() -> None:
            self._effects.submit(done.url, operation.label)

        await self._task.step(f"submit {operation.label}", submit)
        return str((await done.received(timeout_s=86_400)).body)

    async def _duel(self, operation: Operation) -> list[Any]:
        """A race of an event and a sleep: the winner decides the name of a step."""
        done = await self._task.callback(operation.name)

        async def submit() -> None:
            self._effects.submit(done.url, operation.label)

        await self._task.step(f"submit {operation.label}", submit)
        waits = {
            asyncio.ensure_future(self._task.sleep(operation.name, DUEL_S)): "sleep",
            asyncio.ensure_future(done.received(timeout_s=86_400)): "event",
        }
        ended, others = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        winner = min((one.result(), waits[one])[1] for one in ended)  # no winner if the process has ended there
        self._effects.decide(operation.label, winner)
        pay = Operation("step", f"{operation.label}.pay", f"{operation.label} pay {winner}")
        return [winner, await self._step(pay)]

    async def _clock(self, operation: Operation) -> str:
        """Reads the clock, which shows the same in each run."""
        now = str(await self._task.now(operation.name))
        if self._effects.moments.setdefault(operation.label, now) != now:
            self._effects.wrong.append(f"the time {operation.label} changes")
        return ""

    async def _rest(self, operation: Operation) -> str:
        """Reads what is left of the budget, which is the same in each run."""
        left = str(await self._task.budget_left())
        if self._effects.moments.setdefault(operation.label, left) != left:
            self._effects.wrong.append(f"what is left at {operation.label} changes")
        return ""

    async def _race(self, operation: Operation) -> list[Any]:
        """The first of two steps decides the name of a third; the other is cancelled."""
        runners = self._runners(operation)
        tasks = {asyncio.create_task(self._step(runner)): runner.label for runner in runners}
        done, others = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        winner = min((one.result(), tasks[one])[1] for one in done)  # no winner if the process has ended there
        self._effects.decide(operation.label, winner)
        self._effects.lost |= {tasks[one] for one in others}
        pay = Operation("step", f"{operation.label}.pay", f"{operation.label} pay {winner}")
        return [winner, await self._step(pay)]

    async def _first(self, operation: Operation) -> list[Any]:
        """The first of two steps decides the name of a third, which goes on beside the second."""
        runners = self._runners(operation)
        results = asyncio.as_completed([asyncio.ensure_future(self._step(runner)) for runner in runners])
        winner = (await next(results))[0]
        self._effects.decide(operation.label, winner)
        pay = Operation("step", f"{operation.label}.pay", f"{operation.label} pay {winner}")
        return [winner, *await asyncio.gather(self._step(pay), *results)]

    def _runners(self, operation: Operation) -> list[Operation]:
        """The steps of a race. If it is decided which one wins, the others take far longer."""
        labels = {f"{operation.label}.0": 45, f"{operation.label}.1": 20 + operation.seconds}
        if decided := self._effects.decided.get(operation.label):
            labels = {label: 1 if label == decided else 100 for label in labels}
        return [Operation("step", label, label, seconds) for label, seconds in labels.items()]

    async def _group(self, operation: Operation) -> Any:
        """A step that raises cancels its sibling, which is then done by itself unless it had ended."""

        async def fail() -> None:
            await asyncio.sleep(operation.seconds)
            raise OSError(operation.label)

        slow = Operation("step", f"{operation.label}.slow", f"{operation.label}.slow", 10)
        sibling = None
        try:
            async with asyncio.TaskGroup() as group:
                sibling = group.create_task(self._step(slow))
                group.create_task(self._task.step(f"step {operation.label}.fails", fail))
        except* OSError:
            pass
        return sibling.result() if sibling and not sibling.cancelled() else await self._step(slow)

    async def _value(self, operation: Operation) -> str:
        """Counts in a stored value: one step reads it, and another one replaces what that has read."""
        store, key = self._task.store, f"value {operation.name}"

        async def read() -> list[Any]:
            found = await store.get(key)
            return [found.value, found.version] if found else [0, ""]

        async def write(count: int, version: str) -> None:
            await store.put(key, count + 1, version=version)

        count, version = await self._task.step(f"read {operation.label}", read)
        await self._task.step(f"write {operation.label}", write, count, version)
        return f"{key} is {count + 1}"

    async def _typed(self, operation: Operation) -> str:
        async def work() -> Paper:
            label, _ = await self._body(operation)
            return Paper(label, label.encode(), date(2026, 1, 2))

        paper = await self._task.step(f"step {operation.label}", work)
        return f"{paper.label} {paper.content!r} {paper.on:%d.%m.%Y}"

    async def _big(self, operation: Operation) -> str:
        for piece in PIECES:
            await self._task.emit(f"big {operation.label}", piece, append=True)
        return ""

    async def _leave(self, operation: Operation) -> str:
        """The agent's function ends while a part of it still works, which does not want to be cancelled."""

        async def linger() -> None:
            for _ in range(LINGERS):
                with suppress(asyncio.CancelledError, TaskEnded):
                    await self._task.report_progress(f"late {operation.label}")
                    await self._task.emit(f"late {operation.label}", "late")
                    await self._task.step(f"late {operation.label}", asyncio.sleep, 1)
                with suppress(asyncio.CancelledError):
                    await asyncio.sleep(1)

        self._effects.leftovers.add(left := asyncio.create_task(linger()))
        left.add_done_callback(self._effects.leftovers.discard)
        return ""

    async def _branches(self, operation: Operation) -> Any:
        return list(await asyncio.gather(*map(self.play, operation.inner)))

    async def _questions(self, operation: Operation) -> Any:
        return await self._branches(operation)

    async def _scope(self, operation: Operation) -> list[Any]:
        with self._task.scope(f"scope {operation.name}"):
            return await self.play(operation.inner[0])


def answer_to(question: str, number: int) -> str:
    """The client's answer to its ``number``-th question."""
    return f"answer to {question}" if APART in question else f"answer {number}"


class _Text:
    def __init__(self, text: str) -> None:
        self._text = text
        self.status = self
        self.message = self

    def text(self) -> str:
        return self._text


class Oracle:
    """What an agent's task would be without a store: every act is done at once, and nothing is ever interrupted.

    ``most`` is the number of steps that its budget allows.
    """

    def __init__(self, most: int | None = None) -> None:
        self._most = most
        self._begun = self._ended = 0
        self.asked: list[str] = []
        self.progress: list[str] = []
        self.texts: dict[str, str] = {}
        self.usage: Counter[str] = Counter()
        self.values: dict[str, Any] = {}

    @property
    def store(self) -> Oracle:
        return self

    async def get(self, key: str) -> Any:
        return SimpleNamespace(value=self.values[key], version="") if key in self.values else None

    async def put(self, key: str, value: Any, *, version: str) -> None:
        del version
        self.values[key] = value

    def _check(self, steps: int) -> None:
        if self._most is not None and steps >= self._most:
            raise BudgetExceeded("agent", "steps", steps, self._most)

    async def step(self, name: Any, work: Any, *args: Any) -> Any:
        for _ in range(name.retry.tries - 1 if isinstance(name, Step) and name.retry else 0):
            try:
                return await self._work(work, *args)
            except BudgetExceeded:
                raise
            except Exception:  # noqa: BLE001, S112 - the program's own
                continue
        return await self._work(work, *args)

    async def _work(self, work: Any, *args: Any) -> Any:
        self._check(self._begun)
        self._begun += 1
        try:
            return await work(*args)
        finally:
            self._ended += 1

    async def budget_left(self) -> str:
        return ""

    async def map(self, name: Any, work: Any, items: Any, *, limit: int, tolerate: int) -> list[Any]:
        del limit, tolerate
        results = list[Any]()
        for item in items:
            try:
                results.append(await work(item))
            except Exception:  # noqa: BLE001 - the program's own
                results.append(StepFailed(name))
        return results

    async def ask(self, question: str, *, timeout_s: float | None = None, remind_s: float | None = None) -> _Text:
        del remind_s
        self._check(self._ended)
        self.asked.append(question)
        if timeout_s:
            raise TimeoutError
        return _Text(answer_to(question, sum(OVERDUE not in one for one in self.asked)))

    async def call(self, name: str, agent: str, content: str, *, budget: Budget) -> _Text:
        del name, budget
        self._check(self._ended)
        if content.endswith(SLOW):
            await asyncio.sleep(5 * DAY_S)
        return _Text(f"{agent} of {content}")

    async def emit(self, name: str, content: str, *, append: bool = False) -> None:
        self.texts[name] = (self.texts.get(name, "") if append else "") + content

    def forget(self, label: str) -> None:
        """A step's try begins: what another one has emitted does not count."""
        self.texts.pop(f"text {label}", None)
        self.texts.pop(f"note {label}", None)

    async def report_progress(self, content: str) -> None:
        self.progress.append(content)

    async def record_usage(self, model: str, **amounts: float) -> None:
        for amount in amounts.values():
            self.usage[model] += int(amount)

    async def sleep(self, name: str, seconds: float) -> None:
        del name
        await asyncio.sleep(seconds)

    async def now(self, name: str) -> str:
        return name

    async def callback(self, name: str) -> Any:
        async def received(timeout_s: float) -> Any:
            del timeout_s
            await asyncio.sleep(EVENT_S)
            return SimpleNamespace(body=name.encode())

        return SimpleNamespace(url="", received=received)

    def timeout(self, name: str, seconds: float) -> Any:
        del name
        return asyncio.timeout(seconds)

    def scope(self, name: str) -> Any:
        del name
        return nullcontext()


class _OraclePlayer(Player):
    async def _leave(self, operation: Operation) -> str:
        del operation
        return ""


def short(text: str) -> str:
    """The text, or how long it is."""
    return text if len(text) < LONGEST else f"{text[:9]}, {len(text)} characters, {adler32(text.encode())}"


def in_order(asked: list[str]) -> list[str]:
    """The questions, once each; those of branches beside each other, which are asked in any order, by name."""
    asked = [question for n, question in enumerate(asked) if OVERDUE not in question or question not in asked[:n]]
    return [question for question in asked if APART not in question] + sorted(
        question for question in asked if APART in question
    )


def outcome_of(
    operations: Sequence[Operation], decided: Mapping[str, str] | None = None, most: int | None = None
) -> dict[str, Any]:
    """What a task that plays the operations must come to, if races are ``decided`` like that.

    ``most`` is the number of steps that its budget allows.
    """
    clock = [START]

    def wait(ms: int) -> None:
        clock[0] += ms

    oracle = Oracle(most)
    effects = Effects(begin_try=oracle.forget, decided=decided or {})
    loop = SimulatedLoop(lambda: clock[0], wait)
    try:
        answer: Any = loop.run_until_complete(_OraclePlayer(oracle, effects).play(operations))
    except BudgetExceeded as exceeded:
        answer = exceeded
    finally:
        loop.close()
    return {
        "answer": str(answer),
        "asked": in_order(oracle.asked),
        "progress": Counter(oracle.progress),
        **({} if any(one.kind == "branches" for one in operations) else {"order": oracle.progress}),
        "artifacts": {name: short(text) for name, text in oracle.texts.items()},
        "usage": dict(oracle.usage),
        "values": oracle.values,
        "winners": effects.winners,
    }
