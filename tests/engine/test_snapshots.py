"""Snapshots of long logs are stored while they grow, so that nobody reads one whole; short ones cost nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.events import event_size
from a2a_serverless.domain.replay import replay
from a2a_serverless.engine.run_session import SNAPSHOT_BYTES
from a2a_serverless.protocol.v1 import TaskState
from tests.echo import agent_of
from tests.faults.plans import At, Count, NoFaults, die, fail
from tests.world import ME, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.domain.head import Head
    from a2a_serverless.domain.task_context import TaskContext
    from a2a_serverless.protocol.v1 import Task

CHUNK = 32 * 1024
LONG = 60


async def write(task: TaskContext, chunks: int) -> None:
    for _ in range(chunks):
        await task.emit("novel.txt", "x" * CHUNK, append=True)


async def novel(task: TaskContext) -> None:
    await write(task, LONG)


async def note(task: TaskContext) -> None:
    await write(task, SNAPSHOT_BYTES // CHUNK - 1)


async def talker(task: TaskContext) -> None:
    for _ in range(LONG):
        await task.report_progress("x" * CHUNK)


def played(work: Callable[[TaskContext], object], faults: NoFaults | At) -> tuple[World, Task, Head]:
    world = World([agent_of(work)], faults=faults)
    task = world.send("hello", push=False)
    world.settle()
    found = world.table.read_log(ME.key(task.id))
    return world, world.get(task.id), found[0]


@pytest.mark.parametrize("work", [novel, talker])
def test_rule_04_no_more_lies_behind_the_last_snapshot_than_in_it_or_half_a_megabyte(
    work: Callable[[TaskContext], object],
) -> None:
    count = Count()
    world, task, head = played(work, count)
    rest = sum(event_size(event) for event in world.events(task.id)[head.snapshot_position :])
    assert rest < max(SNAPSHOT_BYTES, head.snapshot_bytes) + CHUNK
    assert count.calls.count("table.store_snapshot") == 2, "after half a megabyte, and after as much again"


def test_the_snapshots_of_a_long_text_have_at_most_twice_what_was_emitted() -> None:
    async def long_novel(task: TaskContext) -> None:
        await write(task, 8 * LONG)

    world, task, head = played(long_novel, NoFaults())
    emitted = 8 * LONG * CHUNK
    assert len(world.get(task.id).artifacts[0].text()) == emitted
    assert sum(map(len, world.table.blobs.content.values())) <= 2 * emitted
    assert head.snapshot_bytes >= emitted // 2 - CHUNK


def test_an_artifact_that_is_written_anew_has_small_snapshots_at_short_distances() -> None:
    async def rewrites(task: TaskContext) -> None:
        for _ in range(LONG):
            await task.emit("page.txt", "x" * CHUNK)

    count = Count()
    _, _, head = played(rewrites, count)
    assert head.snapshot_bytes < 2 * CHUNK
    assert count.calls.count("table.store_snapshot") == LONG * CHUNK // SNAPSHOT_BYTES


def test_a_log_below_half_a_megabyte_is_never_folded() -> None:
    count = Count()
    _, task, head = played(note, count)
    assert (task.status.state, head.snapshot) == (TaskState.COMPLETED, "")
    assert "table.store_snapshot" not in count.calls


def test_a_snapshot_counts_the_events_of_earlier_runs() -> None:
    async def asks(task: TaskContext) -> None:
        await write(task, SNAPSHOT_BYTES // CHUNK - 1)
        await task.ask("More?")
        await write(task, 2)

    world = World([agent_of(asks)])
    task = world.send("hello", push=False)
    world.settle(1000)
    world.send("yes", task_id=task.id, push=False)
    world.settle()
    assert world.table.read_log(ME.key(task.id))[0].snapshot_position > 0


@pytest.mark.parametrize("late", [False, True], ids=["before the snapshot is stored", "before the head names it"])
@pytest.mark.parametrize("what", [die, fail])
def test_a_death_around_a_fold_loses_and_doubles_nothing(what: Callable[[], None], late: bool) -> None:  # noqa: FBT001
    world, task, head = played(novel, At(1, late=late, what=what, only="table.store_snapshot"))
    assert task == replay(task.id, task.context_id, world.events(task.id))
    assert [(len(one.parts), len(one.text())) for one in task.artifacts] == [(1, LONG * CHUNK)]
    assert (task.status.state, head.snapshot_position > 0) == (TaskState.COMPLETED, True)
