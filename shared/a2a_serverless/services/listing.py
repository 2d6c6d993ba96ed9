"""ListTasks (specification 3.1.4): pages of a caller's tasks, newest status first, from an index.

The index lists the tasks and the times of their statuses; the tasks themselves are read from their logs. A page reads a
bounded number of index entries, so a filter that few tasks match may give short pages. It ends with the task at which
``READ_BYTES`` of stored text have been read: an answer has no room for more. A task that cannot be read is left out and
logged; GetTask answers it with an internal error. ``totalSize`` is counted on the first page, up to ``COUNTED``. The
page token is sealed: it is valid only for the same caller and filters.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from a2a_serverless.domain.digests import digest
from a2a_serverless.domain.errors import FieldViolation, InvalidParams
from a2a_serverless.protocol.v1 import ListedTask, ListTasksRequest, ListTasksResponse
from a2a_serverless.services.content_links import INLINE_BYTES
from a2a_serverless.store.items import read_or_skip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from a2a_serverless.domain.model import Principal, TaskKey
    from a2a_serverless.ports.system import Sealer
    from a2a_serverless.protocol.v1 import Task
    from a2a_serverless.store.items import TaskEntry
    from a2a_serverless.store.stores import TaskIndex
    from a2a_serverless.store.task_log import TaskLog, TaskPart

COUNTED: Final = 1000
READ: Final = 300
READ_BYTES: Final = INLINE_BYTES


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
    return read_or_skip(
        lambda: lister.log.read_part(key, query.history_length, artifacts=query.include_artifacts),
        "task",
        task=key.task,
    )


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
