"""Plays a conversation: undisturbed, killed before and after store calls, and handed over at seconds."""

from __future__ import annotations

import traceback
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from a2a_serverless import Budget, TaskState
from a2a_serverless.domain.current_task import run_fields
from a2a_serverless.domain.errors import TaskNotFound
from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.model import TaskKey
from a2a_serverless.domain.record_names import act_path
from a2a_serverless.domain.values import ValueScope, load_value
from a2a_serverless.services.callbacks import find_event_address, store_event
from tests.echo import agent_of
from tests.faults.plans import Count, NoFaults, kill_at
from tests.frameworks.kills import PORTS
from tests.replay.programs import (
    DAY_S,
    EVENT_S,
    SLOW,
    Effects,
    Operation,
    Player,
    answer_to,
    in_order,
    outcome_of,
    short,
)
from tests.replay.timelines import timeline_faults
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from random import Random

    from a2a_serverless import Agent, Task, TaskContext
    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.values import StoredText
    from tests.faults.plans import Faults

MOST_ANSWERS = 30
PLENTY = 10_000
MOST_VALUES = 100
HAND_OVER_MS = 1000


def is_step_of(name: str, label: str) -> bool:
    """Whether this is the name of the step of an operation, or of an ending of the step of an item."""
    outer, _, number = label.rpartition(".")
    item = f"map {outer} > {number}"
    return name.rpartition(" > ")[2] == f"step {label}" or name in {item, f"@raised/{item}/1"}


def count_raised(names: Iterable[str], label: str) -> int:
    """How many tries of the step of an operation have ended with an error."""
    raised = (act_path(name) for name in names if name.startswith("@raised/"))
    return sum(is_step_of(path, label) for path in raised)


@dataclass(frozen=True)
class Conversation:
    """An agent with its client, and what they must come to.

    ``make`` returns the agent; it calls an agent ``child``. ``answer`` is the client's answer to a question, its n-th.
    ``stores`` is whether the step of a name stores the work with a label; steps whose names repeat have none.
    """

    make: Callable[[Effects], Agent]
    expected: Mapping[str, Any]
    answer: Callable[[str, int], str] = answer_to
    stores: Callable[[str, str], bool] = is_step_of
    ends: TaskState = TaskState.COMPLETED


@dataclass(frozen=True)
class Played:
    """``outcome`` is as the oracle's; ``wrong`` are effects that must not happen; ``done`` counts effects by label."""

    outcome: dict[str, Any]
    wrong: list[str]
    done: Counter[str]
    lasted_ms: int


def conversation_of(operations: Sequence[Operation], most: int | None = None) -> Conversation:
    """The conversation with an agent whose own function plays the program, with a budget of ``most`` steps."""

    def make(effects: Effects) -> Agent:
        async def work(task: TaskContext) -> str:
            return str(await Player(task, effects).play(operations))

        return replace(agent_of(work), budget=Budget(usd=1000, steps=PLENTY if most is None else most))

    expected = outcome_of(list(operations), most=most)
    is_spent = str(expected["answer"]).startswith("The budget of the agent is spent")
    return Conversation(make, expected, ends=TaskState.FAILED if is_spent else TaskState.COMPLETED)


def plan_event(world: World, url: str, body: str) -> None:
    """Another system sends an event to the address, after a while."""

    def send() -> None:
        with suppress(TaskNotFound):  # the task has ended: it got an earlier one
            assert store_event(
                world.service, find_event_address(world.service, url.rpartition("/")[2]), {}, body.encode()
            )

    world.plan(EVENT_S * 1000, send)


async def child(task: TaskContext) -> str:
    """The agent that programs call."""
    if task.text().endswith(SLOW):
        await task.sleep("for long", 5 * DAY_S)
    return f"child of {task.text()}"


def play(conversation: Conversation, faults: Faults, hand_over_at: int | None = None) -> Played:
    """Plays the conversation to its end. A run hands over ``hand_over_at`` ms after the beginning."""
    effects = Effects()
    agent = conversation.make(effects)
    world = World([agent, agent_of(child, "child")], faults)
    began, replaced = world.now, list[int]()

    def is_replaced() -> bool:
        if hand_over_at is None or replaced or world.now - began < hand_over_at:
            return False
        replaced.append(1)
        return True

    errors = list[str]()

    def note(key: TaskKey, error: BaseException, reference: str) -> None:
        del key, reference
        errors.extend(traceback.format_exception(error))

    effects.submit = partial(plan_event, world)
    world.engine = replace(world.engine, is_replaced=is_replaced, on_error=note)
    task = world.send("go", push=False, agent=agent.id)
    key = TaskKey(ME.tenant, ME.owner, task.id)

    effects.is_stored = lambda label: any(conversation.stores(name, label) for name in world.table.read_steps(key))
    effects.count_raised = lambda label: count_raised(world.table.read_steps(key), label)
    world.settle()
    asked = 0
    while (now := world.client(lambda: world.get(task.id, agent.id))).status.state is TaskState.INPUT_REQUIRED:
        asked += 1
        if asked > MOST_ANSWERS:
            effects.wrong.append(f"it asks more than {MOST_ANSWERS} times")
            break
        question = now.status.message.text() if now.status.message else ""
        answer = conversation.answer(question, asked)
        world.send(answer, push=False, agent=agent.id, task_id=task.id, context_id=task.context_id)
        world.settle()
    if now.status.state is not conversation.ends:
        effects.wrong.append(f"the task is {now.status.state}: {''.join(errors)}")
    outcome = outcome_of_task(now, world.events(task.id), world.table.list_values(ValueScope(key), "", "", MOST_VALUES))
    effects.wrong += world.client(lambda: [*_wrong_calls(world), *timeline_faults(world, key, agent.id)])
    return Played(outcome | {"winners": effects.winners}, effects.wrong, Counter(effects.done), world.now - began)


