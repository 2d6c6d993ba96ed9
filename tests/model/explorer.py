"""Explores every order in which the actors of a model can make their store calls.

An actor is a function of the library. It has no state beside the answers that it got, so it is not suspended: it is
called again with those answers, and the first call without an answer is what it does next. A state of the model is the
content of the store, the queue and the clock, what was observed (``notes``), and for each actor its answers so far.
Equal states are explored once, in order of their distance from the first, so a counterexample is a shortest one.

Beside the actors' calls, a state may be left by a fault, so often as the model allows: an actor dies, and what it did
stays; or the answer to a write is lost, and the write is sent again. The clock moves to the next of the model's times.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.errors import Overloaded
from a2a_serverless.engine.signals import ProcessInterrupted
from a2a_serverless.store.table import Put
from a2a_serverless.testing.memory import MemoryTable

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from a2a_serverless.domain.queue_messages import QueueMessage
    from a2a_serverless.store.items import Item
    from tests.model.ports import Ports

BLOCKED: Final = object()
Place = tuple[str, str]


def _call(activity: Callable[[Ports], object], ports: Ports) -> None:
    """Calls the activity; raises what ended it within a store call of a run."""
    try:
        activity(ports)
    except ProcessInterrupted as interrupted:
        raise interrupted.cause from None


class Violation(BaseException):
    """A property does not hold. Not an ``Exception``, so that no code under test catches it."""


class Pending(BaseException):
    """The actor wants to make ``call`` and has no answer yet."""

    def __init__(self, call: Call) -> None:
        super().__init__(call.label)
        self.call = call


@dataclass
class World:
    """What calls read and change. ``torn`` has the former items of transactions that a query may see by halves."""

    items: MemoryTable
    now: int
    queue: frozenset[tuple[str, QueueMessage]]
    notes: dict[str, Any]
    torn: dict[str, tuple[tuple[Place, Item | None], ...]]


@dataclass(frozen=True, slots=True)
class Call:
    """A call of an actor. ``effect`` makes it in a world, in one of ``variants`` ways, or returns BLOCKED."""

    label: str
    effect: Callable[[World, int], object]
    variants: int = 1
    writes: bool = False
    at_once: bool = False


class Channel:
    """Answers an actor's calls with what it was answered before; raises Pending at the first new one."""

    def __init__(self, actor: str, answers: Sequence[object]) -> None:
        self.actor = actor
        self._answers = iter(answers)

    def ask(self, call: Call) -> Any:
        for answer in self._answers:
            return answer
        raise Pending(call)


@dataclass(frozen=True, slots=True)
class Actor:
    """Does its ``activities`` one after another; each knows nothing of those before it. ``mortal`` ones may die."""

    name: str
    activities: tuple[Callable[[Ports], object], ...]
    mortal: bool = False


@dataclass(frozen=True, slots=True)
class Model:
    """Actors, the first content of the store, and what must hold.

    ``check`` raises Violation for a state in which something is wrong, ``check_end`` for one in which it stays wrong:
    no actor can go on. ``times`` are those of the clock (ms), ``may_pass`` says whether it may move to one of them;
    ``prompt`` actors read it at the moment of their last answer. If ``limit_ms`` is not 0, an activity that has read
    the clock writes nothing later than that: its function has been ended. With ``torn`` a query may see half a
    transaction.
    """

    name: str
    actors: tuple[Actor, ...]
    prepare: Callable[[Ports], None]
    check: Callable[[World], None]
    check_end: Callable[[World], None] = lambda _: None
    times: tuple[int, ...] = (0,)
    may_pass: Callable[[World, int], bool] = lambda *_: True
    deaths: int = 0
    repeats: int = 0
    torn: bool = False
    prompt: bool = True
    limit_ms: int = 0


@dataclass(frozen=True, slots=True)
class State:
    """A state of a model, in numbers that ``Explorer`` gave to the rows, notes and positions."""

    rows: tuple[int, ...]
    now: int
    queue: frozenset[tuple[str, QueueMessage]]
    notes: int
    torn: int
    positions: tuple[int, ...]
    deaths: int
    repeats: int


