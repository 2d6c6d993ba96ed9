"""The timeline of a task is what ran: its runs with their ends, and what it waited for, from the stores alone."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from a2a_serverless import Retry, Step
from a2a_serverless.domain.periods import RunEnd
from a2a_serverless.domain.timeline import Span, SpanKind
from a2a_serverless.services.callbacks import find_event_address, store_event
from a2a_serverless.services.timelines import read_timeline
from a2a_serverless.store.stores import agent_pause
from tests.echo import agent_of
from tests.world import HOUR_MS, ME, MINUTE_MS, World

if TYPE_CHECKING:
    from a2a_serverless import TaskContext

S = 1000
AGENT = agent_pause("echo")


def spans_of(world: World, task: str, *kinds: SpanKind) -> list[Span]:
    """The spans of a task of these kinds, or all of them."""
    timeline = read_timeline(world.table, world.table, ME.key(task), "echo", world.now)
    return [span for span in timeline.spans if span.kind in (kinds or SpanKind)]


def seconds(world: World, task: str, *kinds: SpanKind) -> list[tuple[str, str, int | None, int | None]]:
    """The spans of these kinds with their times in seconds from the beginning of the task."""
    head = world.table.read_head(ME.key(task)).head

    def since(at: int | None) -> int | None:
        return None if at is None else round((at - head.created_at) / S)

    return [
        (span.kind.value, span.reason or span.name, since(span.began_at), since(span.ended_at))
        for span in spans_of(world, task, *kinds)
    ]


RUNS = (SpanKind.RUN, SpanKind.SUSPENDED)


def test_a_sleep_is_a_suspension_between_two_runs_and_keeps_its_bar() -> None:
    async def naps(task: TaskContext) -> None:
        await task.sleep("nap", 20)

    world = World([agent_of(naps)])
    task = world.send("hello", push=False).id
    world.wait(5 * S)
    assert seconds(world, task, *RUNS, SpanKind.SLEEP) == [
        ("run", "waits", 0, 0),
        ("suspended", "", 0, None),
        ("sleep", "nap", 0, None),
    ]
    world.settle()
    assert seconds(world, task, *RUNS, SpanKind.SLEEP) == [
        ("run", "waits", 0, 0),
        ("suspended", "", 0, 20),
        ("sleep", "nap", 0, 20),
        ("run", "ended", 20, 20),
    ]


def test_an_event_and_a_question_last_until_they_come() -> None:
    urls: list[str] = []

    async def waits(task: TaskContext) -> None:
        paid = await task.callback("paid")
        urls.append(paid.url)
        await paid.received()
        await task.ask("Which colour?", remind_s=60)

    world = World([agent_of(waits)])
    task = world.send("hello", push=False).id
    world.wait(30 * S)
    address = find_event_address(world.service, urls[0].rpartition("/")[2])
    assert store_event(world.service, address, {}, b"{}")
    world.wait(150 * S)
    assert [one[2:] for one in seconds(world, task, SpanKind.QUESTION)] == [(30, None)]
    world.send("red", task_id=task, push=False)
    world.settle()
    (question,) = seconds(world, task, SpanKind.QUESTION)
    assert (question[2:], seconds(world, task, SpanKind.EVENT)) == ((30, 180), [("event", "paid", 0, 30)])
    assert [one[2:] for one in seconds(world, task, SpanKind.SUSPENDED)] == [(0, 30), (30, 90), (90, 150), (150, 180)]


def test_a_wait_that_the_code_gives_up_was_over_then_and_no_later_run_lengthens_it() -> None:
    async def races(task: TaskContext) -> None:
        long = asyncio.ensure_future(task.sleep("long", 5000))
        await task.sleep("short", 20)
        long.cancel()
        with suppress(asyncio.CancelledError):
            await long
        await task.sleep("last", 70)

    world = World([agent_of(races)])
    task = world.send("hello", push=False).id
    world.settle()
    assert sorted(seconds(world, task, SpanKind.SLEEP)) == [
        ("sleep", "last", 20, 90),
        ("sleep", "long", 0, 20),
        ("sleep", "short", 0, 20),
    ]


def test_a_wait_to_which_no_later_run_comes_was_over_with_the_suspension() -> None:
    errors = [OSError("down")]

    async def fetch() -> str:
        if errors:
            raise errors.pop()
        return "fetched"

    async def fetches(task: TaskContext) -> None:
        await task.step(Step("fetch", retry=Retry(first_s=60)), fetch)

    world = World([agent_of(fetches)])
    task = world.send("hello", push=False).id
    world.settle()
    retry, _ = seconds(world, task, SpanKind.RETRY), None
    assert [one[:3] for one in retry] == [("retry", "fetch/2", 0)]
    (suspended,) = seconds(world, task, SpanKind.SUSPENDED)
    assert suspended[2:] == retry[0][2:]


def test_a_handed_over_run_says_so_and_its_open_waits_go_on() -> None:
    async def works(task: TaskContext) -> None:
        sleep = asyncio.ensure_future(task.sleep("nap", 100))
        await task.step("one", asyncio.sleep, 50)
        await task.step("two", asyncio.sleep, 30)
        await sleep

    world = World([agent_of(works)])
    world.run_ms = 80_000
    task = world.send("hello", push=False).id
    world.settle()
    runs = seconds(world, task, SpanKind.RUN)
    assert [one[1] for one in runs] == ["handed-over", "waits", "ended"]
    assert seconds(world, task, SpanKind.SLEEP) == [("sleep", "nap", 0, 100)]


def test_a_pause_before_and_within_a_run_is_a_wait() -> None:
    async def works(task: TaskContext) -> None:
        await task.step("one", asyncio.sleep, 300)
        await task.step("two", asyncio.sleep, 5)

    world = World([agent_of(works)])
    world.table.add_pause(AGENT, world.now)
    task = world.send("hello", push=False).id
    world.wait(2 * MINUTE_MS)
    assert seconds(world, task, SpanKind.PAUSE)[0][:3] == ("pause", "agent", 0)
    world.table.remove_pause(AGENT)
    world.wait(4 * MINUTE_MS)
    assert spans_of(world, task)[-1].kind is SpanKind.RUN
    world.table.add_pause(AGENT, world.now)
    world.wait(10 * MINUTE_MS)
    world.table.remove_pause(AGENT)
    world.settle()
    bars = spans_of(world, task, SpanKind.PAUSE)
    assert len(bars) == 2
    suspended = spans_of(world, task, SpanKind.SUSPENDED)
    assert {bar.ended_at for bar in bars} <= {one.ended_at for one in suspended}
    assert {bar.began_at for bar in bars} <= {one.began_at for one in suspended}


def test_the_question_of_a_canceled_task_lasts_until_the_cancel() -> None:
    async def asks(task: TaskContext) -> None:
        await task.ask("Which colour?")

    world = World([agent_of(asks)])
    task = world.send("hello", push=False).id
    world.wait(40 * S)
    world.cancel(task)
    world.settle()
    ((*_, began, ended),) = seconds(world, task, SpanKind.QUESTION)
    assert (began, ended) == (0, 40)
    assert seconds(world, task, *RUNS)[-1] == ("suspended", "", 0, 40)


@pytest.mark.parametrize("hours", [1, 30])
def test_a_long_task_has_its_last_runs_and_the_sums_of_the_others(hours: int) -> None:
    async def naps(task: TaskContext) -> None:
        for _ in range(hours):
            await task.sleep("nap", 3600)

    world = World([agent_of(naps)])
    task = world.send("hello", push=False).id
    world.settle()
    timeline = read_timeline(world.table, world.table, ME.key(task), "echo", world.now)
    runs = [span.name for span in timeline.spans if span.kind is SpanKind.RUN]
    assert runs == [str(number) for number in range(max(1, hours - 18), hours + 2)]
    assert (timeline.earlier_runs is not None) is (hours > 20)
    sleeps = [span for span in timeline.spans if span.kind is SpanKind.SLEEP]
    assert [round((span.ended_at or 0) - span.began_at, -3) for span in sleeps] == [HOUR_MS] * hours
    assert {span.reason for span in timeline.spans if span.kind is SpanKind.RUN} == {RunEnd.WAITS, RunEnd.ENDED}