def _wrong_calls(world: World) -> Iterator[str]:
    """The called tasks that were made twice, and those of losers of a race that were not canceled."""
    entries = world.table.list_page(ME, None, None, 0, 1000)[0]
    called = [world.get(entry.task, "child") for entry in entries if entry.agent == "child"]
    for task in called:
        text, state = task.history[0].text(), task.status.state
        if state is not (TaskState.CANCELED if text.endswith(SLOW) else TaskState.COMPLETED):
            yield f"the called task {text} is {state}"
    if len(called) != len({task.history[0].text() for task in called}):
        yield "a call has made two tasks"


def outcome_of_task(task: Task, events: Sequence[Event], values: Sequence[StoredText]) -> dict[str, Any]:
    """What a task has come to, as the oracle says what it must. A question that was open and is asked again is one."""
    statuses = [(event.state, event.message) for event in events if isinstance(event, StatusEvent)]
    told = {message.message_id: (state, message) for state, message in statuses if message}
    said = [(state, part.text) for state, message in told.values() for part in message.parts if part.text is not None]
    progress = [text for state, text in said if state is TaskState.WORKING]
    usage: Any = (task.metadata or {}).get("a2a-serverless/usage", {})
    return {
        "answer": task.status.message.text() if task.status.message else "",
        "asked": in_order([text for state, text in said if state is TaskState.INPUT_REQUIRED]),
        "progress": Counter(progress),
        "order": progress,
        "artifacts": {artifact.name: short(artifact.text()) for artifact in task.artifacts if artifact.text()},
        "usage": {model: amounts.get("tokens", amounts.get("requests")) for model, amounts in usage.items()},
        "values": {one.key: load_value(one.text) for one in values},
    }


def effects_of_run(effects: Effects, table: Any, key: TaskKey) -> Effects:
    """The effects of a run that begins now, which another one may overtake. ``table`` is read without faults.

    A result that another run has stored since does not count for this one: its write came late.
    """
    own, read = run_fields()["run"], {*table.read_steps(key)}

    def is_current() -> bool:
        snapshot = table.read_head(key)
        return snapshot is not None and snapshot.head.fence == own

    def names() -> list[str]:
        return [name for name, one in table.read_steps(key).items() if name in read or one.fence in {0, own}]

    def is_stored(label: str) -> bool:
        return any(is_step_of(name, label) for name in names())

    def raised(label: str) -> int:
        return count_raised(names(), label)

    return replace(effects, is_stored=is_stored, count_raised=raised, is_current=is_current)


def compare(operations: Sequence[Operation], effects: Effects, task: Task, table: Any, key: TaskKey) -> Iterator[str]:
    """How a completed task differs from what it must come to, whoever won its races."""
    loaded = table.read_log(key)
    outcome = outcome_of_task(task, loaded[1], table.list_values(ValueScope(key), "", "", MOST_VALUES))
    outcome["winners"] = effects.winners
    for member, wanted in outcome_of(operations, effects.winners).items():
        if outcome[member] != wanted:
            yield f"{member} is {outcome[member]}, not {wanted}: {' '.join(map(str, operations))}"


def differences(conversation: Conversation, chance: Random, most: int) -> Iterator[str]:
    """How the undisturbed play differs from what it must come to, or else at most ``most`` interrupted ones."""
    calls = Count(PORTS)
    first = play(conversation, calls)
    wrong = [f"undisturbed: {label} was done {times} times" for label, times in first.done.items() if times > 1]
    wrong += _difference("undisturbed", conversation.expected, first)
    yield from wrong
    plays = [] if wrong else [*_kills(calls.calls), *_hand_overs(first.lasted_ms)]
    for where, faults, at in plays if len(plays) <= most else chance.sample(plays, most):
        yield from _difference(where, conversation.expected, play(conversation, faults, at))


def _kills(calls: Sequence[str]) -> Iterator[tuple[str, Faults, int | None]]:
    for number, call in enumerate(calls, 1):
        for late in (False, True):
            yield (
                f"killed {'after' if late else 'before'} call {number}, {call}",
                kill_at(number, late=late, ports=PORTS),
                None,
            )


def _hand_overs(lasted_ms: int) -> Iterator[tuple[str, Faults, int | None]]:
    for at in range(HAND_OVER_MS // 2, min(lasted_ms, 60 * HAND_OVER_MS), HAND_OVER_MS):
        yield f"handed over at {at} ms", NoFaults(), at


def _difference(where: str, expected: Mapping[str, Any], played: Played) -> Iterator[str]:
    for member, value in expected.items():
        if played.outcome[member] != value:
            yield f"{where}: {member} is {played.outcome[member]}, not {value}"
    for wrong in played.wrong:
        yield f"{where}: {wrong}"
