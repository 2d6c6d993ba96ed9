"""The briefs of an owner's latest tasks, of all agents, for the console: each has the task's first words.

A list is at most ``PAGES`` queries of the index, one read for each task, one more for a task that works, and two more
for a task that has failed.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from a2a_serverless.domain.errors import FieldViolation, InvalidParams
from a2a_serverless.protocol.v1 import TaskState
from a2a_serverless.store.items import TaskEntry, read_or_skip

if TYPE_CHECKING:
    from collections.abc import Container, Iterator

    from a2a_serverless.domain.model import Json, JsonObject, Principal, TaskKey
    from a2a_serverless.protocol.v1 import Message
    from a2a_serverless.services.listing import TaskLister
    from a2a_serverless.store.task_log import TaskLog

BRIEFS: Final = 25
PAGES: Final = 4
_POSITION: Final = re.compile("[0-9]{15}#[!-~]{1,900}")
WORDS: Final = 140
WAITING: Final = "waiting"
"""What a list calls the state of a task that works, and is suspended."""


class BriefFilter(NamedTuple):
    """Only tasks of these ``agents``, in this ``state``, with this ``text`` in their words or at the start of their id.

    "" is any state, or any text.
    """

    agents: Container[str]
    state: str = ""
    text: str = ""

    def may_match(self, entry: TaskEntry) -> bool:
        """Whether a task with this entry of the index may be meant."""
        state = TaskState.WORKING.value if self.state == WAITING else self.state
        return entry.agent in self.agents and state in {"", entry.state.value}

    def matches(self, brief: JsonObject) -> bool:
        """Whether the task of this brief is meant."""
        text, words = self.text.casefold(), str(brief["words"]).casefold()
        return self.state in {"", brief["state"]} and (text in words or str(brief["task"]).casefold().startswith(text))


def list_briefs(lister: TaskLister, principal: Principal, wanted: BriefFilter, after: str | None) -> JsonObject:
    """The caller's newest ``tasks`` after a position, at most ``BRIEFS``, and the next position.

    If few of the tasks match, there may be fewer than ``BRIEFS`` before the next position.

    Raises InvalidParams for a text that is no position.
    """
    if after and not _POSITION.fullmatch(after):
        raise InvalidParams(violations=(FieldViolation("after", "is not the end of an earlier page of this list"),))
    if wanted.text and not after and (entry := _find(lister.log, principal.key(wanted.text))):
        return {"tasks": [*dict(_matching(lister.log, principal, wanted, [entry])).values()], "after": None}
    tasks: list[Json] = []
    for _ in range(PAGES):
        entries, after = lister.index.list_page(principal, None, after, 0, BRIEFS)
        for position, brief in _matching(lister.log, principal, wanted, entries):
            tasks.append(brief)
            if len(tasks) == BRIEFS and position != entries[-1].position:
                return {"tasks": tasks, "after": position}
        if after is None or len(tasks) == BRIEFS:
            break
    return {"tasks": tasks, "after": after}


def _find(log: TaskLog, key: TaskKey) -> TaskEntry | None:
    """The entry of the task whose id was searched for, however old it is; None if there is no such task."""
    current = read_or_skip(lambda: log.read_head(key), "task", task=key.task)
    head = current and current.head
    return TaskEntry(key.task, head.agent, head.state, f"{head.status_at:015d}#") if head else None


def _matching(
    log: TaskLog, principal: Principal, wanted: BriefFilter, entries: list[TaskEntry]
) -> Iterator[tuple[str, JsonObject]]:
    for entry in entries:
        brief = _brief(log, principal.key(entry.task), entry) if wanted.may_match(entry) else None
        if brief and wanted.matches(brief):
            yield entry.position, brief


def _brief(log: TaskLog, key: TaskKey, entry: TaskEntry) -> JsonObject | None:
    """``at`` is the time of the status (ms), ``reason`` why there is no result. None if the task cannot be read."""

    def read_ends() -> tuple[Any, Any, Any]:
        first = log.read_outline(key, 1)
        current = log.read_head(key) if first and entry.state in _EXPLAINED else None
        is_over = current is not None and current.head.is_terminal
        return first, current and current.head, log.read_outline(key, current.head.n) if current and is_over else None

    first, head, last = read_or_skip(read_ends, "task", task=key.task) or (None, None, None)
    if first is None:
        return None
    waits = head.open_waits.waits[:1] if head else ()
    state = WAITING if waits and entry.state is TaskState.WORKING else entry.state.value
    words, reason = _words(first.incoming and first.incoming.message), _words(last and last.message)
    at = int(entry.position.partition("#")[0])
    brief: JsonObject = {"agent": entry.agent, "task": entry.task, "state": state, "at": at}
    return brief | {"words": words, "reason": reason, "waits": [{"kind": one.kind, "name": one.name} for one in waits]}


def _words(message: Message | None) -> str:
    """The first line of a message, without the marks of a heading."""
    return message.text().strip().partition("\n")[0].lstrip("# ")[:WORDS] if message else ""


_EXPLAINED: Final = frozenset({TaskState.WORKING, TaskState.FAILED, TaskState.REJECTED})
