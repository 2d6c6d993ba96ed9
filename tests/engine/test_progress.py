"""Many progress messages become few events: the first at once, the others joined, each once, in any run."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from a2a_serverless.domain.events import StatusEvent
from a2a_serverless.domain.progress import percent_of
from a2a_serverless.engine.chunks import DELAY_S, SIZE
from a2a_serverless.protocol.v1 import Message, Part, Role, TaskState
from tests.echo import agent_of
from tests.faults.plans import At, Count, NoFaults, die, fail
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.task_context import TaskContext

DELAY_MS = int(DELAY_S * 1000)
HUNDRED = [f"{number} of 100" for number in range(1, 101)]


def played(work: Any, faults: Any = None) -> list[StatusEvent]:
    """The progress events of a task."""
    world = World([agent_of(work)], faults=faults or NoFaults())
    task = world.send("hello", push=False)
    world.settle()
    read = world.client(lambda: world.table.read_log(ME.key(task.id)))
    assert read
    assert read[0].state is TaskState.COMPLETED
    statuses = [event for event in read[1] if isinstance(event, StatusEvent)]
    return [event for event in statuses if event.state is TaskState.WORKING and event.message]


def texts(events: list[StatusEvent]) -> list[object]:
    return [part.value for event in events if event.message for part in event.message.parts]


async def counting(task: TaskContext) -> None:
    for text in HUNDRED:
        await task.report_progress(text)
        await asyncio.sleep(0.01)


async def in_parts(task: TaskContext) -> None:
    """Says things, equal ones too, inside and outside of steps, and between them."""
    for number in range(3):
        await task.report_progress("again")
        await task.report_progress(f"{number}")

        async def work() -> None:
            await task.report_progress("again")
            await task.report_progress("inside")

        await task.step(f"step {number}", work)
    await task.report_progress("last")


def test_a_hundred_messages_in_a_second_become_few_events_and_none_is_lost() -> None:
    events = played(counting)
    assert texts(events) == HUNDRED
    assert len(events) <= 6
    assert texts(events[:1]) == HUNDRED[:1]
    ids = [message_id for event in events if event.message for message_id in (*event.joined, event.message.message_id)]
    assert len({*ids}) == len(ids) == len(HUNDRED)


def test_messages_that_come_seldom_are_written_alone() -> None:
    async def seldom(task: TaskContext) -> None:
        for number in range(3):
            await task.report_progress(str(number))
            await asyncio.sleep(2 * DELAY_S)

    events = played(seldom)
    assert texts(events) == ["0", "1", "2"]
    assert [event.joined for event in events] == [(), (), ()]


def test_messages_do_not_wait_for_more_than_a_quarter_of_a_second_or_16_kilobytes() -> None:
    async def large(task: TaskContext) -> None:
        await task.report_progress("small")
        for _ in range(4):
            await task.report_progress("x" * (SIZE // 2))
        await task.report_progress("late")
        await asyncio.sleep(10)

    world_events = played(large)
    assert [len(event.message.parts) for event in world_events if event.message] == [1, 2, 2, 1]
    assert world_events[-1].at - world_events[0].at <= 2 * DELAY_MS


def test_of_joined_metadata_the_last_of_a_name_counts() -> None:
    async def percents(task: TaskContext) -> None:
        await task.report_progress("begun")
        for percent in (10, 20):
            await task.report_progress(f"{percent} %", metadata={"percent": percent, str(percent): True})

    message = played(percents)[-1].message
    assert isinstance(message, Message)
    assert message.metadata == {"percent": 20, "10": True, "20": True}


def test_joined_messages_have_the_extensions_and_references_of_all_each_once() -> None:
    async def work(task: TaskContext) -> None:
        await task.report_progress("begun")
        for names in (["a", "b"], ["b", "c"], []):
            uris = tuple(f"https://example.com/{name}" for name in names)
            about = Message(message_id="any", role=Role.AGENT, parts=(Part(text="x"),), extensions=uris)
            await task.report_progress(about.model_copy(update={"reference_task_ids": tuple(names)}))

    message = played(work)[-1].message
    assert isinstance(message, Message)
    assert message.extensions == tuple(f"https://example.com/{name}" for name in "abc")
    assert message.reference_task_ids == ("a", "b", "c")


def test_progress_in_percent_is_in_the_metadata_under_a_name_of_its_own() -> None:
    async def work(task: TaskContext) -> None:
        await task.report_progress("none")
        for percent in (0, 12.5, 100):
            await asyncio.sleep(1)
            await task.report_progress("reading", metadata={"page": 1}, percent=percent)

    messages = [event.message for event in played(work) if event.message]
    assert [percent_of(message.metadata) for message in messages] == [None, 0, 12.5, 100]
    assert messages[1].metadata == {"page": 1, "a2a-serverless/percent": 0}


@pytest.mark.parametrize("percent", [-0.1, 100.1, float("nan"), float("inf")])
def test_progress_is_from_0_to_100_percent(percent: float) -> None:
    refused = list[str]()

    async def work(task: TaskContext) -> None:
        try:
            await task.report_progress("reading", percent=percent)
        except ValueError as error:
            refused.append(str(error))

    assert played(work) == []
    assert refused == [f"progress is from 0 to 100 percent, not {percent}"]


@pytest.mark.parametrize("value", [None, "12", -1, 101, [5], {"percent": 5}])
def test_metadata_of_another_agent_that_is_no_percentage_is_ignored(value: Any) -> None:
    assert percent_of({"a2a-serverless/percent": value}) is None
    assert percent_of({"percent": 5}) is None


@pytest.mark.parametrize("late", [False, True], ids=["before the call", "after it took effect"])
@pytest.mark.parametrize("what", [die, fail])
@pytest.mark.parametrize("work", [counting, in_parts])
def test_rule_07_each_progress_message_is_in_the_log_once_after_a_fault_at_any_call(
    work: Any,
    what: Callable[[], None],
    late: bool,  # noqa: FBT001
) -> None:
    count = Count()
    wanted = texts(played(work, count))
    for number in range(3, len(count.calls)):
        assert texts(played(work, At(number, late=late, what=what))) == wanted, number
