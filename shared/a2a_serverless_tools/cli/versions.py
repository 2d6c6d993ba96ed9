"""The versions of an artifact: the artifacts of the same name in the tasks of one context.

A task never changes once it has ended. A refinement is a new task of the same context; its artifact has the same name
and a new id (A2A's "Life of a Task"). The client has to group them by name.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.client.client import Client
    from a2a_serverless.protocol.v1 import Artifact, Task


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an artifact. ``number`` 1 is the oldest; ``at`` is the time of its task's status, in ms."""

    number: int
    task_id: str
    at: int
    artifact: Artifact


def versions(client: Client, context_id: str) -> dict[str, tuple[Version, ...]]:
    """Returns the artifacts of the agent's tasks in the context by name, oldest first. Needs an agent that speaks 1.0.

    Raises what ``Client.get`` and ``Client.task_ids`` raise.
    """
    return by_name(client.get(task_id, history_length=0) for task_id in [*client.task_ids(context_id)])


def by_name(tasks: Iterable[Task]) -> dict[str, tuple[Version, ...]]:
    """Groups the artifacts of tasks (in any order) by name. An artifact without a name is listed by its id."""
    groups: dict[str, tuple[Version, ...]] = {}
    for task in sorted(tasks, key=lambda task: (task.status.timestamp, task.id)):
        for artifact in task.artifacts:
            name = artifact.name or artifact.artifact_id
            earlier = groups.get(name, ())
            groups[name] = (*earlier, Version(len(earlier) + 1, task.id, task.status.timestamp, artifact))
    return groups