@dataclass
class Result:
    """How many states and steps a model has; a counterexample as steps and what is wrong, if there is one."""

    states: int = 0
    steps: int = 0
    ends: int = 0
    trace: list[str] = field(default_factory=list)
    wrong: str = ""


class _Numbers:
    """Gives equal values the same number."""

    def __init__(self) -> None:
        self.values: list[Any] = []
        self._numbers: dict[Hashable, int] = {}

    def of(self, value: object, key: Hashable) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self.values)
            self.values.append(value)
        return number


class Explorer:
    """Explores one model."""

    def __init__(self, model: Model, ports: Callable[[Channel, Model], Ports]) -> None:
        self._model = model
        self._ports = ports
        self._rows, self._notes, self._torn = _Numbers(), _Numbers(), _Numbers()
        self._answers, self._positions = _Numbers(), _Numbers()
        self._row_of_item: dict[int, int] = {}
        self._next: dict[int, Call | None] = {}
        self._checked: set[tuple[object, ...]] = set()

    def run(self) -> Result:
        """Explores all states, or until one is wrong."""
        result = Result()
        first = self._first()
        parents: dict[State, tuple[State, str] | None] = {first: None}
        waiting = deque([first])
        state, label = first, ""
        try:
            while waiting:
                state, label = waiting.popleft(), ""
                following = 0
                for label, make in self._choices(state):
                    after = make()
                    if after is None:
                        continue
                    following += 1
                    result.steps += 1
                    if after not in parents:
                        parents[after] = (state, label)
                        waiting.append(after)
                if not following:
                    label = ""
                    result.ends += 1
                    self._model.check_end(self._world(state))
        except Violation as violation:
            result.trace = [*_trace(parents, state), *([label] if label else [])]
            result.wrong = str(violation)
        result.states = len(parents)
        return result

    def _first(self) -> State:
        world = World(MemoryTable(lambda: 0), self._model.times[0], frozenset(), {}, {})
        world.items = MemoryTable(lambda: world.now)
        answers: list[object] = []
        while True:
            try:
                self._model.prepare(self._ports(Channel("setup", answers), self._model))
            except Pending as pending:
                answers.append(pending.call.effect(world, 0))
            else:
                break
        world.torn.clear()
        positions = tuple(self._position(actor, 0, ()) for actor in range(len(self._model.actors)))
        return self._state(world, positions, self._model.deaths, self._model.repeats)

    def _choices(self, state: State) -> Iterator[tuple[str, Callable[[], State | None]]]:
        """What can happen next: the steps of each actor, the faults, and that time passes."""
        for actor, position in enumerate(state.positions):
            call = self._call(position)
            if call is None:
                continue
            name = self._model.actors[actor].name
            for variant in range(call.variants):
                label = f"{name}: {call.label}" + (f" ({variant + 1})" if call.variants > 1 else "")
                yield label, lambda a=actor, c=call, v=variant: self._step(state, a, c, v)  # type: ignore[misc]
            if call.writes and state.repeats:
                yield (
                    f"{name}: {call.label}; the answer is lost",
                    lambda a=actor, c=call: self._step(state, a, c, 0, lost=True),  # type: ignore[misc]
                )
            if self._model.actors[actor].mortal and state.deaths and self._answers_of(position):
                yield f"{name}: dies", lambda a=actor: self._die(state, a)  # type: ignore[misc]
        later = [time for time in self._model.times if time > state.now]
        if later:
            yield f"the clock moves to {later[0]:,} ms", lambda: self._pass(state, later[0])

    def _step(self, state: State, actor: int, call: Call, variant: int, *, lost: bool = False) -> State | None:
        world = self._world(state)
        answer = call.effect(world, variant)
        if answer is BLOCKED:
            return None
        positions = list(state.positions)
        if lost:
            world.torn.pop(self._model.actors[actor].name, None)
        else:
            positions[actor] = self._advance(world, positions[actor], answer)
        return self._checked_state(world, tuple(positions), state.deaths, state.repeats - lost)

    def _advance(self, world: World, position: int, answer: object) -> int:
        """The actor's position after an answer, and after calls that take no time of their own."""
        position = self._after(position, answer)
        while (call := self._call(position)) is not None and call.at_once:
            position = self._after(position, call.effect(world, 0))
        return position

    def _die(self, state: State, actor: int) -> State:
        world = self._world(state)
        world.torn.pop(self._model.actors[actor].name, None)
        number, activity, _ = self._positions.values[state.positions[actor]]
        positions = list(state.positions)
        positions[actor] = self._position(number, activity + 1, ())
        return self._checked_state(world, tuple(positions), state.deaths - 1, state.repeats)

    def _pass(self, state: State, time: int) -> State | None:
        world = self._world(state)
        if not self._model.may_pass(world, time):
            return None
        world.now = time
        return self._checked_state(world, state.positions, state.deaths, state.repeats)

    def _after(self, position: int, answer: object) -> int:
        actor, activity, answers = self._positions.values[position]
        number = self._answers.of(answer, repr(answer))
        after = self._position(actor, activity, (*answers, number))
        if self._call(after) is None:  # this activity is over: the next one begins
            after = self._position(actor, activity + 1, ())
        return after

    def _answers_of(self, position: int) -> tuple[int, ...]:
        answers: tuple[int, ...] = self._positions.values[position][2]
        return answers

    def _position(self, actor: int, activity: int, answers: tuple[int, ...]) -> int:
        found = (actor, activity, answers)
        return self._positions.of(found, found)

    def _call(self, position: int) -> Call | None:
        """What the actor does next; None at the end of an activity."""
        if position not in self._next:
            self._next[position] = self._resume(position)
        return self._next[position]

    def _resume(self, position: int) -> Call | None:
        number, activity, answers = self._positions.values[position]
        actor = self._model.actors[number]
        if activity >= len(actor.activities):
            return None
        channel = Channel(f"{actor.name}{activity or ''}", [self._answers.values[answer] for answer in answers])
        try:
            _call(actor.activities[activity], self._ports(channel, self._model))
        except Pending as pending:
            return pending.call
        except Overloaded:
            return None  # an answer that every caller may get, and try again
        except (KeyboardInterrupt, Violation):
            raise
        except BaseException as error:
            raise Violation(f"{actor.name} gets {type(error).__name__}: {error}") from error
        return None

    def _world(self, state: State) -> World:
        items = MemoryTable(lambda: world.now)
        items.write(*(Put(self._rows.values[row]) for row in state.rows))
        torn = self._torn.values[state.torn]
        world = World(items, state.now, state.queue, dict(self._notes.values[state.notes]), dict(torn))
        return world

    def _checked_state(self, world: World, positions: tuple[int, ...], deaths: int, repeats: int) -> State:
        state = self._state(world, positions, deaths, repeats)
        seen = (state.rows, state.now, state.notes)
        if seen not in self._checked:
            self._model.check(world)
            self._checked.add(seen)
        return state

    def _state(self, world: World, positions: tuple[int, ...], deaths: int, repeats: int) -> State:
        rows = sorted(self._row(item) for rows in world.items.partitions.values() for item in rows.values())
        notes = self._notes.of(world.notes, repr(sorted(world.notes.items())))
        torn = self._torn.of(world.torn, repr(sorted(world.torn.items())))
        return State(tuple(rows), world.now, world.queue, notes, torn, positions, deaths, repeats)

    def _row(self, item: Item) -> int:
        known = self._row_of_item.get(id(item))
        if known is None:
            known = self._rows.of(item, repr(sorted(item.items())))
            if self._rows.values[known] is item:
                self._row_of_item[id(item)] = known  # its id stays its own, because it is kept
        return known


def _trace(parents: dict[State, tuple[State, str] | None], state: State) -> list[str]:
    found: list[str] = []
    step = parents[state]
    while step:
        found.append(step[1])
        step = parents[step[0]]
    return found[::-1]
