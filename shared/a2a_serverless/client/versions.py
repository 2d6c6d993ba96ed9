"""The versions of an artifact: what the tasks of one conversation made under the same name.

A task never changes once it has ended: a refinement is a new task of the same context, whose artifact has the name of
the one before and an id of its own (A2A's "Life of a Task"). Keeping them apart by name is left to the client.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from a2a_serverless.client.calls import Client
    from a2a_serverless.domain.model import Artifact, Task


@dataclass(frozen=True, slots=True)
class Version:
    """One version of an artifact. ``number`` counts from 1, the oldest; ``at`` is its task's last status, in ms."""

    number: int
    task_id: str
    at: int
    artifact: Artifact


def versions(client: Client, context_id: str) -> dict[str, tuple[Version, ...]]:
    """All that the agent's tasks in the context made, by name, the oldest first. The agent has to speak 1.0.

    Raises what ``Client.get`` raises.
    """
    return by_name(client.get(task_id, history_length=0) for task_id in [*client.task_ids(context_id)])


def by_name(tasks: Iterable[Task]) -> dict[str, tuple[Version, ...]]:
    """The versions in the tasks, whose order does not count. An artifact without a name goes by its id."""
    found: dict[str, tuple[Version, ...]] = {}
    for task in sorted(tasks, key=lambda task: (task.status.timestamp, task.task_id)):
        for artifact in task.artifacts:
            name = artifact.name or artifact.artifact_id
            earlier = found.get(name, ())
            found[name] = (*earlier, Version(len(earlier) + 1, task.task_id, task.status.timestamp, artifact))
    return found
