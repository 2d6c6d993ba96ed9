"""The chain of agents under faults: whatever dies and however messages come, artifacts are the undisturbed run's."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import TYPE_CHECKING

import pytest

from a2a_serverless.domain.events import ArtifactEvent
from a2a_serverless.protocol.v1 import (
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    Task,
    TaskPushNotificationConfig,
    TaskState,
)
from tests.faults.plans import Count, Faults, UnreliableQueue, kill_at
from tests.sample_agents.sketches import SKETCHED as SHIPPED
from tests.sample_agents.test_writing_agents import ENGLISH
from tests.world import HOOK, ME, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from a2a_serverless.ports.system import Queues
    from a2a_serverless.testing.memory import MemoryQueues

REQUEST = (Part(text=ENGLISH), Part(data={"picture": "a lighthouse by the sea"}))
SAMPLE = 24


def told(faults: Faults, between: Callable[[MemoryQueues], Queues] | None = None) -> tuple[World, str]:
    world = World(SHIPPED, faults=faults, between=between)
    message = Message(message_id="the-message", role=Role.USER, parts=REQUEST)
    request = SendMessageRequest(
        message=message,
        configuration=SendMessageConfiguration(
            return_immediately=True, task_push_notification_config=TaskPushNotificationConfig(url=HOOK)
        ),
    )
    task_id = world.sent(request, "orchestrator").id
    world.settle()
    return world, task_id


def made(task: Task) -> dict[str | None, list[tuple[str, object, str | None]]]:
    """What the client gets, without ids."""
    return {one.name: [(part.kind, part.value, part.media_type) for part in one.parts] for one in task.artifacts}


@cache
def undisturbed() -> dict[str | None, list[tuple[str, object, str | None]]]:
    world, task_id = told(Count())
    return made(world.get(task_id, "orchestrator"))


@cache
def calls() -> int:
    count = Count()
    told(count)
    return len(count.calls)


def what_is_wrong(world: World, task_id: str) -> str:
    """In words; nothing when all is as it would have been undisturbed."""
    task = world.get(task_id, "orchestrator")
    if task.status.state is not TaskState.COMPLETED:
        return f"the task is {task.status.state}"
    if made(task) != undisturbed():
        return "the artifacts differ"
    entries = world.table.list_page(ME, task.context_id, None, 0, 100)[0]
    if sorted(entry.agent for entry in entries) != sorted(agent.id for agent in SHIPPED):
        return f"{len(entries)} tasks were made"
    for entry in entries:
        emits = [(one.artifact.name, one.emits) for one in world.events(entry.task) if isinstance(one, ArtifactEvent)]
        if len(emits) != len(set(emits)):
            return f"a chunk of {entry.agent} is doubled"
    return ""


def test_undisturbed_the_chain_gives_all_it_was_asked_for() -> None:
    assert set(undisturbed()) == {"outline.json", "document.md", "summary.md", "lighthouse_image.png", "report.json"}


@pytest.mark.parametrize("seed", range(SAMPLE))
def test_a_death_at_any_call_of_the_chain_changes_nothing_of_what_it_makes(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    number = calls() * seed // SAMPLE + chance.randint(1, calls() // SAMPLE)
    faults = kill_at(number, late=chance.random() < 0.5)
    assert what_is_wrong(*told(faults)) == ""
    assert faults.met


@pytest.mark.parametrize("seed", range(12))
def test_deaths_among_doubled_lost_and_late_messages_change_nothing_of_what_it_makes(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - a seed, not a secret
    numbers = [chance.randint(1, calls()) for _ in range(3)]
    faults = kill_at(*numbers, late=chance.random() < 0.5)
    assert what_is_wrong(*told(faults, lambda queue: UnreliableQueue(queue, seed))) == ""
