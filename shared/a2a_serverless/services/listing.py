"""ListTasks (specification 3.1.4): pages of a caller's tasks, newest status first, from an index.

The index lists the tasks and the times of their statuses; the tasks themselves are read from their logs. A page reads a
bounded number of index entries, so a filter that few tasks match may give short pages. It ends with the task at which
``READ_BYTES`` of stored text have been read: an answer has no room for more. A task that cannot be read is left out and
logged; GetTask answers it with an internal error. ``totalSize`` is counted on the first page, up to ``COUNTED``. The
page token is sealed: it is valid only for the same caller and filters.

The console lists the tasks of all agents, each with its first words: a query of the index, one read for each task, and
two more for one that has failed.

The timeline of a task, for its owner: the beginning of its log, its steps' times and its webhooks.
"""

from __future__ import annotations

import json
import logging
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from a2a_serverless.domain.errors import FieldViolation, IllegalTransition, InvalidParams, safe_error_fields
from a2a_serverless.domain.events import StatusEvent, event_size
from a2a_serverless.domain.model import digest
from a2a_serverless.domain.timeline import TaskTimeline, state_spans, step_spans
from a2a_serverless.protocol.v1 import ListedTask, ListTasksRequest, ListTasksResponse, TaskState
from a2a_serverless.services.content_links import INLINE_BYTES
from a2a_serverless.services.task_changes import read_existing_head
from a2a_serverless.services.webhook_statuses import list_statuses

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from a2a_serverless.domain.events import Event
    from a2a_serverless.domain.model import JsonObject, Principal, TaskKey
    from a2a_serverless.ports.system import Sealer
    from a2a_serverless.protocol.v1 import Message, Task
    from a2a_serverless.store.items import TaskEntry
    from a2a_serverless.store.push_store import PushStore
    from a2a_serverless.store.stores import TaskIndex
    from a2a_serverless.store.task_log import TaskLog, TaskPart

COUNTED: Final = 1000
READ: Final = 300
READ_BYTES: Final = INLINE_BYTES
UNREADABLE: Final = (IllegalTransition, LookupError, RuntimeError, TypeError, ValueError)
"""The errors of a read if the stored data is wrong. A store that fails raises other errors."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class TaskLister:
    """The dependencies of listing. ``sealer`` encrypts page tokens and detects changed ones."""

    log: TaskLog
    index: TaskIndex
    sealer: Sealer


def list_tasks(lister: TaskLister, principal: Principal, agent: str, query: ListTasksRequest) -> ListTasksResponse:
    """Returns one page. Raises InvalidParams for a page token of another caller or other filters."""
    context = _token_context(principal, agent, query)
    begin, total = _open_token(lister, query.page_token, context)
    limit = COUNTED if total is None else READ
    entries, after_last = lister.index.list_page(
        principal, query.context_id, begin, query.status_timestamp_after or 0, limit
    )
    matching = [entry for entry in entries if entry.agent == agent and query.status in {None, entry.state}]
    total = len(matching) if total is None else total
    parts, count = _read(lister, principal, matching[: query.page_size], query)
    after = matching[count - 1].position if len(matching) > count else after_last
    tasks = tuple(sorted(parts, key=lambda task: (task.status.timestamp, task.id), reverse=True))
    token = "" if after is None else lister.sealer.seal(json.dumps([after, total]), context)
    if query.include_artifacts:
        tasks = tuple(ListedTask(**task.__dict__) for task in tasks)
    return ListTasksResponse(tasks=tasks, next_page_token=token, page_size=query.page_size, total_size=total)


def _read(
    lister: TaskLister, principal: Principal, page: Sequence[TaskEntry], query: ListTasksRequest
) -> tuple[list[Task], int]:
    """The current tasks, and the number of their entries: the index may be behind.

    Omits tasks that have expired since, and tasks that no longer have the state of the filter.
    """
    tasks: list[Task] = []
    bytes_left = READ_BYTES
    for count, entry in enumerate(page, 1):
        key = principal.key(entry.task)
        if result := _read_one(lister, key, query):
            bytes_left -= result.size
            if query.status in {None, result.head.state}:
                tasks.append(result.task)
        if bytes_left <= 0:
            return tasks, count
    return tasks, len(page)


def _read_one(lister: TaskLister, key: TaskKey, query: ListTasksRequest) -> TaskPart | None:
    try:
        return lister.log.read_part(key, query.history_length, artifacts=query.include_artifacts)
    except UNREADABLE as error:
        logger.error("task unreadable", extra=safe_error_fields(error) | {"task": key.task})
        return None


def _token_context(principal: Principal, agent: str, query: ListTasksRequest) -> str:
    filters = {
        "context_id": query.context_id,
        "state": query.status,
        "since": query.status_timestamp_after,
    }
    return digest(["page", principal.tenant, principal.owner, agent, filters])


def _open_token(lister: TaskLister, token: str | None, context: str) -> tuple[str | None, int | None]:
    """The position in the index after which a page begins, and the total, which was counted on the first page."""
    if not token:
        return None, None
    try:
        after, total = json.loads(lister.sealer.open(token, context))
    except ValueError:
        bad = FieldViolation("pageToken", "is not a token of an earlier page of this list")
        raise InvalidParams(violations=(bad,)) from None
    return after, total


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
    try:
        first: Any = log.read_outline(key, 1)
        current = log.read_head(key) if first and entry.state in _UNDONE else None
        last: Any = log.read_outline(key, current.head.n) if current else None
    except UNREADABLE as error:
        logger.error("task unreadable", extra=safe_error_fields(error) | {"task": key.task})
        return {}
    words, reason = _words(first and first.incoming and first.incoming.message), _words(last and last.message)
    at, state = int(entry.position.partition("#")[0]), entry.state.value
    brief: JsonObject = {"agent": entry.agent, "task": entry.task, "state": state, "at": at}
    return brief | {"words": words, "reason": reason} if first else {}


def _words(message: Message | None) -> str:
    """The first line of a message, without the marks of a heading."""
    return message.text().strip().partition("\n")[0].lstrip("# ")[:WORDS] if message else ""


_UNDONE: Final = frozenset({TaskState.FAILED, TaskState.REJECTED})

PAGE: Final = 100
EVENTS: Final = 1000
BYTES: Final = 4 * 1024 * 1024
STEPS: Final = 1000


def read_timeline(log: TaskLog, store: PushStore, key: TaskKey, agent: str) -> TaskTimeline:
    """The timeline of the owner's task: its first events, at most ``EVENTS`` of about ``BYTES``, and ``STEPS`` steps.

    Raises TaskNotFound.
    """
    current = read_existing_head(log, key, agent)
    events = _first_events(log, key)
    statuses = [event for event in events if isinstance(event, StatusEvent)]
    spans = state_spans(statuses)
    spans += step_spans(log.list_step_times(key, STEPS))
    spans.sort(key=lambda span: span.began_at)
    usage = next((event.usage for event in reversed(statuses) if event.usage), None)
    budget = next((event.budget for event in reversed(statuses) if event.budget), None)
    return TaskTimeline(current, events, spans, list_statuses(store, current), usage, budget)


def _first_events(log: TaskLog, key: TaskKey) -> list[Event]:
    events: list[Event] = []
    size = 0
    while len(events) < EVENTS and size < BYTES:
        page = log.read(key, len(events), PAGE)
        events += page
        size += sum(map(event_size, page))
        if len(page) < PAGE:
            break
    return events
