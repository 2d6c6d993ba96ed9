"""The messages of a conversation in a framework's form: turns of earlier tasks, in the conversation's store."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless import VersionConflict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless import TaskContext
    from a2a_serverless.domain.model import Json

SIZE_LIMIT: Final = 300_000
"""The most characters of JSON that are stored for a conversation."""
TRIES: Final = 20


async def load_history(task: TaskContext, agent_id: str) -> list[Any]:
    """The messages of the conversation's earlier tasks, oldest first."""
    entry = await task.conversation.get(f"history/{agent_id}")
    return [message for turn in _turns(entry.value if entry else None, task) for message in turn["messages"]]


async def save_turn(task: TaskContext, agent_id: str, messages: Sequence[Json], turns: int) -> None:
    """Stores the messages of this task as the newest turn. Idempotent.

    The newest ``turns`` stay stored, as far as they have ``SIZE_LIMIT`` characters.
    """
    key = f"history/{agent_id}"
    for _ in range(TRIES):
        entry = await task.conversation.get(key)
        newest_turns = [*_turns(entry.value if entry else None, task), {"task": task.id, "messages": list(messages)}]
        try:
            await task.conversation.put(key, newest(newest_turns[-turns:]), version=entry.version if entry else "")
        except VersionConflict:  # another task of the conversation has ended in between
            continue
        return


def _turns(value: Any, task: TaskContext) -> list[Any]:  # noqa: ANN401 - JSON
    return [turn for turn in value or () if turn["task"] != task.id]


def newest(turns: list[Json]) -> list[Json]:
    """The newest turns that fit into the limit."""
    size = 0
    for place in reversed(range(len(turns))):
        size += len(json.dumps(turns[place]))
        if size > SIZE_LIMIT:
            return turns[place + 1 :]
    return turns
