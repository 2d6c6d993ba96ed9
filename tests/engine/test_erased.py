"""A run sleeps at any of its calls while its task is canceled and erased. It leaves nothing."""

from __future__ import annotations

from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.errors import TaskNotCancelable
from a2a_serverless.store import keys
from a2a_serverless.store.fence import Fence
from a2a_serverless_tools.operators.erasure import ERASE_AFTER_MS
from a2a_serverless_tools.operators.erasure_store import ErasureStore
from tests.echo import agent_of
from tests.faults.plans import At
from tests.removed_guards import RemovedGuard
from tests.world import ME, World

if TYPE_CHECKING:
    from a2a_serverless.domain.task_context import TaskContext

UNFENCED = RemovedGuard(
    "erased task",
    "a run whose lease is over writes only if it has its task",
    ((Fence, "checks", lambda _: []), (Fence, "is_lost", lambda _: False)),
)


async def write(task: TaskContext) -> str:
    await task.emit("a", "chunk")
    result = await task.step("step", int, "1")
    await task.store.put("key", result)
    await task.report_progress("half")
    await task.record_usage("model", tokens=1)
    return "done"


def left_after_sleeping_at(number: int, *, late: bool) -> tuple[list[str], list[str]]:
    """The call at which the run slept, and the sort keys of what the task has in the table afterwards."""

    def sleep() -> None:
        with suppress(TaskNotCancelable):
            world.cancel(key.task)
        world.elsewhere(ERASE_AFTER_MS)
        ErasureStore(world.table.items).erase_task(key)

    faults = At(late=late, what=sleep)
    world = World([agent_of(write)], faults=faults)
    key = ME.key(world.send("begin", push=False).id)
    world.queue.clear()
    faults.after_now(number)
    world.survives(lambda: world.run(key))
    return faults.met, sorted(world.table.items.partitions.get(keys.task(key), {})) if faults.met else []


def test_a_run_that_slept_through_its_task_s_erasure_leaves_nothing() -> None:
    found = [left_after_sleeping_at(number, late=late) for late in (False, True) for number in range(1, 25)]
    assert {"table.store_step", "table.append_chunk", "table.append"} <= {call for met, _ in found for call in met}
    assert [left for _, left in found if left] == []


@pytest.mark.parametrize("guard", [UNFENCED, nullcontext])
def test_only_the_fence_keeps_a_run_from_writing_for_an_erased_task(guard: RemovedGuard) -> None:
    with guard():
        found = [left_after_sleeping_at(number, late=False)[1] for number in range(1, 25)]
    assert any(found) == (guard is UNFENCED)
