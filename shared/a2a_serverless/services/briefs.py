"""The briefs of an owner's latest tasks, of all agents, for the console: each has the task's first words.

A list is a query of the index, one read for each task, and two more for a task that has failed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.errors import FieldViolation, InvalidParams
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.store.items import read_or_skip

if TYPE_CHECKING:
    from collections.abc import Container

    from a2a_serverless.domain.model import JsonObject, Principal, TaskKey
    from a2a_serverless.protocol.v1 import Message
    from a2a_serverless.services.listing import TaskLister
    from a2a_serverless.store.items import TaskEntry
    from a2a_serverless.store.task_log import TaskLog

BRIEFS: Final = 25
_POSITION: Final = re.compile("[0-9]{15}#[!-~]{1,900}")
WORDS: Final = 140


def list_briefs(lister: TaskLister, principal: Principal, agents: Container[str], after: str | None) -> JsonObject:
    """The caller's newest ``tasks`` of these agents after a position, at most ``BRIEFS``, and the next position.

    Raises InvalidParams for a text that is no position.
    """
    if after and not _POSITION.fullmatch(after):
        raise InvalidParams(violations=(FieldViolation("after", "is not the end of an earlier page of this list"),))
    entries, after = lister.index.list_page(principal, None, after, 0, BRIEFS)
    briefs = [_brief(lister.log, principal.key(entry.task), entry) for entry in entries if entry.agent in agents]
    return {"tasks": [brief for brief in briefs if brief], "after": after}


def _brief(log: TaskLog, key: TaskKey, entry: TaskEntry) -> JsonObject:
    """``at`` is the time of the status (ms), ``reason`` why there is no result. Empty if the task cannot be read."""

    def read_ends() -> tuple[Any, Any]:
        first = log.read_outline(key, 1)
        current = log.read_head(key) if first and entry.state in _UNDONE else None
        return first, log.read_outline(key, current.head.n) if current else None

    first, last = read_or_skip(read_ends, "task", task=key.task) or (None, None)
    words, reason = _words(first and first.incoming and first.incoming.message), _words(last and last.message)
    at, state = int(entry.position.partition("#")[0]), entry.state.value
    brief: JsonObject = {"agent": entry.agent, "task": entry.task, "state": state, "at": at}
    return brief | {"words": words, "reason": reason} if first else {}


def _words(message: Message | None) -> str:
    """The first line of a message, without the marks of a heading."""
    return message.text().strip().partition("\n")[0].lstrip("# ")[:WORDS] if message else ""


_UNDONE: Final = frozenset({TaskState.FAILED, TaskState.REJECTED})
