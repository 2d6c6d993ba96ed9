"""What a wait writes, as docs/waiting.md promises: the sleep's write calls, the question's, the event's."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.services.callbacks import find_event_address, store_event
from tests.costs.counting import CountingWorld
from tests.echo import agent_of
from tests.world import MINUTE_MS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from a2a_serverless import TaskContext

urls: list[str] = []


async def short_sleep(task: TaskContext) -> None:
    await task.sleep("nap", 600)


async def long_sleep(task: TaskContext) -> None:
    await task.sleep("nap", 7200)


async def short_sleep_beside_a_long_one(task: TaskContext) -> None:
    await asyncio.gather(task.sleep("nap", 600), task.sleep("other", 800))


async def time_limit(task: TaskContext) -> None:
    with suppress(TimeoutError):
        async with task.timeout("limit", 600):
            await task.sleep("long", 100_000)


async def question(task: TaskContext) -> None:
    with suppress(TimeoutError):
        await task.ask("Which?", timeout_s=600)


async def question_with_two_reminders(task: TaskContext) -> None:
    with suppress(TimeoutError):
        await task.ask("Which?", timeout_s=600, remind_s=250)


async def event(task: TaskContext) -> None:
    callback = await task.callback("paid")
    urls.append(callback.url)
    await callback.received()


def writes(wait: Callable[[TaskContext], Awaitable[None]], times: int) -> int:
    """Write calls of a task that waits so often."""

    async def work(task: TaskContext) -> None:
        for _ in range(times):
            await wait(task)

    world = CountingWorld([agent_of(work)])
    world.send(push=False, agent="echo")
    urls.clear()
    for _ in range(times if wait is event else 0):
        world.wait(MINUTE_MS)
        address = find_event_address(world.service, urls[-1].rpartition("/")[2])
        assert store_event(world.service, address, {}, b"{}")
    world.settle()
    return world.used["writes"]


@pytest.mark.parametrize(
    ("wait", "each"),
    [
        (short_sleep, 2),
        (long_sleep, 3),
        (short_sleep_beside_a_long_one, 6),
        (time_limit, 4),
        (question, 4),
        (question_with_two_reminders, 13),
        (event, 4),
    ],
)
def test_a_wait_costs_the_number_of_writes_in_the_table(
    wait: Callable[[TaskContext], Awaitable[None]], each: int
) -> None:
    assert (writes(wait, 5) - writes(wait, 1)) / 4 == each
